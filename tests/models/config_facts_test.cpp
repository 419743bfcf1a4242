// What is advised where sizes do not fit, parameters of rarer forms, and costs counted by hand.
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/program.h"
#include "models/lora.h"
#include "models/vit.h"
#include "models/vit_init.h"
#include "models/zoo.h"

namespace vitrail {
namespace {

struct Refused {
  std::string message, hint;
  bool operator==(const Refused&) const = default;
};
template <typename Body>
Refused refused_by(Body&& body) {
  try {
    body();
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    return {error.message(), error.hint()};
  }
}
Refused refused_with(const std::function<void(VitConfig&)>& change) {
  VitConfig config;
  change(config);
  return refused_by([&] { validate(config); });
}

TEST(ConfigAdvice, NamesSizesThatFit) {
  EXPECT_EQ(
      refused_with([](VitConfig& c) { c.heads = 10; }),
      (Refused{"model.heads (10) does not divide model.width (768)", "model.heads=8, or model.width=770"}));
  EXPECT_EQ(refused_with([](VitConfig& c) { c.patch = 300; }),
            (Refused{"model.patch (300) is larger than the image (224 x 224)",
                     "model.patch=224, or model.image=300"}));
  EXPECT_EQ(refused_with([](VitConfig& c) { c.image_height = 96, c.image_width = 36, c.patch = 40; }),
            (Refused{"model.patch (40) is larger than the image (96 x 36)",
                     "model.patch=12, or model.image_height=120 and model.image_width=40"}));
  EXPECT_EQ(refused_with([](VitConfig& c) { c.patch_width = 300; }),
            (Refused{"model.patch (16) is larger than the image (224 x 224)",
                     "model.image_height=224 and model.image_width=300"}));
  EXPECT_EQ(refused_with([](VitConfig& c) { c.pos = PosKind::kSinCos2d; }),
            (Refused{"sincos2d positions have no row for the class token or registers",
                     "model.pos_for_prefix=false beside model.pos=sincos2d"}));
  EXPECT_EQ(refused_with([](VitConfig& c) {
              c.pos = PosKind::kSinCos2d, c.pos_for_prefix = false, c.width = 770, c.heads = 10;
            }),
            (Refused{"sincos2d positions need a model.width divisible by 4, not 770", "model.width=772"}));
  EXPECT_EQ(refused_with([](VitConfig& c) { c.norm_eps = 2; }).message,
            "model.norm_eps is 2; it must be between 0 and 1");
  EXPECT_EQ(refused_with([](VitConfig& c) { c.depth = 1025; }).message,
            "model.depth is 1025; it must be between 0 and 1024");
  VitConfig asked;
  asked.image_height = 230;
  EXPECT_EQ(refused_by([&] { require_patches_cover(asked, VitConfig()); }),
            (Refused{"model.patch (16) does not divide the image (230 x 224)",
                     "model.patch=2, or model.image_height=240 and model.image_width=224"}));
  asked = VitConfig();
  asked.image_width = 230;
  EXPECT_NE(refused_by([&] { require_patches_cover(asked, VitConfig()); }), Refused{});
}

TEST(ConfigAdvice, RarerSizesAtTheirLimits) {
  for (const auto& [value, allowed] :
       {std::pair<int64_t, bool>{-1, false}, {0, true}, {1024, true}, {1025, false}})
    EXPECT_EQ(refused_with([&, v = value](VitConfig& c) {
                c.image_width = 2048, c.patch_width = v;
              }).message.empty(),
              allowed)
        << value;
  for (const auto& [value, allowed] :
       {std::pair<int64_t, bool>{-1, false}, {0, true}, {65536, true}, {65537, false}})
    EXPECT_EQ(refused_with([&, v = value](VitConfig& c) {
                c.pre_logits = true, c.representation = v;
              }).message.empty(),
              allowed)
        << value;
  for (const auto& [batch, allowed] :
       {std::pair<int64_t, bool>{0, false}, {1 << 24, true}, {(1 << 24) + 1, false}})
    EXPECT_EQ(refused_by([&, b = batch] { record_vit(VitConfig(), {.batch = b}); }).message,
              allowed ? "" : "batch " + std::to_string(batch) + " is not between 1 and 16777216");
  EXPECT_EQ(refused_by([] { validate(LoraConfig{.rank = 4097}); }).message,
            "lora.rank 4097 is not between 0 and 4096");
  EXPECT_EQ(refused_by([] { validate(LoraConfig{.rank = 2, .attention = false}); }).message,
            "lora.rank 2 adapts nothing: set lora.attention or lora.mlp");
}

VitConfig small_config() {
  VitConfig c;
  c.image_height = 8, c.image_width = 12, c.patch = 4, c.channels = 2;  // 6 patches
  c.width = 6, c.depth = 1, c.heads = 2, c.mlp = 10, c.classes = 5;
  return c;
}

TEST(CostFacts, MacsByHand) {
  VitConfig c = small_config();
  const int64_t d = 6, f = 10, embed = 6 * 4 * 4 * 2 * d;
  const auto block = [&](int64_t n) { return 4 * n * d * d + 2 * n * n * d + 2 * n * d * f; };
  EXPECT_EQ(count_macs(c), embed + block(7) + d * 5);
  c.distilled = true;
  EXPECT_EQ(count_macs(c), embed + block(8) + 2 * d * 5);
  EXPECT_EQ(count_run_macs(c), count_macs(c)) << "two tokens are read";
  c = small_config();
  c.pre_logits = true, c.representation = 4;
  EXPECT_EQ(count_macs(c), embed + block(7) + d * 4 + 4 * 5);
  c = small_config();
  c.pool = Pool::kMap;
  EXPECT_EQ(count_macs(c), embed + block(7) + 2 * (6 + 1) * d * d + 2 * 6 * d + 2 * d * f + d * 5);
  c.pool_prefix = true;
  EXPECT_EQ(count_macs(c), embed + block(7) + 2 * (7 + 1) * d * d + 2 * 7 * d + 2 * d * f + d * 5);
  c = small_config();
  c.pool = Pool::kPrr;
  EXPECT_EQ(count_macs(c), embed + block(7) + 2 * 7 * 7 * d + d * 5);
  c = small_config();
  c.depth = 0;
  EXPECT_EQ(count_macs(c), embed + d * 5);
  EXPECT_EQ(count_run_macs(c), count_macs(c)) << "no block reads the class token alone";
  c = small_config();
  c.patch_width = 2;  // twice as many, half as wide
  EXPECT_EQ(count_macs(c), 12 * 4 * 2 * 2 * d + block(13) + d * 5);
}

TEST(LoraFacts, AdaptersHaveTheInputsAndOutputsOfTheirLinears) {
  const VitConfig c = small_config();
  std::vector<std::string> found;
  for (const ParamSpec& spec : lora_params(c, {.rank = 3, .mlp = true}))
    found.push_back(spec.name + " " + to_string(spec.shape));
  EXPECT_EQ(found,
            (std::vector<std::string>{
                "blocks.0.attn.qkv.lora_a.weight [R3 D6]", "blocks.0.attn.qkv.lora_b.weight [T3 H2 E3 R3]",
                "blocks.0.attn.proj.lora_a.weight [R3 H2 E3]", "blocks.0.attn.proj.lora_b.weight [D6 R3]",
                "blocks.0.mlp.fc1.lora_a.weight [R3 D6]", "blocks.0.mlp.fc1.lora_b.weight [F10 R3]",
                "blocks.0.mlp.fc2.lora_a.weight [R3 F10]", "blocks.0.mlp.fc2.lora_b.weight [D6 R3]"}));
  EXPECT_TRUE(lora_params(c, {}).empty());
  VitConfig pooling = c;
  pooling.pool = Pool::kMap;
  int pools = 0;
  for (const ParamSpec& spec : vit_params(pooling)) {
    if (!spec.pools) continue;
    ++pools;
    EXPECT_FALSE(lora_applies({.rank = 1, .mlp = true}, spec)) << spec.name << ": blocks alone";
  }
  EXPECT_EQ(pools, 13) << "the latent, three linears, a norm and an MLP";
}

TEST(RecordFacts, AttentionOfOneBlockAndFeaturesOfTwoTokens) {
  VitConfig c = small_config();
  c.depth = 3;
  const auto names = [](const Program& program) {
    std::vector<std::string> list;
    for (const auto& output : program.outputs) list.push_back(output.name);
    std::sort(list.begin(), list.end());
    return list;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(record_vit(c, {.attention = true, .attention_block = 1})),
            (Names{"blocks.1.attention", "logits"}));
  EXPECT_EQ(names(record_vit(c, {.attention = true})).size(), 4u);
  EXPECT_EQ(names(record_vit(c, {.probabilities = true})), (Names{"logits", "probs"}));
  c.distilled = true, c.classes = 0;
  EXPECT_EQ(names(record_vit(c)), Names{"features"});
  c.pos = PosKind::kSinCos2d;
  EXPECT_EQ(with_learned_positions(c).pos, PosKind::kLearned);
  c.pos = PosKind::kNone;
  EXPECT_EQ(with_learned_positions(c).pos, PosKind::kNone);
}

TEST(ZooFacts, BigVisionsOwnAndSharesOfCrops) {
  const PreprocessConfig& p = find_architecture("bigvision_m_patch16_224").preprocess;
  EXPECT_EQ(p.resampler, Resampler::kTfArea);
  EXPECT_EQ(p.resize, 256);
  EXPECT_EQ(p.mean[0], 0.5);
  for (const ZooEntry& entry : zoo()) {
    const bool big_vision = entry.config.arch.starts_with("bigvision");
    EXPECT_EQ(entry.preprocess.resampler == Resampler::kTfArea, big_vision) << entry.config.arch;
    EXPECT_EQ(entry.config.pos_resize == PosResize::kJax, big_vision) << entry.config.arch;
    EXPECT_EQ(entry.config.pos_resize == PosResize::kFlexivit, entry.config.arch.starts_with("flexivit"));
    EXPECT_EQ(entry.preprocess.resize, side_before_crop(entry.preprocess.height, entry.preprocess.crop_pct));
    if (big_vision) {
      EXPECT_EQ(entry.preprocess.crop_pct, 0.875);
      EXPECT_EQ(entry.config.gelu, GeluKind::kTanh);
      EXPECT_FALSE(entry.config.class_token);
      EXPECT_EQ(entry.config.classes, 1000);
    }
  }
  EXPECT_TRUE(is_architecture("vit_base_patch16_224.tag"));
  EXPECT_FALSE(is_architecture("vit_base_patch16_22"));
}

}  // namespace
}  // namespace vitrail
