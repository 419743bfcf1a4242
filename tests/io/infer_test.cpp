// What is told from the shapes of tensors alone.
#include "io/dialects/infer.h"

#include "io/dialects/bind.h"
#include "io/names_only.h"

namespace vitrail {
namespace {

std::string infers(const NamesOnly& source) {
  return error_of([&] { infer_facts(bind_tensors(source), source); });
}
VitConfig inferred(const NamesOnly& source) {
  return infer_facts(bind_tensors(source), source).config;
}

TEST(InferSizes, TheImageOfASquareGrid) {
  const struct {
    int64_t positions, side;
    bool for_prefix, square;
  } rows[] = {{5, 8, true, true}, {4, 8, false, true}, {17, 16, true, true},
              {2, 4, true, true}, {1, 4, false, true}, {7, 4, true, false}};
  for (const auto& row : rows) {
    const NamesOnly source = timm_names(1, row.positions);
    const Facts facts = infer_facts(bind_tensors(source), source);
    EXPECT_EQ(facts.config.image_height, row.side) << row.positions;
    EXPECT_EQ(facts.config.image_width, row.side) << row.positions;
    EXPECT_EQ(facts.config.pos_for_prefix, row.for_prefix) << row.positions;
    EXPECT_EQ(facts.square, row.square) << row.positions;
    EXPECT_EQ(facts.pos_rows, row.positions);
  }
  NamesOnly registers = timm_names(1, 8);
  registers.add("reg_token", {1, 2, 8});
  EXPECT_FALSE(inferred(registers).pos_for_prefix) << "registers have no positions as a rule";
  EXPECT_EQ(inferred(without(timm_names(), "pos_embed")).image_height, 224);
  NamesOnly large = reshaped(without(timm_names(), "pos_embed"), "patch_embed.proj.weight", {8, 3, 300, 100});
  EXPECT_EQ(inferred(large).image_height, 300);
  EXPECT_EQ(inferred(large).image_width, 200);
  EXPECT_EQ(inferred(large).patch, 300);
  EXPECT_EQ(inferred(large).patch_width, 100);
}

TEST(InferSizes, HeadsAreReadOffOrGuessed) {
  NamesOnly source = timm_names();
  EXPECT_EQ(inferred(source).heads, 1) << "8 is no multiple of 64";
  source.add("blocks.0.attn.q_norm.weight", {4});
  EXPECT_EQ(inferred(source).heads, 2);
  EXPECT_TRUE(infer_facts(bind_tensors(source), source).known.contains("heads"));
  EXPECT_FALSE(infer_facts(bind_tensors(timm_names()), timm_names()).known.contains("heads"));
}

TEST(InferSizes, WhatTheTensorsSay) {
  const VitConfig c = inferred(timm_names(3));
  EXPECT_EQ(c.width, 8);
  EXPECT_EQ(c.depth, 3);
  EXPECT_EQ(c.mlp, 16);
  EXPECT_EQ(c.classes, 5);
  EXPECT_EQ(c.channels, 3);
  EXPECT_EQ(c.patch_width, 0);
  EXPECT_EQ(c.pool, Pool::kCls);
  EXPECT_EQ(inferred(without(timm_names(1, 4), "cls_token")).pool, Pool::kMean);
  NamesOnly fc = without(timm_names(), "norm.");
  fc.add("fc_norm.weight", {8});
  EXPECT_EQ(inferred(fc).norm_place, NormPlace::kAfterPool);
  EXPECT_EQ(inferred(fc).pool, Pool::kMean);
  NamesOnly both = timm_names();
  both.add("fc_norm.weight", {8});
  EXPECT_EQ(infers(both),
            "data: the model has a layernorm both before and after pooling; only one of them is supported");
  NamesOnly token = timm_names(1, 6);
  token.add("dist_token", {1, 1, 8});
  EXPECT_EQ(infers(token),
            "data: the model has a distillation token but no head for it; only DeiT with both heads is "
            "supported");
  EXPECT_EQ(infers(without(timm_names(), "blocks.0.mlp.")), "data: the blocks of the file hold no MLP");
  EXPECT_EQ(infers(reshaped(timm_names(), "head.bias", {6})),
            "data: tensors contradict each other: \"head.bias\" [6] and \"head.weight\" [5, 8]");
  EXPECT_EQ(infers(reshaped(timm_names(), "norm.bias", {8, 1})),
            "data: \"norm.bias\" has shape [8, 1]; expected 1 dims");
}

TEST(InferSizes, WithoutABlockConfigsSayWhatBlocksWouldHave) {
  const NamesOnly source = without(timm_names(), "blocks.");
  const Facts facts = infer_facts(bind_tensors(source), source);
  EXPECT_EQ(facts.config.depth, 0);
  EXPECT_EQ(facts.config.mlp, 3072);
  for (const char* field : {"mlp", "qkv_bias", "qk_norm", "layer_scale", "attn_norm", "mlp_norm"})
    EXPECT_FALSE(facts.known.contains(field)) << field;
  for (const char* field : {"depth", "width", "class_token", "norm_place"})
    EXPECT_TRUE(facts.known.contains(field)) << field;
  EXPECT_TRUE(infer_facts(bind_tensors(timm_names()), timm_names()).known.contains("mlp"));
}

TEST(InferSizes, LimitsOfWhatTheTensorsMayHave) {
  const auto patch = [](int64_t rows, int64_t columns) {
    return infers(reshaped(timm_names(), "patch_embed.proj.weight", {8, 3, rows, columns}));
  };
  EXPECT_EQ(patch(1024, 1024), "");
  EXPECT_EQ(patch(1025, 4),
            "data: the tensors have 1025 pixels on a side of a patch; between 1 and 1024 are supported");
  EXPECT_EQ(patch(4, 1025),
            "data: the tensors have 1025 pixels on a side of a patch; between 1 and 1024 are supported");
  EXPECT_NE(patch(0, 4), "");
  const auto registers = [](int64_t count) {
    NamesOnly source = timm_names();
    source.add("reg_token", {1, count, 8});
    return infers(source);
  };
  EXPECT_EQ(registers(1024), "");
  EXPECT_EQ(registers(1025), "data: the tensors have 1025 registers; between 0 and 1024 are supported");
  EXPECT_EQ(infers(timm_names(1, 65536 + 1024)), "");
  EXPECT_EQ(infers(timm_names(1, 65536 + 1025)),
            "data: the tensors have 66561 positions; between 0 and 66560 are supported");
}

TEST(InferSizes, PositionsFitTheImage) {
  VitConfig c;
  c.image_height = 32, c.image_width = 16, c.patch = 8;  // 8 cells
  const auto settled = [&](int64_t rows) {
    VitConfig config = c;
    Facts facts;
    facts.pos_rows = rows;
    const std::string said = error_of([&] { settle_positions(facts, "a guess", &config); });
    return said.empty() ? (config.pos_for_prefix ? "with" : "without") : said;
  };
  EXPECT_EQ(settled(9), "with");
  EXPECT_EQ(settled(8), "without");
  EXPECT_EQ(settled(0), "with");
  EXPECT_EQ(settled(10),
            "data: an image of 32 x 16 (a guess) in patches of 8 needs 8 positions, or 9 with those of the "
            "tokens before the patches; the file has 10");
}

TEST(InferSizes, EveryParameterIsThereOnceAndWhole) {
  VitConfig c = inferred(timm_names());
  const auto said = [&](const NamesOnly& source, const VitConfig& config) {
    return error_of([&] { check_complete(config, bind_tensors(source), source); });
  };
  EXPECT_EQ(said(timm_names(), c), "");
  c.depth = 2;
  EXPECT_EQ(said(timm_names(), c),
            "data: the file lacks blocks.1.norm1.weight, blocks.1.norm1.bias, blocks.1.attn.qkv.weight, "
            "blocks.1.attn.qkv.bias, blocks.1.attn.proj.weight and 7 more");
  c.depth = 1;
  EXPECT_EQ(said(timm_names(2), c),
            "data: \"blocks.1.attn.proj.bias\" (blocks.1.attn.proj.bias) is not part of the "
            "architecture the config describes");
  EXPECT_EQ(said(reshaped(timm_names(), "norm.bias", {8}, DType::kI32), c),
            "data: \"norm.bias\" holds i32; expected floating point numbers");
  EXPECT_EQ(said(reshaped(timm_names(), "norm.bias", {9}), c),
            "data: \"norm.bias\" has shape [9]; norm.bias needs [8]");
}

}  // namespace
}  // namespace vitrail
