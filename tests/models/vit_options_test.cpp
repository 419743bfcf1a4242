// How the numbers of a config and its options appear in the recorded model, node by node.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/lora.h"
#include "models/vit.h"

namespace vitrail {
namespace {

VitConfig small() {
  VitConfig c;
  c.image_height = c.image_width = 16;
  c.patch = 8;
  c.width = 8;
  c.depth = 3;
  c.heads = 2;
  c.mlp = 16;
  c.classes = 3;
  c.norm_eps = 1e-3;
  return c;
}

const Node* node_called(const Program& program, const std::string& name) {
  const auto found = std::find_if(program.nodes.begin(), program.nodes.end(),
                                  [&](const Node& node) { return node.name == name; });
  return found == program.nodes.end() ? nullptr : &*found;
}

// Returns "kind attributes" of a node; empty: there is none of that name.
std::string text_of(const Program& program, const std::string& name) {
  const Node* node = node_called(program, name);
  if (!node) return "";
  const std::string attributes = node->op->attributes();
  return std::string(node->op->kind()) + (attributes.empty() ? "" : " " + attributes);
}

TEST(VitOptions, NormsAndGelusAreTheConfigs) {
  VitConfig config = small();
  config.qk_norm = true;
  config.gelu = GeluKind::kTanh;
  const Program program = record_vit(config);
  for (const char* name : {"blocks.0.norm1", "blocks.2.norm2", "norm"})
    EXPECT_EQ(text_of(program, name), "layernorm eps=0.001") << name;
  EXPECT_EQ(text_of(program, "blocks.1.attn.qk_norm"), "qk_norm eps=0.001");
  EXPECT_EQ(text_of(program, "blocks.1.mlp.gelu"), "gelu tanh");
  EXPECT_EQ(text_of(record_vit(small()), "blocks.1.mlp.gelu"), "gelu erf");
}

TEST(VitOptions, OtherActivationsNormsAndPooling) {
  VitConfig config = small();
  config.activation = ActKind::kSilu;
  config.norm = NormKind::kRms;
  config.norm_place = NormPlace::kNone;
  config.pos = PosKind::kNone;
  config.pool = Pool::kMeanMax;
  config.registers = 2;
  config.pre_norm = true;
  const Program program = record_vit(config);
  EXPECT_EQ(text_of(program, "blocks.1.mlp.silu"), "activate silu");
  EXPECT_EQ(text_of(program, "blocks.0.norm1"), "rmsnorm eps=0.001");
  EXPECT_EQ(text_of(program, "norm_pre"), "rmsnorm eps=0.001");
  EXPECT_EQ(text_of(program, "max"), "max_tokens first=3");
  EXPECT_EQ(text_of(program, "mean_max"), "average");
  for (const char* name : {"norm", "pos_embed", "patch_embed.bias", "blocks.1.mlp.gelu"})
    EXPECT_EQ(text_of(program, name), "") << name;
}

TEST(VitOptions, NormsWithinABlockAreOfTheModelsKind) {
  VitConfig config = small();
  config.qk_norm = config.attn_norm = config.mlp_norm = true;
  for (const auto& [kind, text] : {std::pair{NormKind::kLayer, "norm eps=0.001"},
                                   {NormKind::kRms, "rmsnorm eps=0.001"},
                                   {NormKind::kSimple, "rmsnorm eps=0.001 simple"}}) {
    config.norm = kind;
    const Program program = record_vit(config);
    const std::string plain = kind == NormKind::kLayer ? "layer" + std::string(text) : text;
    for (const char* name : {"norm1", "attn.norm", "mlp.norm"})
      EXPECT_EQ(text_of(program, std::string("blocks.1.") + name), plain) << name;
    EXPECT_EQ(text_of(program, "blocks.1.attn.qk_norm"), "qk_" + std::string(text));
  }
}

TEST(VitOptions, StochasticDepthGrowsWithTheBlockAndDropsWholeSamples) {
  const Program program = record_vit(small(), {.drop_path = 0.5});
  EXPECT_EQ(text_of(program, "blocks.0.attn.residual.drop_path"), "") << "the first block is never dropped";
  for (const char* branch : {"attn", "mlp"}) {
    const std::string node = std::string(branch) + ".residual.drop_path";
    EXPECT_EQ(text_of(program, "blocks.1." + node), "dropout p=0.25 samples");
    EXPECT_EQ(text_of(program, "blocks.2." + node), "dropout p=0.5 samples");
  }
}

TEST(VitOptions, DropoutStandsAfterPositionsAndInEveryBranch) {
  const Program program = record_vit(small(), {.dropout = 0.25});
  for (const char* name : {"pos_drop", "blocks.0.attn.drop", "blocks.1.mlp.drop1", "blocks.2.mlp.drop2"})
    EXPECT_EQ(text_of(program, name), "dropout p=0.25") << name;
}

TEST(VitOptions, PoolingLeavesThePrefixOut) {
  VitConfig config = small();
  config.pool = Pool::kMean;
  EXPECT_EQ(text_of(record_vit(config), "mean"), "mean_tokens first=1");
  config.class_token = false;
  EXPECT_EQ(text_of(record_vit(config), "mean"), "mean_tokens first=0");
  config = small();
  config.distilled = true;
  const Program distilled = record_vit(config);
  EXPECT_EQ(text_of(distilled, "class"), "select_token index=0");
  EXPECT_EQ(text_of(distilled, "distillation"), "select_token index=1");
}

TEST(VitOptions, PoolingMayTakeThePrefixToo) {
  VitConfig config = small();
  config.pool_prefix = true;
  for (const auto& [pool, name, text] : {std::tuple{Pool::kMean, "mean", "mean_tokens first=0"},
                                         {Pool::kMax, "max", "max_tokens first=0"},
                                         {Pool::kMap, "attn_pool.patches", ""}}) {
    config.pool = pool;
    EXPECT_EQ(text_of(record_vit(config), name), text);
  }
  config.pool_prefix = false;
  EXPECT_EQ(text_of(record_vit(config), "attn_pool.patches"), "drop_tokens first=1");
}

TEST(VitOptions, RefinedPatchesAreThoseOfAllTokens) {
  VitConfig config = small();
  config.pool = Pool::kPrr;
  EXPECT_EQ(text_of(record_vit(config), "prr"), "self_attention heads=2");
  EXPECT_EQ(text_of(record_vit(config), "class"), "select_token index=0");
  config.class_token = false;
  config.registers = 2;
  EXPECT_EQ(text_of(record_vit(config), "mean"), "mean_tokens first=0") << "registers too";
  EXPECT_EQ(text_of(record_vit(config), "class"), "");
}

TEST(VitOptions, AModelMayHaveNoBlock) {
  VitConfig config = small();
  config.depth = 0;
  EXPECT_EQ(text_of(record_vit(config), "class"), "select_token index=0") << "which no block has done";
  EXPECT_EQ(text_of(record_vit(config), "norm"), "layernorm eps=0.001");
  EXPECT_EQ(text_of(record_vit(config), "blocks.0.norm1"), "");
  Builder builder;
  EXPECT_NO_THROW(record_vit_for_training(builder, config, {.dropout = 0.1, .drop_path = 0.1}));
}

TEST(VitOptions, ANormOfThePatchesHasTimmsEpsilon) {
  VitConfig config = small();
  for (const auto& [kind, text] : {std::pair{EmbedNorm::kLayer, "layernorm eps=1e-06"},
                                   {EmbedNorm::kRms, "rmsnorm eps=1e-06"},
                                   {EmbedNorm::kSimple, "rmsnorm eps=1e-06 simple"},
                                   {EmbedNorm::kNone, ""}}) {
    config.embed_norm = kind;
    EXPECT_EQ(text_of(record_vit(config), "patch_embed.norm"), text);
    EXPECT_EQ(text_of(record_vit(config), "norm"), "layernorm eps=0.001");
  }
}

TEST(VitOptions, TheGeluBeforeTheHeadHasAFormOfItsOwn) {
  VitConfig config = small();
  config.pre_logits = true;
  config.pre_logits_act = ActKind::kGelu;
  config.gelu = GeluKind::kTanh;
  EXPECT_EQ(text_of(record_vit(config), "pre_logits.gelu"), "gelu erf");
  EXPECT_EQ(text_of(record_vit(config), "blocks.0.mlp.gelu"), "gelu tanh");
  config.pre_logits_gelu = GeluKind::kTanh;
  config.gelu = GeluKind::kErf;
  EXPECT_EQ(text_of(record_vit(config), "pre_logits.gelu"), "gelu tanh");
}

TEST(VitOptions, AdaptersAreScaledByAlphaOverRankAndStandWhereAsked) {
  const auto recorded = [](bool attention, bool mlp) {
    return record_vit(small(), {.lora = {.rank = 4, .alpha = 6, .attention = attention, .mlp = mlp}});
  };
  for (const char* gemm : {"attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"}) {
    const std::string node = std::string("blocks.1.") + gemm + ".lora_scale";
    const bool is_mlp = std::string_view(gemm).starts_with("mlp");
    EXPECT_EQ(text_of(recorded(true, true), node), "multiply 1.5") << gemm;
    EXPECT_EQ(text_of(recorded(true, false), node).empty(), is_mlp) << gemm;
    EXPECT_EQ(text_of(recorded(false, true), node).empty(), !is_mlp) << gemm;
  }
}

TEST(Lora, MergingAddsTheScaledGemm) {
  const float a[] = {1, 2, 3, 4, 5, 6};  // [rank 2][inputs 3]
  const float b[] = {1, 10, 2, 20};      // [outputs 2][rank 2]
  float weight[] = {100, 200, 300, 400, 500, 600};
  lora_merge({.rank = 2, .alpha = 3}, a, b, 2, 3, weight);
  const float expected[] = {100 + 1.5f * 41, 200 + 1.5f * 52,  300 + 1.5f * 63,
                            400 + 1.5f * 82, 500 + 1.5f * 104, 600 + 1.5f * 126};
  for (int i = 0; i < 6; ++i) EXPECT_FLOAT_EQ(weight[i], expected[i]) << i;
}

}  // namespace
}  // namespace vitrail
