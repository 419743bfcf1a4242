// Rarer arguments of timm's, and what they do to one another: what its config states, and what opening such a
// model makes of it.
#include "base/values.h"
#include "io/cards/card_text.h"
#include "io/cards/stated_config.h"
#include "io/config_json.h"
#include "io/library_forms.h"
#include "io/names_only.h"

namespace vitrail {
namespace {

constexpr const char* kBase = "vit_base_patch16_224";

StatedConfig timm(const char* architecture, const Json& args, const Json& cfg = Json::object()) {
  return read_timm_config({{"architecture", architecture}, {"model_args", args}, {"pretrained_cfg", cfg}});
}

TEST(TimmRarer, ANormOfThePatches) {
  for (const auto& [name, kind] : {std::pair{"layernorm", "layer"},
                                   {"LayerNormFp32", "layer"},
                                   {"rms_norm", "rms"},
                                   {"SimpleNorm", "simple"},
                                   {"", "none"}})
    EXPECT_EQ(timm(kBase, {{"embed_norm_layer", name}}).model.at("embed_norm"), kind) << name;
}

// An architecture's own norm has its own epsilon; one that an argument names has timm's.
TEST(TimmRarer, NamedNormsHaveTimmsEpsilon) {
  constexpr const char* kClip = "vit_base_patch16_clip_224";
  EXPECT_EQ(timm(kClip, Json::object()).model.at("norm_eps"), 1e-5);
  for (const Json& name : {Json("layernorm"), Json("rmsnorm"), Json("simplenorm"), Json(""), Json()})
    EXPECT_EQ(timm(kClip, {{"norm_layer", name}}).model.at("norm_eps"), 1e-6) << name;
}

TEST(TimmRarer, AnEmptyNameIsTimmsUsualLayer) {
  EXPECT_EQ(timm("vit_base_patch32_clip_quickgelu_224", {{"act_layer", ""}}).model.at("activation"), "gelu");
  EXPECT_EQ(timm("test_vit4", Json::object()).model.at("norm"), "rms");
  EXPECT_EQ(timm("test_vit4", {{"norm_layer", ""}}).model.at("norm"), "layer");
}

// timm takes a null of its config for what Python takes None for, not for the architecture's own.
TEST(TimmRarer, NullIsNotTheArchitecturesOwn) {
  const std::tuple<const char*, const char*, const char*, Json> rows[] = {
      {"vit_base_patch32_clip_quickgelu_224", "act_layer", "activation", "gelu"},
      {"vit_base_patch16_clip_224", "pre_norm", "pre_norm", false},
      {"deit3_base_patch16_224", "init_values", "layer_scale", false},
      {"deit3_base_patch16_224", "no_embed_class", "pos_for_prefix", true},
      {kBase, "qkv_bias", "qkv_bias", false},
      {kBase, "class_token", "class_token", false},
      {kBase, "final_norm", "norm_place", "none"},
      {kBase, "pos_embed", "pos", "none"},
      {kBase, "depth", "depth", 12},
  };
  for (const auto& [architecture, key, field, value] : rows)
    EXPECT_EQ(timm(architecture, {{key, nullptr}}).model.at(field), value) << key;
}

TEST(TimmRarer, FcNormSaysWhereTheNormStands) {
  const auto place = [](const Json& args) { return timm(kBase, args).model.value("norm_place", "open"); };
  EXPECT_EQ(place({{"global_pool", "avg"}}), "open");
  EXPECT_EQ(place({{"global_pool", "avg"}, {"fc_norm", nullptr}}), "after_pool");
  EXPECT_EQ(place({{"global_pool", "map"}, {"fc_norm", nullptr}}), "before_pool");
  EXPECT_EQ(place({{"global_pool", "max"}, {"fc_norm", false}}), "before_pool");
  EXPECT_EQ(place({{"fc_norm", 1}}), "after_pool");
  EXPECT_EQ(place({{"fc_norm", true}, {"final_norm", false}}), "none");
}

TEST(TimmRarer, TheDistilledViTUsesNeitherRegistersNorANormAfterPooling) {
  constexpr const char* kDistilled = "deit_tiny_distilled_patch16_224";
  const Json model = timm(kDistilled, {{"reg_tokens", 4}, {"fc_norm", true}, {"pos_embed", "none"}}).model;
  EXPECT_EQ(model.at("registers"), 0);
  EXPECT_EQ(model.at("norm_place"), "none");
  EXPECT_EQ(model.at("pos"), "learned");
  EXPECT_EQ(timm(kDistilled, {{"fc_norm", nullptr}}).model.at("norm_place"), "before_pool");
  EXPECT_EQ(timm(kBase, {{"reg_tokens", 4}}).model.at("registers"), 4);
}

TEST(TimmRarer, BordersKeepTheWholeImage) {
  const Json cfg = {{"input_size", {3, 32, 48}}, {"crop_pct", 0.5}, {"crop_mode", "border"}};
  const StatedConfig stated = timm(kBase, {{"img_size", {32, 48}}}, cfg);
  EXPECT_EQ(stated.preprocess->mode, ResizeMode::kLongerSide);
  EXPECT_EQ(stated.preprocess->resize, 64);
  EXPECT_EQ(stated.preprocess->resize_longer, 96);
  EXPECT_EQ(stated.preprocess->interpolation, Interpolation::kBicubic) << "not as for centre crops";
}

TEST(TimmRarer, OnlyModelsThatCanPadAreSaidTo) {
  const auto pads = [](Json args) {
    args.update({{"img_size", 230}, {"dynamic_img_pad", true}});
    return timm(kBase, args, {{"input_size", {3, 230, 230}}}).pads_images;
  };
  EXPECT_TRUE(pads({{"dynamic_img_size", true}}));
  EXPECT_TRUE(pads({{"pos_embed", "none"}}));
  EXPECT_SAYS(error_of([&] { pads(Json::object()); }), "patches of 16 do not cover");
  EXPECT_FALSE(timm(kBase, {{"dynamic_img_size", true}}).pads_images);
}

TEST(TimmRarer, ModelsForAnySizeResizePositionsByTimmsRule) {
  EXPECT_EQ(timm("flexivit_small", Json::object()).model.at("pos_resize"), "flexivit");
  EXPECT_EQ(timm("flexivit_small", {{"dynamic_img_size", true}}).model.at("pos_resize"), "timm");
}

class TimmFolders : public LibraryForms {};

TEST_F(TimmFolders, ImagesThatPatchesDoNotCoverArePadded) {
  const auto opened = [&](const char* key, const OpenOptions& options = {}) {
    timm_config([&](Json& c) {
      c["model_args"].update({{"img_size", {17, 18}}, {key, true}, {"dynamic_img_pad", true}});
      c["pretrained_cfg"]["input_size"] = {3, 17, 18};
    });
    return open_model(at("m"), options)->card();
  };
  const ModelCard card = opened("dynamic_img_size");
  EXPECT_EQ(card.config.image_height, 20);
  EXPECT_EQ(card.config.image_width, 20);
  const PreprocessConfig& p = card.preprocess;
  EXPECT_EQ((std::array{p.height, p.width, p.pad_rows, p.pad_columns}),
            (std::array<int64_t, 4>{20, 20, 3, 2}));
  EXPECT_EQ((std::array{p.resize, p.resize_longer}), (std::array<int64_t, 2>{18, 20})) << "17 and 18 of 0.9";
  EXPECT_NE(preprocess_text(p).find("padded to 20 x 20"), std::string::npos) << preprocess_text(p);
  const ModelCard larger = opened("dynamic_img_size", {.image_height = 21, .image_width = 24});
  EXPECT_EQ(larger.config.image_height, 24);
  EXPECT_EQ(larger.preprocess.pad_rows, 3);
  EXPECT_EQ(larger.preprocess.pad_columns, 0);
}

TEST_F(TimmFolders, ADistilledViTMayHoldWhatItDoesNotUse) {
  ModelCard card = tiny();
  card.config.distilled = true;
  card.config.norm_place = NormPlace::kNone;
  card.config.mlp = 48;
  write_folder(card, Dialect::kTimm);
  const std::string file = at("m/model.safetensors");
  const auto source = std::shared_ptr(open_tensors(file));
  auto tensors = renamed(source, [](const std::string& n) { return n; });
  const auto bytes = static_cast<size_t>(card.config.width) * 4;
  for (const char* name : {"reg_token", "fc_norm.weight", "fc_norm.bias"})
    tensors.push_back({{.name = name,
                        .shape = name[0] == 'r' ? std::vector<int64_t>{1, 1, card.config.width}
                                                : std::vector<int64_t>{card.config.width},
                        .bytes = bytes},
                       [](std::span<std::byte>) {}});
  write_safetensors(at("more"), tensors, {});
  std::filesystem::rename(at("more"), file);
  edit([](Json& c) { c["model_args"].update({{"reg_tokens", 1}, {"fc_norm", true}}); });
  EXPECT_EQ(to_json(open_model(at("m"))->card().config), to_json(card.config));
}

// transformers scores a model of timm's as it scores its own.
TEST_F(LibraryForms, WhatTransformersWrapsIsScoredByItsRule) {
  const auto scores = [&](const Json& added) {
    std::filesystem::remove_all(at("m"));
    std::filesystem::copy(kTimmHub, at("m"));
    edit([&](Json& config) { config.update(added); });
    return open_model(at("m"))->card().scores;
  };
  const Json wrapped = {{"model_type", "timm_wrapper"}};
  Json several = wrapped, one_kind = wrapped;
  several["problem_type"] = "multi_label_classification";
  one_kind["problem_type"] = "single_label_classification";
  EXPECT_EQ(scores(Json::object()), ScoreKind::kSoftmax);
  EXPECT_EQ(scores(wrapped), ScoreKind::kSoftmax);
  EXPECT_EQ(scores(one_kind), ScoreKind::kSoftmax);
  EXPECT_EQ(scores(several), ScoreKind::kSigmoid);
  Json single = {
      {"model_type", "timm_wrapper"}, {"architecture", "vit_tiny_patch16_224"}, {"num_classes", 1}};
  EXPECT_EQ(read_timm_config(single).scores, ScoreKind::kSigmoid);
  single.erase("model_type");
  EXPECT_FALSE(read_timm_config(single).scores);
}

// timm's loader passes over the layer; Vitrail's own folders keep it.
TEST_F(LibraryForms, PreLogitsOfATimmFolderAreLeftOutAsTimmDoes) {
  ModelCard card = tiny();
  card.config.pre_logits = true;
  write_model(at("m"), card, {.dialect = Dialect::kTimm, .overwrite = true, .folder = true}, by_rule);
  EXPECT_TRUE(open_model(at("m"))->card().config.pre_logits);
  edit([](Json& config) { config.erase("vitrail"); });
  const auto model = open_model(at("m"));
  EXPECT_FALSE(model->card().config.pre_logits);
  EXPECT_NE(join(model->card().notes, "; ").find("pre_logits left out"), std::string::npos);
}

TEST_F(LibraryForms, TwoAveragedTokensWithoutLabelsAreRefused) {
  Json config = {{"model_type", "deit"}, {"architectures", {"DeiTForImageClassificationWithTeacher"}}};
  const auto read = [&] { read_hf_config(config, nullptr); };
  EXPECT_EQ(error_of(read), "");
  config["id2label"] = Json::object();
  EXPECT_NE(error_of(read).find("averages two tokens"), std::string::npos);
  config["architectures"] = {"DeiTForImageClassification"};
  EXPECT_EQ(error_of(read), "");
}

}  // namespace
}  // namespace vitrail
