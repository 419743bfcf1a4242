// Two models layer by layer: how far they differ, and where they begin to.
#include "measure/compare_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "source_root.h"

namespace vitrail {
namespace {

TEST(CompareModels, ADifferenceIsToldAlsoAsAShareOfTheLargestNumber) {
  const LayerDifference found = difference_of("embed", {1, -8, 2}, {1, -6, 2});
  EXPECT_EQ(found.max, 2);
  EXPECT_EQ(found.relative, 0.25);
  EXPECT_THROW(difference_of("embed", {1}, {1, 2}), Error);
}

TEST(CompareModels, NanEqualsNanAlone) {
  EXPECT_EQ(difference_of("embed", {NAN, 1}, {NAN, 1}).relative, 0);
  EXPECT_TRUE(std::isinf(difference_of("embed", {NAN, 1}, {0, 1}).max));
  EXPECT_TRUE(std::isinf(difference_of("embed", {0, 1}, {NAN, 1}).max));
}

TEST(CompareModels, NamesTheFirstLayerThatDiffers) {
  ModelTrace a{.card = {}, .layers = {{"images", {4}}, {"embed", {4}}, {"blocks.0", {4}}, {"logits", {4}}}};
  ModelTrace b = a;
  EXPECT_EQ(compare_models(a, b, 0).first, "");
  b.layers[1].second = {4.5}, b.layers[2].second = {6}, b.layers[3].second = {7};
  EXPECT_EQ(compare_models(a, b, 0.2).first, "blocks.0");
  b.card.config.depth = a.card.config.depth + 1;
  EXPECT_THROW(compare_models(a, b, 1), Error) << "a block more";
}

TEST(CompareModels, LayersComeInTheOrderOfTheirComputation) {
  const std::string path = VT_SOURCE_DIR "/tests/golden/models/hf_single";
  const ModelTrace trace = trace_model({.path = path, .open = {}, .engine = {.threads = 1}});
  std::vector<std::string> names;
  for (const auto& [name, values] : trace.layers) names.push_back(name);
  ASSERT_GE(names.size(), 4u);
  EXPECT_EQ(names[0], "images");
  EXPECT_EQ(names[1], "embed");
  EXPECT_EQ(names[2], "blocks.0");
  EXPECT_EQ(names.back(), "logits");
  EXPECT_EQ(
      static_cast<int64_t>(std::count_if(
          names.begin(), names.end(), [](const std::string& name) { return name.starts_with("blocks."); })),
      trace.card.config.depth);
  EXPECT_GT(trace.nodes, 0u);
  std::vector<float> zeros(trace.layers[0].second.size());
  const ModelTrace other = trace_model({.path = path, .open = {}, .engine = {.threads = 1}, .input = &zeros});
  EXPECT_EQ(other.layers[0].second, zeros);
  EXPECT_EQ(compare_models(trace, other, 1e-3).first, "images");
  EXPECT_EQ(compare_models(trace, trace, 0).first, "");
}

}  // namespace
}  // namespace vitrail
