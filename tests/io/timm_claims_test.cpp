// What timm's config.json states, argument by argument, and what is said where one is wrong.
#include <gtest/gtest.h>

#include "base/error.h"
#include "io/cards/stated_config.h"
#include "io/config_json.h"
#include "io/names_only.h"

namespace vitrail {
namespace {

StatedConfig timm(const Json& args, const Json& cfg = nullptr,
                  const char* architecture = "vit_base_patch16_224") {
  Json config = {{"architecture", architecture}, {"model_args", args}};
  if (!cfg.is_null()) config["pretrained_cfg"] = cfg;
  return read_timm_config(config);
}

std::string timm_error(const Json& args, const Json& cfg = nullptr) {
  return error_of([&] { timm(args, cfg); });
}

TEST(TimmClaims, EveryArgumentSetsItsOwnField) {
  const std::tuple<const char*, Json, const char*, Json> rows[] = {
      {"embed_dim", 96, "width", 96},
      {"depth", 7, "depth", 7},
      {"num_heads", 6, "heads", 6},
      {"in_chans", 5, "channels", 5},
      {"num_classes", 9, "classes", 9},
      {"reg_tokens", 3, "registers", 3},
      {"class_token", false, "class_token", false},
      {"class_token", 0, "class_token", false},
      {"qkv_bias", false, "qkv_bias", false},
      {"qk_norm", true, "qk_norm", true},
      {"pre_norm", 1, "pre_norm", true},
      {"pool_include_prefix", true, "pool_prefix", true},
      {"patch_size", 8, "patch", 8},
      {"patch_size", {8, 4}, "patch", 8},
      {"patch_size", {8, 4}, "patch_width", 4},
      {"patch_size", {8, 8}, "patch_width", 0},
      {"img_size", 64, "image_width", 64},
      {"img_size", {64, 32}, "image_height", 64},
      {"img_size", {64, 32}, "image_width", 32},
      {"init_values", 1e-5, "layer_scale", true},
      {"init_values", 0, "layer_scale", false},
      {"no_embed_class", true, "pos_for_prefix", false},
      {"no_embed_class", false, "pos_for_prefix", true},
      {"global_pool", "token", "pool", "cls"},
      {"global_pool", "avg", "pool", "mean"},
      {"global_pool", "map", "pool", "map"},
      {"global_pool", "max", "pool", "max"},
      {"global_pool", "avgmax", "pool", "mean_max"},
      {"global_pool", "prr", "pool", "prr"},
      {"pos_embed", "learn", "pos", "learned"},
      {"pos_embed", "none", "pos", "none"},
      {"pos_embed", "", "pos", "none"},
      {"final_norm", false, "norm_place", "none"},
      {"norm_layer", "layernorm", "norm", "layer"},
      {"norm_layer", "layernormfp32", "norm", "layer"},
      {"norm_layer", "rmsnorm", "norm", "rms"},
      {"norm_layer", "rmsnormfp32", "norm", "rms"},
      {"norm_layer", "", "norm", "layer"},
      {"norm_layer", "RMS_Norm", "norm", "rms"},
      {"norm_layer", "LayerNorm", "norm", "layer"},
      {"norm_layer", "simplenorm", "norm", "simple"},
      {"scale_attn_norm", true, "attn_norm", true},
      {"scale_mlp_norm", true, "mlp_norm", true},
      {"act_layer", "GELU_Tanh", "gelu", "tanh"},
      {"act_layer", "relu", "activation", "relu"},
      {"act_layer", "", "activation", "gelu"},
      {"mlp_ratio", 2, "mlp", 1536},
      {"mlp_ratio", 2.6667, "mlp", 2048},  // 768 * 2.6667 = 2048.03
      {"mlp_ratio", 2.999, "mlp", 2303},   // 2303.2, rounded down
  };
  for (const auto& [key, value, field, expected] : rows)
    EXPECT_EQ(timm({{key, value}}).model.at(field), expected) << key << " " << value;
  EXPECT_EQ(timm({{"embed_dim", 100}, {"mlp_ratio", 4}}).model.at("mlp"), 400);
  EXPECT_FALSE(timm({{"embed_dim", 100}}).model.contains("mlp")) << "the tensors tell it";
  EXPECT_EQ(timm({{"depth", 3}}).model.at("mlp"), 3072);
  EXPECT_FALSE(timm({{"final_norm", true}}).model.contains("norm_place"));
  EXPECT_FALSE(timm({{"depth", 3}}).model.contains("pre_logits"));
  EXPECT_EQ(timm({{"depth", 3}}).model.at("pool"), "cls");
}

TEST(TimmClaims, WithoutEffectOnlyIfOffOrNotUnderstood) {
  for (const char* key :
       {"drop_rate", "pos_drop_rate", "patch_drop_rate", "proj_drop_rate", "attn_drop_rate", "drop_path_rate",
        "weight_init", "fix_init", "dynamic_img_size", "strict_img_size", "dynamic_img_pad", "pretrained",
        "features_only", "fc_norm", "proj_bias", "pretrained_strict"})
    EXPECT_EQ(timm_error({{key, true}}), "") << key;
  EXPECT_EQ(timm_error({{"use_naflex", false}}), "");
  EXPECT_EQ(timm_error({{"use_naflex", true}}),
            "data: config.json: model_args.use_naflex true is not understood and may change the result");
  for (const char* attention : {"", "attn"}) EXPECT_EQ(timm_error({{"attn_layer", attention}}), "");
  EXPECT_EQ(timm_error({{"attn_layer", "diff"}}),
            "data: config.json: model_args.attn_layer \"diff\" is not understood and may change the result");
  EXPECT_EQ(timm_error({{"embed_norm_layer", ""}}), "");
  EXPECT_NE(
      timm_error({{"embed_norm_layer", "batchnorm"}}).find("embed_norm_layer is \"batchnorm\"; supported"),
      std::string::npos);
  EXPECT_EQ(timm_error({{"anything", 3}}),
            "data: config.json: model_args.anything 3 is not understood and may change the result");
  EXPECT_EQ(timm_error({{"anything", nullptr}}), "") << "null is as if it were not there";
  EXPECT_EQ(timm({{"depth", nullptr}}).model.at("depth"), 12);
  EXPECT_EQ(timm({{"depth", 2}}, nullptr, "deit3_base_patch16_224").model.at("layer_scale"), true);
  EXPECT_EQ(timm({{"init_values", nullptr}}, nullptr, "deit3_base_patch16_224").model.at("layer_scale"),
            false);
}

TEST(TimmClaims, LimitsAndWhatIsSaidBeyondThem) {
  const Json none = Json::object();
  const std::tuple<Json, Json, const char*> rows[] = {
      {{{"img_size", (1 << 20) - 1}}, nullptr, ""},
      {{{"img_size", 1 << 20}}, nullptr, "config: config.json: model_args.img_size has a side of 1048576"},
      {{{"img_size", {224, 0}}}, nullptr, "config: config.json: model_args.img_size has a side of 0"},
      {{{"patch_size", {-1, 16}}}, nullptr, "config: config.json: model_args.patch_size has a side of -1"},
      {{{"mlp_ratio", 1.0 / 768}}, nullptr, ""},
      {{{"mlp_ratio", 0.5 / 768}}, nullptr, "config: config.json: mlp_ratio gives an MLP of 0.5"},
      {{{"embed_dim", 1000}, {"mlp_ratio", 1e6}},
       nullptr,
       "config: config.json: mlp_ratio gives an MLP of 1e+09"},
      {{{"global_pool", "mean"}},
       nullptr,
       "data: config.json: global_pool is \"mean\"; supported are token, avg, map, max, avgmax"},
      {{{"norm_layer", "batch"}},
       nullptr,
       "data: config.json: norm_layer is \"batch\"; supported are layernorm, layernormfp32, rmsnorm, "
       "rmsnormfp32"},
      {3, nullptr, "config: config.json: model_args is 3; expected an object"},
      {none, 3, "config: config.json: pretrained_cfg is 3; expected an object"},
      {none,
       {{"input_size", {224, 224}}},
       "config: config.json: input_size is [224,224]; expected [channels, height, width]"},
      {none,
       {{"input_size", {3, 224, 1 << 20}}},
       "config: config.json: input_size 224 x 1048576 is out of range"},
      {none, {{"input_size", {3, 0, 224}}}, "config: config.json: input_size 0 x 224 is out of range"},
      {none, {{"input_size", {3, 224, (1 << 20) - 1}}}, ""},
      {none, {{"crop_pct", 0.01}}, ""},
      {none,
       {{"crop_pct", 0.0099}},
       "config: config.json: crop_pct is 0.0099; it must be between 0.01 and 16"},
      {none, {{"crop_pct", 16}}, ""},
      {none, {{"crop_pct", -0.5}}, "config: config.json: crop_pct is -0.5; it must be between 0.01 and 16"},
      {none, {{"crop_pct", 16.5}}, "config: config.json: crop_pct is 16.5; it must be between 0.01 and 16"},
      {none,
       {{"crop_mode", "frame"}},
       "data: config.json: crop_mode is \"frame\"; center, squash and border are supported"},
      {none, {{"global_pool", "x"}}, "data: config.json: global_pool is \"x\"; supported are token"},
      {none,
       {{"label_names", 3}},
       "config: config.json: label_names is 3; expected a list of names or an object of them by number"},
      {none,
       {{"num_classes", 2}, {"label_names", {{"2", "c"}}}},
       "config: config.json: label_names has the key \"2\"; expected numbers of the 2 classes"},
      {none, {{"num_classes", 2}, {"label_names", {{"1x", "c"}}}}, "has the key \"1x\""},
      // Patches must cover images of any size.
      {{{"img_size", 224}, {"dynamic_img_size", true}},
       {{"input_size", {3, 230, 230}}},
       "data: config.json: dynamic_img_size or dynamic_img_pad with images of 230 x 230, which patches of 16 "
       "do "
       "not cover"},
      {{{"img_size", 224}}, {{"input_size", {3, 230, 230}}}, ""},
      {{{"img_size", {32, 30}}, {"patch_size", {16, 10}}, {"dynamic_img_pad", true}}, nullptr, ""},
      {{{"img_size", {32, 32}}, {"patch_size", {16, 10}}, {"dynamic_img_pad", true}},
       nullptr,
       "32 x 32, which"},
      {{{"img_size", {40, 30}}, {"patch_size", {16, 10}}, {"dynamic_img_pad", true}},
       nullptr,
       "40 x 30, which"},
  };
  for (const auto& [args, cfg, reason] : rows) {
    const std::string said = timm_error(args, cfg);
    EXPECT_NE(said.find(reason), std::string::npos) << args << cfg << ": " << said;
    EXPECT_EQ(said.empty(), *reason == '\0') << args << cfg << ": " << said;
  }
}

TEST(TimmClaims, TheImagesOfAModel) {
  const Json none = Json::object();
  const StatedConfig wide =
      timm(none, {{"input_size", {1, 32, 48}}, {"crop_pct", 0.5}, {"mean", {0.1}}, {"std", {0.2}}});
  EXPECT_EQ(wide.model.at("channels"), 1);
  EXPECT_EQ(wide.model.at("image_height"), 32);
  EXPECT_EQ(wide.model.at("image_width"), 48);
  EXPECT_EQ(wide.preprocess->resize, 64);
  EXPECT_EQ(wide.preprocess->resize_longer, 96);
  EXPECT_EQ(wide.preprocess->interpolation, Interpolation::kBilinear);
  EXPECT_EQ(wide.square_interpolation, Interpolation::kBicubic);
  EXPECT_EQ(wide.notes,
            std::vector<std::string>{"interpolation bilinear: timm's rule for crops that are not square"});
  EXPECT_EQ(wide.preprocess->mean, std::vector<double>{0.1});
  EXPECT_EQ(wide.preprocess->std, std::vector<double>{0.2});
  const StatedConfig squashed =
      timm(none, {{"input_size", {3, 32, 48}}, {"crop_pct", 0.5}, {"crop_mode", "squash"}});
  EXPECT_EQ(squashed.preprocess->interpolation, Interpolation::kBicubic);
  EXPECT_TRUE(squashed.notes.empty());
  EXPECT_EQ(timm(none, {{"crop_pct", 0}}).preprocess->resize, 256) << "0 is timm's default, 0.875";
  EXPECT_EQ(timm(none, {{"crop_pct", 1}}).preprocess->mode, ResizeMode::kShorterSide);
  const StatedConfig usual = timm(none);
  EXPECT_EQ(usual.preprocess->resize, 248);
  EXPECT_FALSE(usual.square_interpolation);
  EXPECT_EQ(usual.origin, "config.json");
  EXPECT_EQ(timm(none, nullptr, "deit_base_patch16_224").images_origin, "");
}

TEST(TimmClaims, TheOlderFormIsToldByAnyOfItsKeys) {
  const std::pair<const char*, Json> rows[] = {{"input_size", {3, 224, 224}},
                                               {"crop_pct", 0.9},
                                               {"mean", {0.485, 0.456, 0.406}},
                                               {"std", {0.229, 0.224, 0.225}},
                                               {"interpolation", "bicubic"}};
  for (const auto& [key, value] : rows) {
    const StatedConfig stated = read_timm_config({{"architecture", "vit_base_patch16_224"}, {key, value}});
    EXPECT_EQ(stated.preprocess->mean[0], 0.485) << key << ": timm's default, not the architecture's 0.5";
  }
  const StatedConfig plain =
      read_timm_config({{"architecture", "vit_base_patch16_224"}, {"num_classes", 10}});
  EXPECT_EQ(plain.preprocess->mean[0], 0.5);
  const Json old = {{"architecture", "vit_base_patch16_224"}, {"crop_pct", 0.9}, {"labels", {"a", "b"}}};
  EXPECT_EQ(read_timm_config(old).labels, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read_timm_config({{"pretrained_cfg", {{"architecture", "deit_base_patch16_384"}}}})
                .model.at("image_width"),
            384);
  try {
    read_timm_config({{"pretrained_cfg", {{"crop_pct", 0.9}}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "config.json has pretrained_cfg but no architecture");
    EXPECT_EQ(error.kind(), ErrorKind::kData);
  }
}

TEST(TimmClaims, AnUnknownNameIsTheFilesFault) {
  try {
    read_timm_config({{"architecture", "vit_base_patch16_22"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_EQ(error.message(), "config.json: unknown architecture 'vit_base_patch16_22'");
    EXPECT_NE(error.hint().find("did you mean vit_base_patch16_224?"), std::string::npos) << error.hint();
  }
}

TEST(TimmClaims, OfSeveralPlacesTheLastOneCounts) {
  const Json base = {{"architecture", "vit_base_patch16_224"}};
  const auto classes = [&](const Json& more) {
    Json config = base;
    config.update(more);
    return read_timm_config(config).model.value("classes", int64_t{-1});
  };
  EXPECT_EQ(classes(Json::object()), -1);
  EXPECT_EQ(classes({{"pretrained_cfg", {{"num_classes", 3}}}}), 3);
  EXPECT_EQ(classes({{"pretrained_cfg", {{"num_classes", 3}}}, {"num_classes", 4}}), 4);
  EXPECT_EQ(classes({{"num_classes", 4}, {"model_args", {{"num_classes", 5}}}}), 5);
  const auto labels = [&](const Json& more) {
    Json config = base;
    config.update(more);
    return read_timm_config(config).labels;
  };
  using Names = std::vector<std::string>;
  const Json cfg = {{"num_classes", 3}, {"label_names", {{"0", "a"}, {"2", 7}}}};
  EXPECT_EQ(labels({{"pretrained_cfg", cfg}}), (Names{"a", "class 1", "7"}));
  EXPECT_EQ(labels({{"pretrained_cfg", cfg}, {"label_names", {"x", "y"}}}), (Names{"x", "y"}));
  EXPECT_EQ(labels({{"pretrained_cfg", cfg}, {"id2label", {{"0", "z"}}}}), (Names{"a", "class 1", "7"}));
  EXPECT_EQ(labels({{"id2label", {{"0", "z"}}}}), Names{"z"});
  const auto pool = [&](const Json& more) {
    Json config = base;
    config.update(more);
    return read_timm_config(config).model.at("pool").get<std::string>();
  };
  EXPECT_EQ(pool({{"pretrained_cfg", {{"global_pool", "avg"}}}}), "mean");
  EXPECT_EQ(pool({{"pretrained_cfg", {{"global_pool", "avg"}}}, {"model_args", {{"global_pool", "max"}}}}),
            "max");
}

TEST(TimmClaims, ModelsForAnySizeRunAtThatOfTheirImages) {
  const Json cfg = {{"input_size", {3, 160, 160}}, {"crop_pct", 1.0}};
  for (const char* name : {"test_vit", "test_vit2.r160_in1k", "test_vit4", "vit_intern300m_patch14_448"}) {
    const bool intern = std::string(name).starts_with("vit_intern");
    const Json images = {{"input_size", {3, intern ? 140 : 160, intern ? 140 : 160}}, {"crop_pct", 1.0}};
    const StatedConfig stated = timm({{"img_size", intern ? 280 : 320}}, images, name);
    ASSERT_TRUE(stated.run_image) << name;
    EXPECT_EQ(stated.run_image->height, intern ? 140 : 160) << name;
    EXPECT_EQ(stated.preprocess->height, intern ? 280 : 320) << name;
    EXPECT_TRUE(stated.notes.empty()) << name;
  }
  const StatedConfig fixed = timm({{"img_size", 320}}, cfg, "test_vit3");
  EXPECT_FALSE(fixed.run_image);
  EXPECT_EQ(fixed.preprocess->resize, 320);
  EXPECT_EQ(fixed.notes, std::vector<std::string>{"preprocessing scaled to model_args.img_size"});
  EXPECT_TRUE(timm({{"img_size", 320}, {"dynamic_img_size", true}}, cfg).run_image);
  EXPECT_FALSE(timm({{"img_size", 320}, {"dynamic_img_size", false}}, cfg, "test_vit").run_image);
}

}  // namespace
}  // namespace vitrail
