#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/timing.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {
namespace {

TEST(Format, Bytes) {
  const std::pair<uint64_t, const char*> rows[] = {{0, "0 B"},
                                                   {1023, "1023 B"},
                                                   {1024, "1.00 KiB"},
                                                   {10239, "10.0 KiB"},
                                                   {1048575, "1.00 MiB"},
                                                   {346270624, "330 MiB"},
                                                   {uint64_t{1} << 40, "1.00 TiB"},
                                                   {UINT64_MAX, "16.0 EiB"}};
  for (const auto& [bytes, text] : rows) EXPECT_EQ(format_bytes(bytes), text);
}

TEST(Format, Integers) {
  const std::pair<int64_t, const char*> rows[] = {
      {0, "0"}, {999, "999"}, {1000, "1,000"}, {5717416, "5,717,416"}, {-1234, "-1,234"}, {-100, "-100"}};
  for (const auto& [value, text] : rows) EXPECT_EQ(format_integer(value), text);
}

TEST(Format, SiAndSeconds) {
  const std::pair<double, const char*> si[] = {{0, "0.00"},         {17.56e9, "17.6 G"}, {999.6, "1.00 K"},
                                               {5717416, "5.72 M"}, {-2500, "-2.50 K"},  {56.5, "56.5"}};
  for (const auto& [value, text] : si) EXPECT_EQ(format_si(value), text);
  const std::pair<double, const char*> seconds[] = {
      {85e-6, "85 us"},    {12.34e-3, "12.3 ms"}, {0.9996, "1.00 s"}, {4.2, "4.20 s"}, {59.96, "1 min 00 s"},
      {185, "3 min 05 s"}, {7800, "2 h 10 min"},  {-1, "?"},          {NAN, "?"}};
  for (const auto& [value, text] : seconds) EXPECT_EQ(format_seconds(value), text);
}

TEST(Format, NumbersThatAreNone) {
  EXPECT_EQ(format_significant(NAN), "nan");
  EXPECT_EQ(format_significant(-INFINITY), "-inf");
  EXPECT_EQ(format_significant(0.000123456), "0.0001235");
  EXPECT_EQ(format_percent(0.3529), "35.29 %");
}

TEST(Format, BarsAlwaysTakeTheirCells) {
  for (const double share : {-1.0, 0.0, 0.01, 0.06, 0.5, 0.999, 1.0, 7.0, double{NAN}})
    EXPECT_EQ(display_width(format_bar(share, 10)), 10u) << share;
  EXPECT_EQ(format_bar(1, 3), "███");
  EXPECT_EQ(format_bar(0.5, 1), "▌");
  EXPECT_EQ(format_bar(0, 2), "  ");
}

TEST(Format, WidthCountsCellsNotBytes) {
  EXPECT_EQ(display_width("█▌"), 2u);
  EXPECT_EQ(display_width("\033[1mbold\033[0m"), 4u);
  EXPECT_EQ(display_width("été"), 3u);
}

TEST(Table, AlignsByCells) {
  Table table({{"name"}, {"size", Align::kRight}, {"bar"}});
  table.row({"a", "1", "█"});
  table.row({"longer", "1000", ""});
  table.rule();
  table.row({"all"});
  EXPECT_EQ(table.text(1),
            " name    size  bar\n"
            " ─────────────────\n"
            " a          1  █\n"
            " longer  1000\n"
            " ─────────────────\n"
            " all\n");
  EXPECT_THROW(table.row({"1", "2", "3", "4"}), Error);
}

TEST(Table, Pairs) {
  EXPECT_EQ(format_pairs({{"a", "1"}, {"long", "2"}, {"", "3"}}, 2), "  a     1\n  long  2\n        3\n");
}

TEST(Spread, QuantilesLieBetweenNeighbours) {
  const Spread s = spread_of({4, 1, 3, 2, 5});
  EXPECT_EQ(s.count, 5u);
  EXPECT_DOUBLE_EQ(s.min, 1);
  EXPECT_DOUBLE_EQ(s.median, 3);
  EXPECT_DOUBLE_EQ(s.p90, 4.6);
  EXPECT_DOUBLE_EQ(s.max, 5);
  EXPECT_EQ(spread_of({}).count, 0u);
  EXPECT_DOUBLE_EQ(spread_of({1, 2}).median, 1.5);
}

}  // namespace
}  // namespace vitrail
