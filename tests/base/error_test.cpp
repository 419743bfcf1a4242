#include "base/error.h"

#include <gtest/gtest.h>

#include "base/checked.h"
#include "base/rng.h"

namespace vitrail {
namespace {

TEST(ErrorTest, ShowsContextOutermostFirstAndTheHintLast) {
  Error error(ErrorKind::kData, "header is 9 bytes; expected 8", "copy the file again");
  error.at("model.safetensors").at("opening the model");
  EXPECT_STREQ(
      error.what(),
      "opening the model: model.safetensors: header is 9 bytes; expected 8\n  try: copy the file again");
  EXPECT_EQ(error.kind(), ErrorKind::kData);
}

TEST(ErrorTest, KindsHaveTheDocumentedExitCodes) {
  const std::pair<ErrorKind, int> codes[] = {
      {ErrorKind::kInternal, 1}, {ErrorKind::kCheck, 2},  {ErrorKind::kUsage, 64},
      {ErrorKind::kConfig, 64},  {ErrorKind::kData, 65},  {ErrorKind::kNumerics, 66},
      {ErrorKind::kDevice, 69},  {ErrorKind::kComm, 69},  {ErrorKind::kDeadline, 70},
      {ErrorKind::kMemory, 71},  {ErrorKind::kWrite, 73}, {ErrorKind::kStopped, 75}};
  for (const auto& [kind, code] : codes) EXPECT_EQ(exit_code(kind), code) << to_string(kind);
}

TEST(ErrorTest, ChecksNameTheConditionAndThePlace) {
  try {
    const int found = 3;
    VT_CHECK(found == 4, "found %d", found);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    EXPECT_NE(error.message().find("found == 4 does not hold: found 3"), std::string::npos)
        << error.message();
    EXPECT_NE(error.message().find("error_test.cpp"), std::string::npos);
  }
}

TEST(ErrorTest, WithContextAddsThePlaceAndPassesResultsThrough) {
  EXPECT_EQ(with_context("x", [] { return 7; }), 7);
  try {
    with_context("key depth", [] { throw Error(ErrorKind::kConfig, "is negative"); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "key depth: is negative");
  }
}

TEST(Checked, OverflowIsAnAnswer) {
  EXPECT_EQ(checked_mul(6, 7), 42u);
  EXPECT_FALSE(checked_mul(uint64_t{1} << 33, uint64_t{1} << 31));
  EXPECT_FALSE(checked_add(UINT64_MAX, 1));
  const int64_t wraps[] = {int64_t{1} << 33, int64_t{1} << 31}, negative[] = {4, -1}, fine[] = {3, 5};
  EXPECT_FALSE(checked_bytes(wraps, 4));
  EXPECT_FALSE(checked_bytes(negative, 4));
  EXPECT_EQ(checked_bytes(fine, 4), 60u);
  EXPECT_EQ(checked_bytes({}, 4), 4u);
  EXPECT_EQ(round_up(65, 64), 128u);
  EXPECT_EQ(round_up(64, 64), 64u);
}

TEST(Rng, IsAFunctionOfKeyAndIndexAlone) {
  EXPECT_EQ(counter_hash(1, 2), counter_hash(1, 2));
  EXPECT_NE(counter_hash(1, 2), counter_hash(2, 1));
  EXPECT_NE(name_key("blocks.1"), name_key("blocks.2"));
}

TEST(Rng, UniformCoversItsRangeEvenly) {
  constexpr int kCount = 100000;
  double sum = 0, squares = 0;
  float least = 1, most = -1;
  for (int i = 0; i < kCount; ++i) {
    const float u = counter_uniform(42, static_cast<uint64_t>(i));
    sum += u;
    squares += static_cast<double>(u) * static_cast<double>(u);
    least = std::min(least, u);
    most = std::max(most, u);
  }
  EXPECT_GE(least, -1.0f);
  EXPECT_LT(most, 1.0f);
  EXPECT_LT(least, -0.999f);
  EXPECT_GT(most, 0.999f);
  EXPECT_NEAR(sum / kCount, 0.0, 0.01);  // five standard errors
  EXPECT_NEAR(squares / kCount, 1.0 / 3.0, 0.01);
}

}  // namespace
}  // namespace vitrail
