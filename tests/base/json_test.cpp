#include "base/json.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/json_text.h"

namespace vitrail {
namespace {

std::string refusal(const std::string& text, const JsonLimits& limits = {}) {
  try {
    parse_json(text, "f.json", limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), limits.kind);
    return error.what();
  }
  return "accepted";
}

TEST(Json, AByteOrderMarkIsPassedOver) {
  EXPECT_EQ(parse_json("\xEF\xBB\xBF{\"a\": 1}", "f").at("a"), 1);
  try {
    parse_json("\xEF\xBB\xBF{x}", "f");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.context().at(0), "f:1:2") << "columns as an editor counts them";
  }
}

TEST(Json, ReadsOrdinaryDocuments) {
  const Json value = parse_json(R"({"a": [1, -2, 2.5e3, true, null, "é\u00e9"], "b": {"c": {}}})", "f");
  EXPECT_EQ(value["a"][0], 1);
  EXPECT_EQ(value["a"][1], -2);
  EXPECT_EQ(value["a"][2], 2500.0);
  EXPECT_EQ(parse_json("1e3", "f"), 1000.0);
  EXPECT_EQ(parse_json("1E3", "f"), 1000.0);
  EXPECT_EQ(value["a"][3], true);
  EXPECT_TRUE(value["a"][4].is_null());
  EXPECT_EQ(value["a"][5], "éé");
  EXPECT_TRUE(value["b"]["c"].is_object());
  EXPECT_EQ(parse_json("18446744073709551615", "f").get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(parse_json("-9223372036854775808", "f").get<int64_t>(), INT64_MIN);
}

TEST(Json, RefusalsSayWhere) {
  struct Case {
    std::string text, says;
  };
  const Case cases[] = {
      {"{\"a\": 1,\n \"a\": 2}", "f.json:2:4: the key \"a\" appears twice"},
      {"[1,\n\n  x]", "f.json:3:3:"},
      {"[NaN]", "f.json:1:2:"},
      {"[Infinity]", "f.json:1:2:"},
      {"[-Infinity]", "f.json:1:3:"},
      {"[1e999]", "overflow"},
      {"[18446744073709551616]", "does not fit 64 bits"},
      {"[-9223372036854775809]", "does not fit 64 bits"},
      {"[" + std::string(1000000, '9') + "]", "f.json:1:"},
      {"\"\xff\"", "f.json:1:2:"},
      {"\"\xc0\xaf\"", "f.json:1:"},
      {"\"\xed\xa0\x80\"", "f.json:1:"},
      {"\"\\ud800\"", "f.json:1:"},
      {"\"a\nb\"", "f.json:"},
      {std::string("{}\0{}", 5), "zero byte"},
      {"{} {}", "f.json:1:4:"},
      {"", "f.json:1:1:"},
      {"[1,]", "f.json:1:4:"},
      {"// c\n1", "f.json:1:"},
      {"[01]", "f.json:1:"},
  };
  for (const Case& c : cases)
    EXPECT_NE(refusal(c.text).find(c.says), std::string::npos)
        << c.text.substr(0, 40) << "\nexpected: " << c.says << "\nfound: " << refusal(c.text);
}

TEST(Json, MessagesStayShort) {
  EXPECT_LT(refusal("[\"" + std::string(1000000, 'x') + "\n\"]").size(), 300u);
  EXPECT_LT(refusal("[" + std::string(1000000, '9') + "]").size(), 300u);
}

TEST(Json, MessagesAreCutAt160Bytes) {
  try {
    parse_json("[\"" + std::string(1000, 'x') + "\n\"]", "f");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message().size(), 160u);
  }
}

TEST(Json, DepthIsBounded) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse_json(nested(64), "f"));
  EXPECT_NE(refusal(nested(65)).find("deeper than 64"), std::string::npos);
  EXPECT_NE(refusal(std::string(1000000, '[')).find("deeper than 64"), std::string::npos);
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_NE(refusal(objects).find("deeper than 64"), std::string::npos);
}

TEST(Json, ANumberThatIsNotFiniteIsNull) {
  using Limits = std::numeric_limits<double>;
  EXPECT_EQ(json_text(finite_or_null(0.5)), "0.5");
  for (const double value : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()})
    EXPECT_TRUE(finite_or_null(value).is_null()) << value;
}

TEST(Json, LimitsAreOptions) {
  EXPECT_NE(refusal("[1, 2]", {.max_bytes = 5}).find("6 bytes of JSON"), std::string::npos);
  EXPECT_EQ(parse_json("// one\n[1] /* two */", "f", {.comments = true}), Json::array({1}));
  EXPECT_NE(refusal("{", {.kind = ErrorKind::kConfig}).find("f.json:1:1"), std::string::npos);
}

}  // namespace
}  // namespace vitrail
