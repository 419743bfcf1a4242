// Numbers formatted for people, on either side of every change of unit.
#include "telemetry/format.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "telemetry/table.h"

namespace vitrail {
namespace {

TEST(Format, BytesChangeTheirUnitBeforeFourDigits) {
  const std::pair<uint64_t, const char*> rows[] = {{0, "0 B"},
                                                   {1023, "1023 B"},
                                                   {1024, "1.00 KiB"},
                                                   {22938, "22.4 KiB"},
                                                   {1023 * 1024, "1023 KiB"},
                                                   {1023 * 1024 + 512, "1.00 MiB"},
                                                   {1 << 20, "1.00 MiB"},
                                                   {uint64_t{5} << 29, "2.50 GiB"},
                                                   {uint64_t{3} << 40, "3.00 TiB"},
                                                   {uint64_t{1} << 60, "1.00 EiB"}};
  for (const auto& [bytes, text] : rows) EXPECT_EQ(format_bytes(bytes), text) << bytes;
}

TEST(Format, SiUnitsGoByThousands) {
  const std::pair<double, const char*> rows[] = {{0, "0.00"},        {999.4, "999"},     {999.5, "1.00 K"},
                                                 {9.994, "9.99"},    {9.996, "10.0"},    {99.94, "99.9"},
                                                 {99.96, "100"},     {-1500, "-1.50 K"}, {5717416, "5.72 M"},
                                                 {1.26e9, "1.26 G"}, {7e12, "7.00 T"},   {2e15, "2.00 P"}};
  for (const auto& [value, text] : rows) EXPECT_EQ(format_si(value), text) << value;
  EXPECT_EQ(format_si(NAN), "nan");
  EXPECT_EQ(format_si(-INFINITY), "-inf");
}

TEST(Format, SecondsChangeTheirUnit) {
  const std::pair<double, const char*> rows[] = {
      {0, "0 us"},           {85e-6, "85 us"},      {0.9994e-3, "999 us"}, {1e-3, "1.00 ms"},
      {12.34e-3, "12.3 ms"}, {0.9994, "999 ms"},    {1, "1.00 s"},         {59.94, "59.9 s"},
      {59.96, "1 min 00 s"}, {185, "3 min 05 s"},   {3599, "59 min 59 s"}, {3600, "1 h 00 min"},
      {7859, "2 h 10 min"},  {90000, "25 h 00 min"}};
  for (const auto& [seconds, text] : rows) EXPECT_EQ(format_seconds(seconds), text) << seconds;
  for (const double none : {-1.0, std::nan(""), HUGE_VAL}) EXPECT_EQ(format_seconds(none), "?");
}

TEST(Format, IntegersCountsAndShares) {
  const std::pair<int64_t, const char*> rows[] = {
      {0, "0"},          {999, "999"},        {1000, "1,000"},       {-999, "-999"},
      {-1000, "-1,000"}, {123456, "123,456"}, {5717416, "5,717,416"}};
  for (const auto& [value, text] : rows) EXPECT_EQ(format_integer(value), text);
  EXPECT_EQ(format_count(1, "tensor"), "1 tensor");
  EXPECT_EQ(format_count(0, "tensor"), "0 tensors");
  EXPECT_EQ(format_count(1200, "tensor"), "1,200 tensors");
  EXPECT_EQ(format_percent(0.35294), "35.29 %");
  EXPECT_EQ(format_percent(1), "100.00 %");
  EXPECT_EQ(format_percent(-INFINITY), "-inf") << "a share of none is no number of hundredths";
  EXPECT_EQ(format_significant(0.000123456), "0.0001235");
}

TEST(Format, BarsFillInEighthsAndKeepTheirWidth) {
  const std::pair<double, const char*> rows[] = {
      {-1, "   "},      {0, "   "}, {0.01, "   "}, {1.0 / 24, "▏  "},  {0.5, "█▌ "},
      {2.0 / 3, "██ "}, {1, "███"}, {7, "███"},    {23.0 / 24, "██▉"}, {NAN, "   "}};
  for (const auto& [share, bar] : rows) {
    EXPECT_EQ(format_bar(share, 3), bar) << share;
    EXPECT_EQ(display_width(format_bar(share, 3)), 3u) << share;
  }
}

TEST(DisplayWidth, ColoursTakeNoRoomAndLettersOfManyBytesTakeOne) {
  EXPECT_EQ(display_width(""), 0u);
  EXPECT_EQ(display_width("murmur"), 6u);
  EXPECT_EQ(display_width("\033[1;32mgreen\033[0m tree"), 10u);
  EXPECT_EQ(display_width("déjà █"), 6u);
}

TEST(Table, ColumnsEndWhereTheirWidestCellDoes) {
  Table table({{"name"}, {"size", Align::kRight}});
  table.row({"a", "1"});
  table.row({"longer", ""});
  EXPECT_EQ(table.text(1), " name    size\n ────────────\n a          1\n longer\n");
  EXPECT_EQ(table.rows(), 2u);
  EXPECT_THROW(table.row({}), Error);
  EXPECT_EQ(format_pairs({{"a", ""}, {"long", "2"}}, 1), " a\n long  2\n");
}

}  // namespace
}  // namespace vitrail
