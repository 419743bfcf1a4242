#include "base/values.h"

#include <gtest/gtest.h>

namespace vitrail {
namespace {

TEST(Values, IntegersAreWholeAndFit) {
  EXPECT_EQ(parse_integer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parse_integer("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(parse_integer("-7"), -7);
  for (const char* bad : {"", " ", "x", "7x", "7 ", "1.5", "1e3", "9223372036854775808",
                          "-9223372036854775809", "99999999999999999999"})
    EXPECT_EQ(parse_integer(bad), std::nullopt) << bad;
}

TEST(Values, NumbersAreFinite) {
  EXPECT_EQ(parse_number("1e3"), 1000);
  EXPECT_EQ(parse_number("-0.5"), -0.5);
  for (const char* bad : {"", "x", "1.5x", "1e999", "-1e999", "inf", "-inf", "nan"})
    EXPECT_EQ(parse_number(bad), std::nullopt) << bad;
}

TEST(Values, TruthHasFewNames) {
  EXPECT_EQ(parse_bool("true"), true);
  EXPECT_EQ(parse_bool("false"), false);
  EXPECT_EQ(parse_bool(""), false);
  for (const char* bad : {"yes!", "2", "truex"}) EXPECT_EQ(parse_bool(bad), std::nullopt) << bad;
}

TEST(Values, SectionsAreWhatStandsBeforeDots) {
  EXPECT_EQ(section_names({"a.b.c", "a.d", "e", "f."}), (std::set<std::string>{"a", "a.b", "f"}));
  EXPECT_TRUE(section_names({}).empty());
}

TEST(Values, ASuggestionOrWhatIsSaidOtherwise) {
  EXPECT_EQ(did_you_mean("top_q", {"top_k", "batch"}, "--", "see --help"), "did you mean --top_k?");
  EXPECT_EQ(did_you_mean("something", {"top_k", "batch"}, "--", "see --help"), "see --help");
  EXPECT_EQ(join({"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(join({}, ", "), "");
}

}  // namespace
}  // namespace vitrail
