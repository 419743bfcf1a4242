#include "data/augment/policy.h"

#include "data/fake_dataset.h"

namespace vitrail {
namespace {

LevelScale scale_named(const std::string& name) {
  return name == "plain"        ? LevelScale::kPlain
         : name == "increasing" ? LevelScale::kIncreasing
         : name == "ten_steps"  ? LevelScale::kTenSteps
                                : LevelScale::kThirtySteps;
}

TEST(Policy, LevelsMeanWhatTimmAndTorchvisionMake) {
  test::for_each_line("../augment/levels.txt", [](std::istringstream& fields) {
    std::string name, scale;
    double level, positive, negative;
    fields >> name >> scale >> level >> positive >> negative;
    const auto op = enum_from_name<PolicyOp>(name);
    ASSERT_TRUE(op);
    bool saw_positive = false, saw_negative = false;
    Draw draw(name_key(name));
    for (int i = 0; i < 40; ++i) {
      const double argument = op_argument(*op, scale_named(scale), level, {30, 40}, draw);
      const double tolerance = 1e-5 * (1 + std::abs(positive));  // torchvision's steps are float32
      const bool is_positive = std::abs(argument - positive) < tolerance;
      const bool is_negative = std::abs(argument - negative) < tolerance;
      EXPECT_TRUE(is_positive || is_negative) << argument;
      saw_positive |= is_positive;
      saw_negative |= is_negative;
    }
    EXPECT_TRUE(saw_positive && saw_negative);
  });
}

// timm's rule where mmax allows levels above 10, which its tables do not have.
TEST(Policy, SolarizeAddAddsAtMost128) {
  Draw draw(3);
  const auto added = [&](LevelScale scale, double level) {
    return op_argument(PolicyOp::kSolarizeAdd, scale, level, {30, 40}, draw);
  };
  for (const LevelScale scale : {LevelScale::kPlain, LevelScale::kIncreasing}) {
    EXPECT_EQ(added(scale, 10), 110);
    EXPECT_EQ(added(scale, 11.6), 127);
    EXPECT_EQ(added(scale, 15), 128);
  }
}

TEST(Policy, TablesAreWhole) {
  for (const PolicyTable& table : policy_tables()) {
    SCOPED_TRACE(table.name);
    EXPECT_EQ(table.entries.size() / table.steps * table.steps, table.entries.size());
    EXPECT_EQ(table.entries.size() / table.steps, table.steps == 1 ? 3u : 25u);
    for (const PolicyStep& step : table.entries) {
      EXPECT_GE(step.probability, 0);
      EXPECT_LE(step.probability, 1);
      EXPECT_LE(step.level, table.scale == LevelScale::kTenSteps ? 9 : 10);
    }
  }
}

TEST(Policy, ReadsTimmsNotation) {
  const Policy deit = parse_policy("rand-m9-mstd0.5-inc1");
  EXPECT_EQ(deit.kind, Policy::Kind::kRand);
  EXPECT_EQ(deit.magnitude, 9);
  EXPECT_EQ(deit.magnitude_deviation, 0.5);
  EXPECT_EQ(deit.scale, LevelScale::kIncreasing);
  EXPECT_EQ(deit.layers, 2);
  EXPECT_EQ(deit.probability, 0.5);
  const Policy other = parse_policy("rand-n3-p0.75-mmax30-m15");
  EXPECT_EQ(other.layers, 3);
  EXPECT_EQ(other.probability, 0.75);
  EXPECT_EQ(other.magnitude, 15);
  EXPECT_EQ(other.magnitude_most, 30);
  EXPECT_EQ(other.scale, LevelScale::kPlain);
  EXPECT_EQ(parse_policy("original-mstd0.5").magnitude_deviation, 0.5);
  EXPECT_STREQ(parse_policy("3a").table->name, "3a");
  const Policy torchvision = parse_policy("torchvision-n3-m30");
  EXPECT_EQ(torchvision.kind, Policy::Kind::kRand);
  EXPECT_EQ(torchvision.scale, LevelScale::kThirtySteps);
  EXPECT_EQ(torchvision.ops.size(), 14u);
  EXPECT_EQ(torchvision.magnitude, 30);
  EXPECT_EQ(torchvision.layers, 3);
  EXPECT_EQ(torchvision.probability, 1);
  EXPECT_EQ(parse_policy("").kind, Policy::Kind::kNone);
  EXPECT_EQ(parse_policy("none").kind, Policy::Kind::kNone);
}

TEST(Policy, RefusesWhatItDoesNotKnow) {
  const struct {
    const char *text, *named;
  } cases[] = {{"random", "random"},
               {"rand-m", "m"},
               {"rand-m9-x3", "x"},
               {"rand-m11", "m is 11"},
               {"rand-n0", "n is 0"},
               {"rand-n1.5", "whole"},
               {"rand-p2", "p is 2"},
               {"rand-inc2", "inc is 2"},
               {"original-m9", "\"m\""},
               {"rand-m9.5.5", "9.5.5"},
               {"torchvision-m31", "m is 31"},
               {"torchvision-inc1", "\"inc\""},
               {"rand-", "\"\""},
               {"rand-m1e400", "1e400"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const Error error = test::error_of([&] { parse_policy(c.text); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(error.message().find(c.named), std::string::npos) << error.message();
  }
}

TEST(Policy, IsAFunctionOfItsDraws) {
  const Image original = test::scene(24, 20, 3, 6);
  for (const char* text :
       {"rand-m9-mstd0.5-inc1", "rand-m7-mstd101", "torchvision", "original", "v0", "cifar10", "3a"}) {
    SCOPED_TRACE(text);
    const Policy policy = parse_policy(text);
    std::set<std::string> results;
    for (int64_t position = 0; position < 60; ++position) {
      Image first = original, second = original;
      Draw draw(3, 1, position, "policy"), again(3, 1, position, "policy");
      apply_policy(policy, {}, draw, first);
      apply_policy(policy, {}, again, second);
      ASSERT_EQ(first.pixels, second.pixels);
      ASSERT_EQ(first.pixels.size(), original.pixels.size());
      results.insert(test::crc(first));
    }
    EXPECT_GT(results.size(), 15u);
  }
}

// timm's rule: half of the layers do nothing, so a quarter of the images stay as they were, and more where
// an operation happens to change nothing.
TEST(Policy, RandAugmentSkipsHalfOfItsLayers) {
  const Image original = test::scene(16, 16, 3, 2);
  const Policy policy = parse_policy("rand-m9-inc1");
  int same = 0;
  for (int64_t position = 0; position < 400; ++position) {
    Image image = original;
    Draw draw(5, 0, position, "policy");
    apply_policy(policy, {}, draw, image);
    same += image.pixels == original.pixels;
  }
  EXPECT_GT(same, 70);
  EXPECT_LT(same, 150);
}

TEST(Policy, GreyImagesStayGrey) {
  const Policy policy = parse_policy("rand-m9-p1-n3");
  for (int64_t position = 0; position < 100; ++position) {
    Image image = test::scene(10, 14, 1, 2);
    Draw draw(5, 0, position, "policy");
    apply_policy(policy, {}, draw, image);
    ASSERT_EQ(image.pixels.size(), 140u);
    ASSERT_EQ(image.channels, 1);
  }
}

}  // namespace
}  // namespace vitrail
