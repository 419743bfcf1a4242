// A model's card as people and scripts read it.
#include "io/cards/card_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "models/vit_params.h"
#include "models/zoo.h"

namespace vitrail {
namespace {

TEST(ModelCard, DifferencesNameTheField) {
  ModelCard a, b;
  EXPECT_TRUE(card_differences(a, b).empty());
  b.config.norm_eps = 1e-12;
  b.preprocess.interpolation = Interpolation::kBilinear;
  b.labels = {"cat"};
  b.scores = ScoreKind::kSigmoid;
  const auto found = card_differences(a, b);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].find("norm_eps: "), 0u);
  EXPECT_EQ(found[1], "interpolation: \"bicubic\" and \"bilinear\"");
  EXPECT_EQ(found[2], "scores: softmax and sigmoid");
  EXPECT_EQ(found[3], "labels: 0 and 1");
}

TEST(ModelCard, TextSaysWhatMatters) {
  ModelCard card;
  card.config.arch = "vit_base_patch16_224";
  card.notes = {"first", "second"};
  const std::string text = card_text(card, 0);
  for (const char* part :
       {"vit_base_patch16_224 (width 768, 12 blocks, 12 heads, MLP 3072, patch 16)", "86,567,656",
        "224 x 224, 3 channels, 197 tokens", "1,000 classes, pooled by cls", "none", "timm",
        "layernorm epsilon 1e-06, GELU erf, positions learned, resized as timm does",
        "shorter side to 248, centre crop 224 x 224, bicubic (pillow), mean 0.5 0.5 0.5, std 0.5 0.5 0.5",
        "first", "second"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find("from"), text.rfind("from")) << "said once";
  EXPECT_EQ(text.find("architecture"), 0u);
  EXPECT_EQ(card_text(card, 3).find("architecture"), 3u);
}

TEST(ModelCard, ModelsWithoutANameOrAHead) {
  ModelCard card;
  VitConfig& c = card.config;
  c.image_height = 32, c.image_width = 48, c.patch = 16, c.width = 8, c.depth = c.heads = c.channels = 1,
  c.mlp = 20;
  c.classes = 0, c.norm = NormKind::kRms, c.norm_eps = 0.5, c.activation = ActKind::kRelu;
  c.pos = PosKind::kNone, c.pos_resize = PosResize::kJax, c.class_token = false, c.pool = Pool::kMean;
  EXPECT_EQ(architecture_text(c), "ViT, width 8, 1 block, 1 head, MLP 20, patch 16");
  EXPECT_EQ(numerics_text(c), "RMSNorm epsilon 0.5, activation relu, positions none, resized as jax does");
  const std::string text = card_text(card, 0);
  for (const char* part : {"32 x 48, 1 channel, 6 tokens", "8 features, pooled by mean"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  c.classes = 1;
  card.labels = {"yes"};
  card.dialect = Dialect::kGoogle;
  for (const char* part : {"1 class, pooled by mean", "google"})
    EXPECT_NE(card_text(card, 0).find(part), std::string::npos) << part;
}

TEST(ModelCard, ImagesInWords) {
  PreprocessConfig p{.height = 32, .width = 48, .resize = 40};
  p.mean = {0.1, 0.25, 0}, p.std = {1, 2, 3};
  const std::string colours = ", mean 0.1 0.25 0, std 1 2 3";
  EXPECT_EQ(preprocess_text(p), "shorter side to 40, centre crop 32 x 48, bicubic (pillow)" + colours);
  p.mode = ResizeMode::kStretchCrop, p.interpolation = Interpolation::kLanczos;
  EXPECT_EQ(preprocess_text(p), "stretched to 40 x 60, centre crop 32 x 48, lanczos (pillow)" + colours);
  p.mode = ResizeMode::kStretch, p.resampler = Resampler::kTf;
  EXPECT_EQ(preprocess_text(p), "stretched to 32 x 48, lanczos (tf)" + colours);
  p.resize_longer = 70;
  const std::pair<ResizeMode, const char*> rows[] = {
      {ResizeMode::kNone, "as large as they are, centre crop 32 x 48"},
      {ResizeMode::kLongerSide, "within 40 x 70, centre crop or borders 32 x 48"},
      {ResizeMode::kWithin, "within 40 x 70, centre crop or borders 32 x 48"},
      {ResizeMode::kShorterMost, "shorter side to 40, longer to 70 at most, centre crop 32 x 48"},
      {ResizeMode::kCropStretch, "centre crop as 32 x 48 of 40 x 70, stretched to 32 x 48"},
      {ResizeMode::kShorterDown, "shorter side to 40, in multiples of 70, centre crop 32 x 48"},
      {ResizeMode::kShorterUp, "shorter side to 40, in multiples of 70, centre crop 32 x 48"},
      {ResizeMode::kSquare, "longer side to 40, borders 32 x 48"},
      {ResizeMode::kCorner, "longer side to 40, at the top left of 32 x 48"},
      {ResizeMode::kThumbnail, "shorter side, then longer one, to borders 32 x 48"}};
  for (const auto& [mode, text] : rows) {
    p.mode = mode;
    EXPECT_EQ(preprocess_text(p), text + std::string(", lanczos (tf)") + colours);
  }
}

TEST(ModelCard, ScriptsGetEveryField) {
  ModelCard card;
  card.path = "there";
  card.config.classes = 3;
  card.config.depth = 11;
  card.labels = {"a", "b", "c"};
  card.scores = ScoreKind::kSigmoid;
  card.dialect = Dialect::kHf;
  card.notes = {"n", "w"};
  card.warnings = {"w"};
  const auto json = card_json(card);
  EXPECT_EQ(json["path"], "there");
  EXPECT_EQ(json["dialect"], "hf");
  EXPECT_EQ(json["params"], count_params(card.config));
  EXPECT_EQ(json["config"]["depth"], 11);
  EXPECT_EQ(json["config"]["pool"], "cls");
  EXPECT_EQ(json["preprocess"]["mode"], "shorter_side");
  EXPECT_EQ(json["preprocess"]["resize"], 248);
  EXPECT_EQ(json["labels"], 3);
  EXPECT_EQ(json["scores"], "sigmoid");
  EXPECT_EQ(json["notes"].size(), 2u);
  EXPECT_EQ(json["warnings"].dump(), "[\"w\"]");
}

TEST(ModelCard, ArchitecturesAsATableAndForScripts) {
  const auto json = zoo_json();
  ASSERT_EQ(json.size(), zoo().size());
  size_t found = 0;
  for (const auto& row : json) {
    if (row["name"] != "bigvision_m_patch16_224") continue;
    ++found;
    const VitConfig& c = find_architecture("bigvision_m_patch16_224").config;
    EXPECT_EQ(row["params"], count_params(c));
    EXPECT_EQ(row["macs"], count_macs(c));
    EXPECT_EQ(row["image_height"], 224);
    EXPECT_EQ(row["image_width"], 224);
    EXPECT_EQ(row["pool"], "mean");
    EXPECT_EQ(row["gelu"], "tanh");
    EXPECT_EQ(row["images"],
              "shorter side to 256, centre crop 224 x 224, bicubic (tf_area), mean 0.5 0.5 0.5, "
              "std 0.5 0.5 0.5");
  }
  EXPECT_EQ(found, 1u);
  const std::string text = zoo_text(), line = text.substr(text.find("\nvit_base_patch16_384") + 1);
  const std::string row = line.substr(0, line.find('\n'));
  size_t at = 0;
  for (const char* part : {"vit_base_patch16_384", "86,859,496", "55.48", "384 x 384", "cls", "erf",
                           "shorter side to 384, centre crop 384 x 384"}) {
    at = row.find(part, at);
    EXPECT_NE(at, std::string::npos) << part << " in turn in " << row;
  }
}

}  // namespace
}  // namespace vitrail
