// Every size of a model at both ends of what is allowed, and one beyond.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "models/lora.h"
#include "models/vit_config.h"

namespace vitrail {
namespace {

// One patch of 1024 pixels: no size is limited by another's.
VitConfig one_patch() {
  VitConfig c;
  c.image_height = c.image_width = c.patch = 1024;
  c.width = 1 << 16;
  c.heads = 1;
  return c;
}

std::string refusal(const VitConfig& config) {
  try {
    validate(config);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    return error.message();
  }
  return "";
}

int64_t within(int64_t side) {
  return std::clamp<int64_t>(side, 1, 1024);
}

struct Limit {
  const char* name;
  int64_t least, most;
  void (*set)(VitConfig&, int64_t);
};

TEST(VitConfigLimits, BothEndsAreAllowedAndNothingBeyond) {
  const Limit limits[] = {
      {"image_height", 1, 32768, [](VitConfig& c, int64_t v) { c.image_height = v, c.patch = within(v); }},
      {"image_width", 1, 32768, [](VitConfig& c, int64_t v) { c.image_width = v, c.patch = within(v); }},
      {"patch", 1, 1024,
       [](VitConfig& c, int64_t v) { c.patch = v, c.image_height = c.image_width = within(v); }},
      {"channels", 1, 4096, [](VitConfig& c, int64_t v) { c.channels = v; }},
      {"width", 1, 65536, [](VitConfig& c, int64_t v) { c.width = v; }},
      {"depth", 0, 1024, [](VitConfig& c, int64_t v) { c.depth = v; }},
      {"heads", 1, 1024, [](VitConfig& c, int64_t v) { c.heads = v; }},
      {"mlp", 1, 262144, [](VitConfig& c, int64_t v) { c.mlp = v; }},
      {"classes", 0, 4194304, [](VitConfig& c, int64_t v) { c.classes = v; }},
      {"registers", 0, 1024, [](VitConfig& c, int64_t v) { c.registers = v; }},
  };
  for (const Limit& limit : limits)
    for (const int64_t value : {limit.least - 1, limit.least, limit.most, limit.most + 1}) {
      VitConfig config = one_patch();
      limit.set(config, value);
      const bool allowed = value >= limit.least && value <= limit.most;
      const std::string said = refusal(config), expected = "model." + std::string(limit.name) + " is ";
      EXPECT_EQ(said.empty(), allowed) << limit.name << " " << value << ": " << said;
      EXPECT_TRUE(allowed || said.starts_with(expected)) << said;
    }
}

TEST(VitConfigLimits, TokensAreCountedWithTheirPrefix) {
  VitConfig c = one_patch();
  c.image_height = c.image_width = 256;
  c.patch = 1;
  c.class_token = false;
  c.pool = Pool::kMean;
  EXPECT_EQ(refusal(c), "") << "65536 of them";
  c.registers = 1;
  EXPECT_NE(refusal(c).find("65537 tokens"), std::string::npos);
}

TEST(VitConfigLimits, TheEpsilonOfNormsLiesBetweenZeroAndOne) {
  for (const auto& [eps, allowed] : {std::pair{0.0, true},
                                     {1e-12, true},
                                     {1.0, true},
                                     {1.0001, false},
                                     {-1e-9, false},
                                     {HUGE_VAL, false}}) {
    VitConfig c = one_patch();
    c.norm_eps = eps;
    EXPECT_EQ(refusal(c).empty(), allowed) << eps;
  }
}

TEST(LoraLimits, RanksReachTheirLimit) {
  for (const auto& [rank, allowed] : {std::pair<int64_t, bool>{-1, false},
                                      {0, true},
                                      {1, true},
                                      {kMaxLoraRank, true},
                                      {kMaxLoraRank + 1, false}}) {
    const LoraConfig config{.rank = rank};
    if (allowed)
      EXPECT_NO_THROW(validate(config)) << rank;
    else
      EXPECT_THROW(validate(config), Error) << rank;
  }
  EXPECT_THROW(validate(LoraConfig{.rank = 2, .attention = false, .mlp = false}), Error);
}

}  // namespace
}  // namespace vitrail
