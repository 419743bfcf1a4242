// What each reader of a config makes of it, key by key: defaults of transformers and timm, names of
// activations and processors, and what is said where a key is wrong.
#include <gtest/gtest.h>

#include "base/error.h"
#include "io/cards/card.h"
#include "io/cards/hf_processor.h"
#include "io/config_json.h"
#include "io/names_only.h"

namespace vitrail {
namespace {

StatedConfig hf(const char* config, const char* images = nullptr) {
  const Json model = parse_json(config, "c");
  if (!images) return read_hf_config(model, nullptr);
  const Json prepared = parse_json(images, "p");
  return read_hf_config(model, &prepared);
}
PreprocessConfig hf_images(const char* images) {
  return *hf(R"({"image_size": 224})", images).preprocess;
}

TEST(ClaimTables, AnEmptyHuggingFaceConfigIsTransformersVit) {
  const Json expected = {{"width", 768},         {"depth", 12},      {"heads", 12},
                         {"mlp", 3072},          {"channels", 3},    {"patch", 16},
                         {"patch_width", 0},     {"qkv_bias", true}, {"norm_eps", 1e-12},
                         {"activation", "gelu"}, {"gelu", "erf"},    {"image_height", 224},
                         {"image_width", 224}};
  const StatedConfig stated = hf("{}");
  EXPECT_EQ(stated.model, expected);
  EXPECT_EQ(stated.origin, "config.json");
  EXPECT_EQ(stated.images_origin, "the defaults of transformers' ViTImageProcessor");
  EXPECT_EQ(stated.images_warning, "there is no preprocessor_config.json");
  EXPECT_FALSE(stated.scores);
  EXPECT_TRUE(stated.labels.empty());
  EXPECT_TRUE(stated.notes.empty());
}

TEST(ClaimTables, EveryKeyOfHuggingFaceSetsItsOwnField) {
  const std::tuple<const char*, const char*, Json> rows[] = {
      {R"({"hidden_size": 7})", "width", 7},
      {R"({"num_hidden_layers": 7})", "depth", 7},
      {R"({"num_attention_heads": 7})", "heads", 7},
      {R"({"intermediate_size": 7})", "mlp", 7},
      {R"({"num_channels": 7})", "channels", 7},
      {R"({"patch_size": 7})", "patch", 7},
      {R"({"patch_size": [7, 5]})", "patch", 7},
      {R"({"patch_size": [7, 5]})", "patch_width", 5},
      {R"({"patch_size": {"height": 7, "width": 5}})", "patch_width", 5},
      {R"({"image_size": [70, 50]})", "image_height", 70},
      {R"({"image_size": [70, 50]})", "image_width", 50},
      {R"({"image_size": {"height": 70, "width": 50}})", "image_width", 50},
      {R"({"qkv_bias": false})", "qkv_bias", false},
      {R"({"layer_norm_eps": 0.25})", "norm_eps", 0.25},
      {R"({"model_type": "deit"})", "norm_eps", 1e-12},
      {R"({"model_type": "ijepa"})", "norm_eps", 1e-12},
      {R"({"model_type": "vit_msn"})", "norm_eps", 1e-6},
      {R"({"model_type": "ijepa"})", "pool", "mean"},
      {R"({"num_labels": 7})", "classes", 7},
      {R"({"id2label": {"0": "a", "1": "b"}, "num_labels": 7})", "classes", 2},
      {R"({"pooler_act": "relu"})", "pre_logits_act", "relu"},
      {R"({"pooler_act": "relu", "architectures": ["ViTModel"]})", "pre_logits_act", "relu"},
  };
  for (const auto& [config, field, value] : rows) EXPECT_EQ(hf(config).model.at(field), value) << config;
  EXPECT_FALSE(hf(R"({"pooler_act": "relu", "architectures": ["ViTForImageClassification"]})")
                   .model.contains("pre_logits_act"))
      << "a classifier has no pooler";
  EXPECT_FALSE(hf(R"({"model_type": "vit"})").model.contains("pool"));
}

TEST(ClaimTables, AProblemThatIsNoClassificationIsNoted) {
  const std::tuple<const char*, std::optional<ScoreKind>, size_t> rows[] = {
      {R"({"num_labels": 3})", std::nullopt, 0},
      {R"({"num_labels": 1})", ScoreKind::kSigmoid, 0},
      {R"({"num_labels": 1, "problem_type": "regression"})", ScoreKind::kSigmoid, 0},
      {R"({"num_labels": 3, "problem_type": "single_label_classification"})", ScoreKind::kSoftmax, 0},
      {R"({"num_labels": 3, "problem_type": "multi_label_classification"})", ScoreKind::kSigmoid, 0},
      {R"({"num_labels": 3, "problem_type": "regression"})", ScoreKind::kSoftmax, 1},
  };
  for (const auto& [config, scores, notes] : rows) {
    EXPECT_EQ(hf(config).scores, scores) << config;
    EXPECT_EQ(hf(config).notes.size(), notes) << config;
  }
  EXPECT_EQ(hf(R"({"num_labels": 3, "problem_type": "regression"})").notes.at(0),
            "problem_type \"regression\" is no classification; scored by softmax all the same");
}

TEST(ClaimTables, NamesOfActivations) {
  struct Row {
    const char* name;
    const char *timm, *hf;  // "activation gelu", or null where the library does not know it
  };
  const Row rows[] = {
      {"gelu", "gelu erf", "gelu erf"},
      {"gelu_tanh", "gelu tanh", nullptr},
      {"gelu_pytorch_tanh", nullptr, "gelu tanh"},
      {"gelu_new", nullptr, "gelu tanh"},
      {"gelu_fast", nullptr, "gelu tanh"},
      {"gelu_accurate", nullptr, "gelu tanh"},
      {"gelu_python_tanh", nullptr, "gelu tanh"},
      {"gelu_python", nullptr, "gelu erf"},
      {"quick_gelu", "quick_gelu erf", "quick_gelu erf"},
      {"relu", "relu erf", "relu erf"},
      {"relu6", "relu6 erf", "relu6 erf"},
      {"leaky_relu", "leaky_relu erf", "leaky_relu erf"},
      {"elu", "elu erf", nullptr},
      {"silu", "silu erf", "silu erf"},
      {"swish", "silu erf", "silu erf"},
      {"mish", "mish erf", "mish erf"},
      {"hardswish", "hard_swish erf", "hard_swish erf"},
      {"hard_swish", "hard_swish erf", nullptr},
      {"tanh", "tanh erf", "tanh erf"},
      {"sigmoid", "sigmoid erf", "sigmoid erf"},
      {"celu", "elu erf", nullptr},
      {"selu", "selu erf", nullptr},
      {"SELU", "selu erf", nullptr},
      {"hard_sigmoid", "hard_sigmoid erf", nullptr},
      {"hardsigmoid", "hard_sigmoid erf", nullptr},
      {"hard_mish", "hard_mish erf", nullptr},
      {"identity", "identity erf", nullptr},
      {"linear", nullptr, "identity erf"},
      {"laplace", nullptr, "laplace erf"},
      {"relu2", nullptr, "relu2 erf"},
      {"sqrtsoftplus", nullptr, "sqrt_softplus erf"},
      {"gelu_10", nullptr, "gelu_10 erf"},
  };
  const auto claimed = [](const char* name, Dialect dialect) -> std::string {
    StatedConfig stated{.origin = "there"};
    set_activation(name, "act", dialect, &stated);
    return stated.model.at("activation").get<std::string>() + " " +
           stated.model.at("gelu").get<std::string>();
  };
  for (const Row& row : rows)
    for (const auto& [dialect, expected] : {std::pair{Dialect::kTimm, row.timm}, {Dialect::kHf, row.hf}}) {
      SCOPED_TRACE(std::string(row.name) + " of " + enum_name(dialect));
      if (expected)
        EXPECT_EQ(claimed(row.name, dialect), expected);
      else
        EXPECT_EQ(error_of([&, dialect = dialect] {
                    claimed(row.name, dialect);
                  }).find("data: there: act is \"" + std::string(row.name) + "\"; supported are gelu, "),
                  0u);
    }
  EXPECT_EQ(activation_name(ActKind::kGelu, GeluKind::kTanh, Dialect::kTimm), "gelu_tanh");
  EXPECT_EQ(activation_name(ActKind::kGelu, GeluKind::kTanh, Dialect::kHf), "gelu_pytorch_tanh");
  EXPECT_EQ(activation_name(ActKind::kSilu, GeluKind::kTanh, Dialect::kHf), "silu");
  EXPECT_EQ(activation_name(ActKind::kHardSwish, GeluKind::kErf, Dialect::kTimm), "hardswish");
  EXPECT_EQ(activation_name(ActKind::kElu, GeluKind::kErf, Dialect::kHf), "");
}

TEST(ClaimTables, EveryProcessorOfTransformersHasItsDefaults) {
  const std::vector<double> half(3, 0.5), clip = {0.48145466, 0.4578275, 0.40821073},
                                          clip_std = {0.26862954, 0.26130258, 0.27577711};
  const struct {
    const char* name;
    ResizeMode mode;
    int64_t resize;
    Interpolation interpolation;
    bool clip;
  } rows[] = {
      {"ViTImageProcessor", ResizeMode::kStretch, 0, Interpolation::kBilinear, false},
      {"DeiTImageProcessorFast", ResizeMode::kStretchCrop, 256, Interpolation::kBicubic, false},
      {"CLIPFeatureExtractor", ResizeMode::kShorterSide, 224, Interpolation::kBicubic, true},
      {"BitImageProcessor", ResizeMode::kShorterSide, 224, Interpolation::kBicubic, true},
      {"ViTHybridImageProcessor", ResizeMode::kShorterSide, 224, Interpolation::kBicubic, true},
      {"SiglipImageProcessor", ResizeMode::kStretch, 0, Interpolation::kBicubic, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const Json named = {{"image_processor_type", row.name}};
    const PreprocessConfig p = hf_images(named.dump().c_str());
    EXPECT_EQ(p.mode, row.mode);
    EXPECT_EQ(p.resize, row.resize);
    EXPECT_EQ(p.interpolation, row.interpolation);
    EXPECT_EQ(p.mean, row.clip ? clip : half);
    EXPECT_EQ(p.std, row.clip ? clip_std : half);
  }
  const StatedConfig oblong =
      hf(R"({"image_size": [224, 448]})", R"({"image_processor_type": "DeiTImageProcessor"})");
  EXPECT_EQ(oblong.preprocess->resize, 256);
  EXPECT_EQ(oblong.preprocess->resize_longer, 512);
  const PreprocessConfig both = hf_images(R"({"feature_extractor_type": "CLIPFeatureExtractor",
      "image_processor_type": "DeiTImageProcessor"})");
  EXPECT_EQ(both.mode, ResizeMode::kStretchCrop) << "the newer key counts";
  constexpr Interpolation kCodes[] = {Interpolation::kNearest,  Interpolation::kLanczos,
                                      Interpolation::kBilinear, Interpolation::kBicubic,
                                      Interpolation::kBox,      Interpolation::kHamming};
  for (size_t code = 0; code < std::size(kCodes); ++code)
    EXPECT_EQ(hf_images(Json{{"resample", code}}.dump().c_str()).interpolation, kCodes[code]) << code;
  EXPECT_NE(error_of([] { hf_images(R"({"resample": -1})"); }).find("resample is -1; expected 0 nearest"),
            std::string::npos);
}

TEST(ClaimTables, NormalisationAsTransformersComputesIt) {
  const struct {
    const char* images;
    double mean, std;
  } rows[] = {
      {R"({"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6]})", 0.2, 0.5},
      {R"({"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6], "do_normalize": false})", 0, 1},
      // Unscaled pixels lie between 0 and 255.
      {R"({"image_mean": [51, 51, 51], "image_std": [102, 102, 102], "do_rescale": false})", 0.2, 0.4},
      {R"({"do_rescale": false, "do_normalize": false})", 0, 1.0 / 255},
      {R"({"rescale_factor": 0.00390625})", 0.5 * 256 / 255, 0.5 * 256 / 255},
      {R"({"image_mean": [0.5, 0.5, 0.5], "rescale_factor": 0.00392156862745098})", 0.5, 0.5},
      {R"({"do_rescale": false, "rescale_factor": 0.5, "image_mean": [51, 51, 51], "image_std": [51, 51, 51]})",
       0.2, 0.2},
  };
  for (const auto& row : rows) {
    const PreprocessConfig p = hf_images(row.images);
    EXPECT_NEAR(p.mean[1], row.mean, 1e-12) << row.images;
    EXPECT_NEAR(p.std[1], row.std, 1e-12) << row.images;
  }
}

TEST(ClaimTables, WhatTransformersDoesBeyondThatIsRefused) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"do_pad": true})", ""},
      {R"({"do_pad": true, "pad_size": 223})",
       "data: preprocessor_config.json: pad_size is 223, which is not understood"},
      {R"({"do_pad": false, "pad_size": 223})", ""},
      {R"({"size": {"longest_edge": 224, "shortest_edge": 224}})",
       "config: preprocessor_config.json: size is"},
      {R"({"size": {"height": 224}})", "expected height and width"},
      {R"({"size": [224, 224, 3]})", "expected a number or [height, width]"},
      {R"({"size": {"shortest_edge": 224}})", ""},
      {R"({"size": {"shortest_edge": 225}})",
       "shortest edge of 225 and not cropped, the model takes 224 x 224"},
      {R"({"rescale_factor": 0})", "config: preprocessor_config.json: rescale_factor must be positive"},
  };
  for (const auto& [images, reason] : rows) {
    const std::string said = error_of([&, text = images] { hf_images(text); });
    EXPECT_NE(said.find(reason), std::string::npos) << images << ": " << said;
    EXPECT_EQ(said.empty(), *reason == '\0') << images << ": " << said;
  }
  EXPECT_NE(error_of([] {
              hf(R"({"image_size": [224, 448]})", R"({"size": {"shortest_edge": 224}})");
            }).find("and not cropped, the model takes 224 x 448"),
            std::string::npos);
  const StatedConfig own = hf("{}", R"({"size": 224, "do_resize": false})");
  EXPECT_EQ(own.images_origin, "preprocessor_config.json");
  EXPECT_EQ(own.notes, std::vector<std::string>{
                           "preprocessor_config.json says not to resize; images are resized all the same"});
}

TEST(ClaimTables, TheKindOfAConfigIsToldByItsKeys) {
  const auto kind = [](const char* config) -> std::string {
    CardFiles files;
    files.config = parse_json(config, "c");
    const auto stated = read_card_config(files);
    return !stated                                                                      ? "none"
           : stated->model.contains("qkv_bias") && stated->model.contains("norm_place") ? "timm"
           : stated->model.contains("arch")                                             ? "timm"
                                                                                        : "hf";
  };
  EXPECT_EQ(kind(R"({"architecture": "vit_base_patch16_224"})"), "timm");
  EXPECT_EQ(kind(R"({"pretrained_cfg": {"architecture": "vit_base_patch16_224"}})"), "timm");
  EXPECT_EQ(kind(R"({"hidden_size": 768})"), "hf");
  EXPECT_EQ(kind(R"({"model_type": "vit"})"), "hf");
  EXPECT_EQ(kind(R"({"width": 768})"), "none");
}

}  // namespace
}  // namespace vitrail
