// Dropout in a recorded model: after the positions and in every branch, with stochastic depth growing with
// the block as in timm.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "models/vit.h"
#include "ops/dropout.h"

namespace vitrail {
namespace {

VitConfig small(int64_t depth) {
  VitConfig config;
  config.image_height = config.image_width = 16;
  config.patch = 8;
  config.width = 16;
  config.depth = depth;
  config.heads = 2;
  config.mlp = 32;
  config.classes = 5;
  return config;
}

// The masks of a recorded model by the path of their node.
std::map<std::string, const DropoutOp*> masks_of(const Program& program) {
  std::map<std::string, const DropoutOp*> masks;
  for (const Node& node : program.nodes)
    if (const auto* op = dynamic_cast<const DropoutOp*>(node.op.get())) masks[node.name] = op;
  return masks;
}

TEST(VitMasks, DropoutIsInEveryBranchAtTheRateAsked) {
  const Program program = record_vit(small(2), {.dropout = 0.35});
  std::set<std::string> names;
  for (const auto& [name, op] : masks_of(program)) {
    names.insert(name);
    EXPECT_EQ(op->probability(), 0.35) << name;
    EXPECT_EQ(op->unit(), DropUnit::kElement) << name;
  }
  EXPECT_EQ(names, (std::set<std::string>{"pos_drop", "blocks.0.attn.drop", "blocks.0.mlp.drop1",
                                          "blocks.0.mlp.drop2", "blocks.1.attn.drop", "blocks.1.mlp.drop1",
                                          "blocks.1.mlp.drop2"}));
}

// timm: linspace(0, rate, depth), so a single block is never dropped.
TEST(VitMasks, StochasticDepthGrowsWithTheBlock) {
  for (const int64_t depth : {1, 2, 4, 7}) {
    SCOPED_TRACE(depth);
    const Program program = record_vit(small(depth), {.drop_path = 0.3});
    const auto masks = masks_of(program);
    for (int64_t i = 0; i < depth; ++i)
      for (const char* branch : {"attn", "mlp"}) {
        const std::string name = "blocks." + std::to_string(i) + "." + branch + ".residual.drop_path";
        const double rate = depth > 1 ? 0.3 * static_cast<double>(i) / static_cast<double>(depth - 1) : 0;
        ASSERT_EQ(masks.contains(name), rate > 0) << name;
        if (rate == 0) continue;
        EXPECT_DOUBLE_EQ(masks.at(name)->probability(), rate) << name;
        EXPECT_EQ(masks.at(name)->unit(), DropUnit::kSample) << name;
      }
    EXPECT_EQ(masks.size(), static_cast<size_t>(2 * (depth - 1)));
  }
}

TEST(VitMasks, EveryMaskHasItsOwnStream) {
  const Program program = record_vit(small(3), {.dropout = 0.1, .drop_path = 0.2});
  std::set<uint64_t> keys;
  const auto masks = masks_of(program);
  for (const auto& [name, op] : masks) keys.insert(op->key());
  EXPECT_EQ(masks.size(), 1u + 3 * 3 + 2 * 2);
  EXPECT_EQ(keys.size(), masks.size());
}

TEST(VitMasks, TheShareDroppedIsTheProbability) {
  constexpr uint64_t kElements = 100000;
  for (const double p : {0.0, 0.05, 0.25, 0.5, 0.9})
    for (const int64_t step : {0, 1}) {
      const uint64_t stream = dropout_stream(17, 3, step);
      int64_t dropped = 0;
      for (uint64_t i = 0; i < kElements; ++i) dropped += !dropout_keeps(stream, i, p);
      EXPECT_NEAR(static_cast<double>(dropped), p * kElements, 5 * std::sqrt(p * (1 - p) * kElements)) << p;
    }
  std::set<uint64_t> streams;
  for (const uint64_t key : {1, 2})
    for (const int64_t seed : {0, 1})
      for (const int64_t step : {0, 1, 2}) streams.insert(dropout_stream(key, seed, step));
  EXPECT_EQ(streams.size(), 12u);
}

}  // namespace
}  // namespace vitrail
