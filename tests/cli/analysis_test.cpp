#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "api/attention_maps.h"
#include "api/classify.h"
#include "base/error.h"

namespace vitrail::cli {
namespace {

TEST(TopClasses, SortedWithLabels) {
  const auto top = top_classes(std::vector<float>{0.1f, 0.4f, 0.1f, 0.4f, 0.0f}, {"a", "b"}, 3);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].label, "b");
  EXPECT_EQ(top[1].label, "class 3") << "equal ones by index";
  EXPECT_EQ(top[2].index, 0);
  EXPECT_EQ(top_classes(std::vector<float>{0.5f}, {}, 9).size(), 1u);
  EXPECT_EQ(top_classes_json(top)[0]["class"], 1);
  EXPECT_NE(top_classes_text(top, 2).find("40.00 %"), std::string::npos);
}

VitConfig small_config(bool class_token) {
  VitConfig config;
  config.image_height = 32, config.image_width = 48, config.patch = 16;
  config.heads = 2, config.width = 8, config.class_token = class_token;
  config.pool = class_token ? Pool::kCls : Pool::kMean;
  return config;
}

// Head h of every token looks only at token `target`.
std::vector<float> looking_at(const VitConfig& config, const std::vector<size_t>& targets) {
  const auto tokens = static_cast<size_t>(config.tokens());
  std::vector<float> weights(targets.size() * tokens * tokens, 0.0f);
  for (size_t h = 0; h < targets.size(); ++h)
    for (size_t n = 0; n < tokens; ++n) weights[(h * tokens + n) * tokens + targets[h]] = 1;
  return weights;
}

TEST(AttentionMaps, HeadsAndTheirMean) {
  for (const bool class_token : {true, false}) {
    const VitConfig config = small_config(class_token);
    const size_t first = class_token ? 1 : 0;
    const std::vector<float> weights = looking_at(config, {first + 2, first + 5});
    EXPECT_EQ(head_map(weights, config, 1), (PatchMap{0, 0, 0, 0, 0, 1}));
    EXPECT_EQ(mean_map(weights, config), (PatchMap{0, 0, 0.5, 0, 0, 0.5}));
  }
}

TEST(AttentionMaps, RolloutMultipliesLayersWithTheIdentity) {
  const VitConfig config = small_config(true);
  // Layer 1 sends every token to patch 0, layer 2 to patch 1: the class row is 1/4 itself, 1/4 patch 0
  // straight from layer 1, and of the half that reads patch 1, half stays there and half was patch 0 before.
  const PatchMap map = rollout_map({looking_at(config, {1, 1}), looking_at(config, {2, 2})}, config);
  EXPECT_EQ(map, (PatchMap{0.5, 0.25, 0, 0, 0, 0}));
}

TEST(AttentionMaps, StretchedAndEvenness) {
  EXPECT_EQ(stretched({2, 2, 2}), (PatchMap{0, 0, 0}));
  EXPECT_EQ(stretched({0, 1, 2}, 0, 1), (PatchMap{0, 0.5, 1}));
  EXPECT_NEAR(evenness({1, 1, 1, 1}), 1, 1e-12);
  EXPECT_NEAR(evenness({0, 1, 0, 0}), 0, 1e-12);
}

}  // namespace
}  // namespace vitrail::cli
