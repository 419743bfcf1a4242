// Models as timm, transformers and torchvision leave them: configs with keys left out, replaced heads,
// wrappers, tokens of every kind. They must be read as each library reads them.
#include "io/library_forms.h"
#include "io/cards/imagenet_names.h"

namespace vitrail {
namespace {

TEST_F(LibraryForms, HuggingFaceDefaultsAreThoseOfTheModelType) {
  ModelCard card = tiny();
  card.config.heads = 12;
  card.config.norm_eps = 1e-12;
  for (const auto& [type, eps] : {std::pair{"vit", 1e-12}, {"deit", 1e-12}, {"vit_msn", 1e-6}}) {
    SCOPED_TRACE(type);
    write_folder(card, Dialect::kHf);
    edit([&, name = type](Json& config) {
      config["model_type"] = name;
      for (const char* key :
           {"num_attention_heads", "layer_norm_eps", "hidden_act", "qkv_bias", "num_channels"})
        config.erase(key);
    });
    const VitConfig found = open_model(at("m"))->card().config;
    EXPECT_EQ(found.heads, 12);
    EXPECT_EQ(found.norm_eps, eps);
    EXPECT_EQ(found.gelu, GeluKind::kErf);
    EXPECT_TRUE(found.qkv_bias);
  }
}

TEST_F(LibraryForms, OneLabelOfHuggingFaceIsAYesOrNo) {
  ModelCard card = tiny();
  card.config.classes = 1;
  write_folder(card, Dialect::kHf);
  edit([](Json& config) { config.erase("problem_type"); });
  EXPECT_EQ(open_model(at("m"))->card().scores, ScoreKind::kSigmoid);
  card.config.classes = 2;
  write_folder(card, Dialect::kHf);
  EXPECT_EQ(open_model(at("m"))->card().scores, ScoreKind::kSoftmax);
}

TEST_F(LibraryForms, TimmResizesBilinearlyForCropsThatAreNotSquare) {
  const auto at_size = [&](int64_t height, int64_t width) {
    return open_model(kTimmHub, {.image_height = height, .image_width = width})->card().preprocess;
  };
  EXPECT_EQ(at_size(16, 32).interpolation, Interpolation::kBilinear);
  EXPECT_EQ(at_size(32, 8).interpolation, Interpolation::kBilinear);
  EXPECT_EQ(at_size(32, 32).interpolation, Interpolation::kBicubic);
  std::filesystem::copy(kTimmHub, at("m"));
  edit([](Json& config) {
    config["pretrained_cfg"]["input_size"] = {3, 8, 32};
    config["model_args"]["img_size"] = {8, 32};
  });
  EXPECT_EQ(open_model(at("m"))->card().preprocess.interpolation, Interpolation::kBilinear);
  EXPECT_EQ(open_model(at("m"), {.image_height = 16, .image_width = 16})->card().preprocess.interpolation,
            Interpolation::kBicubic)
      << "back at a square, what is published holds";
}

TEST_F(LibraryForms, ADistillationTokenWithoutAHeadIsARegisterWithAPosition) {
  ModelCard card = tiny();
  card.config.distilled = true;
  write_folder(card, Dialect::kHf);
  rename_tensors([](const std::string& name) {
    if (name.starts_with("distillation_classifier")) return std::string();
    return name.starts_with("cls_classifier") ? name.substr(4) : name;
  });
  const auto model = open_model(at("m"));
  const VitConfig& c = model->card().config;
  EXPECT_FALSE(c.distilled);
  EXPECT_EQ(c.registers, 1);
  EXPECT_EQ(c.pos_prefix_rows(), 2);
  const Shape token = {{'S', 1}, {'D', c.width}};
  EXPECT_EQ(values(*model, {"reg_token", token}), rule_of("dist_token", token));
}

TEST_F(LibraryForms, RegistersMayHavePositions) {
  ModelCard card = tiny();
  card.config.registers = 3;
  write_folder(card, Dialect::kTimm);
  const auto model = open_model(at("m"));
  EXPECT_EQ(model->card().config.registers, 3);
  EXPECT_EQ(model->card().config.pos_prefix_rows(), 4);
  expect_rule_weights(*model);
}

TEST_F(LibraryForms, AnythingMayStandBeforeEveryName) {
  for (const std::string wrapper : {"net.", "backbone.", "module.net.", "encoder.vit.", "teacher."})
    for (const Dialect dialect : {Dialect::kTimm, Dialect::kTorchvision}) {
      SCOPED_TRACE(wrapper);
      expect_rule_weights(
          *open_model(renamed_file(tiny(), dialect, [&](const std::string& n) { return wrapper + n; })));
    }
  // One copy beside the model is ignored; two copies are not.
  write_model(at("plain"), tiny(), {.dialect = Dialect::kTimm, .overwrite = true}, by_rule);
  const auto source = std::shared_ptr(open_tensors(at("plain")));
  const auto twice = [&](const char* first, const char* second) {
    auto tensors = renamed(source, [&](const std::string& n) { return first + n; });
    for (TensorToWrite& t : renamed(source, [&](const std::string& n) { return second + n; }))
      tensors.push_back(std::move(t));
    write_safetensors(at("twice"), tensors, source->metadata());
    return at("twice");
  };
  expect_rule_weights(*open_model(twice("model.", "ema.")));
  EXPECT_SAYS(refusal(twice("student.", "teacher.")), "2 models");
  EXPECT_SAYS(refusal(twice("model.", "module.")), "2 models");
}

TEST_F(LibraryForms, AnExchangedHeadIsOneLinearLayer) {
  const auto moved = [](const char* from, const char* to) {
    return [from = std::string(from), to = std::string(to)](const std::string& name) {
      return name.starts_with(from) ? to + name.substr(from.size()) : name;
    };
  };
  expect_rule_weights(
      *open_model(renamed_file(tiny(), Dialect::kTorchvision, moved("heads.head.", "heads."))));
  expect_rule_weights(
      *open_model(renamed_file(tiny(), Dialect::kTorchvision, moved("heads.head.", "heads.1."))));
  expect_rule_weights(
      *open_model(renamed_file(tiny(), Dialect::kTorchvision, moved("heads.head.", "heads.head.1."))));
  expect_rule_weights(*open_model(renamed_file(tiny(), Dialect::kTimm, moved("head.", "head.1."))));
  renamed_file(tiny(), Dialect::kTimm, moved("head.", "head.2."));
  const auto source = std::shared_ptr(open_tensors(at("file")));
  auto tensors = renamed(source, [](const std::string& n) { return n; });
  tensors.push_back(
      {{.name = "head.0.weight", .shape = {24, 24}, .bytes = 24 * 24 * 4}, [](std::span<std::byte>) {}});
  write_safetensors(at("deep"), tensors, source->metadata());
  EXPECT_SAYS(refusal(at("deep")), "the head is not one linear layer");
}

TEST_F(LibraryForms, LinearLayersMayHaveNoBias) {
  const auto ends = [](const std::string& name, std::initializer_list<const char*> endings) {
    return std::any_of(endings.begin(), endings.end(), [&](const char* end) { return name.ends_with(end); });
  };
  const auto without = [&](std::initializer_list<const char*> endings) {
    return renamed_file(tiny(), Dialect::kTimm,
                        [&](const std::string& n) { return ends(n, endings) ? std::string() : n; });
  };
  const auto model = open_model(without({"attn.proj.bias", "mlp.fc1.bias", "mlp.fc2.bias", "head.bias"}));
  const Shape shape = {{'D', 24}};
  EXPECT_EQ(values(*model, {"blocks.1.attn.proj.bias", shape}), std::vector<float>(24, 0.0f));
  EXPECT_EQ(values(*model, {"blocks.1.norm1.bias", shape}), rule_of("blocks.1.norm1.bias", shape));
  EXPECT_SAYS(refusal(without({"blocks.0.attn.proj.bias"})), "lacks blocks.0.attn.proj.bias");
  EXPECT_SAYS(refusal(without({"norm1.bias"})), "norm1.bias");
}

TEST_F(LibraryForms, TimmsArgumentsInAllTheirForms) {
  using Change = std::function<void(Json&)>;
  EXPECT_EQ(timm_config([](Json& c) { c["model_args"]["patch_size"] = {4, 4}; }).patch, 4);
  EXPECT_TRUE(timm_config([](Json& c) { c["model_args"]["class_token"] = 1; }).class_token);
  EXPECT_EQ(timm_config([](Json& c) { c["model_args"]["fc_norm"] = false; }).norm_place,
            NormPlace::kBeforePool);
  EXPECT_EQ(timm_config([](Json& c) { c["model_args"]["act_layer"] = "gelu_tanh"; }).gelu, GeluKind::kTanh);
  EXPECT_EQ(timm_config([](Json& c) { c["global_pool"] = "avg"; }).pool, Pool::kCls)
      << "for information only";
  EXPECT_EQ(timm_config([](Json& c) {
              c["model_args"]["global_pool"] = "avg", c["model_args"]["fc_norm"] = false;
            }).pool,
            Pool::kMean);
  EXPECT_TRUE(timm_config([](Json& c) {
                c["model_args"]["global_pool"] = "avg", c["model_args"]["fc_norm"] = false;
                c["model_args"]["pool_include_prefix"] = true;
              }).pool_prefix);
  const std::pair<Change, const char*> refused[] = {
      {[](Json& c) { c["model_args"]["act_layer"] = "prelu"; }, "act_layer is \"prelu\""},
      {[](Json& c) { c["model_args"]["global_pool"] = "lse"; }, "global_pool is \"lse\""},
      {[](Json& c) { c["model_args"]["norm_layer"] = "simplenorm"; }, "norm1.bias"},
      {[](Json& c) { c["model_args"]["norm_layer"] = "groupnorm"; }, "norm_layer"},
      {[](Json& c) { c["model_args"]["norm_layer"] = "rmsnorm"; }, "norm1.bias"},
      {[](Json& c) { c["model_args"]["final_norm"] = false; },
       "there is no last layernorm, but the tensors say the last layernorm is"},
      {[](Json& c) { c["model_args"]["pos_embed"] = "none"; }, "pos is \"none\""},
      {[](Json& c) { c["model_args"]["scale_mlp_norm"] = true; }, "mlp_norm is true"},
      {[](Json& c) { c["model_args"]["img_size"] = 17, c["model_args"]["dynamic_img_pad"] = true; },
       "do not cover"},
      {[](Json& c) {
         c["model_args"]["patch_size"] = {4, 2};
       },
       "patches are square"},
      {[](Json& c) { c["model_args"]["pre_norm"] = true; }, "pre_norm"},
  };
  for (const auto& [change, reason] : refused) EXPECT_SAYS(timm_refusal(change), reason);
}

// A folder written for timm states everything in timm's own keys.
TEST_F(LibraryForms, TimmsRarerArgumentsComeBackFromItsConfigAlone) {
  const std::pair<const char*, std::function<void(VitConfig&)>> rows[] = {
      {"max", [](VitConfig& c) { c.pool = Pool::kMax; }},
      {"mean_max", [](VitConfig& c) { c.pool = Pool::kMeanMax, c.pool_prefix = true; }},
      {"prr", [](VitConfig& c) { c.pool = Pool::kPrr; }},
      {"no blocks", [](VitConfig& c) { c.depth = 0; }},
      {"rms", [](VitConfig& c) { c.norm = NormKind::kRms; }},
      {"simple norms", [](VitConfig& c) { c.norm = NormKind::kSimple, c.qk_norm = true; }},
      {"inner norms", [](VitConfig& c) { c.attn_norm = c.mlp_norm = true; }},
      {"inner RMSNorms", [](VitConfig& c) { c.norm = NormKind::kRms, c.attn_norm = c.mlp_norm = true; }},
      {"selu", [](VitConfig& c) { c.activation = ActKind::kSelu; }},
      {"no last norm", [](VitConfig& c) { c.norm_place = NormPlace::kNone; }},
      {"no positions", [](VitConfig& c) { c.pos = PosKind::kNone; }},
      {"pre_norm", [](VitConfig& c) { c.pre_norm = true; }},
      {"embed_norm", [](VitConfig& c) { c.embed_norm = EmbedNorm::kSimple; }},
      {"silu", [](VitConfig& c) { c.activation = ActKind::kSilu; }},
      {"tanh gelu", [](VitConfig& c) { c.gelu = GeluKind::kTanh; }},
      {"wide patches", [](VitConfig& c) { c.patch_width = 16; }},
      {"uncovered", [](VitConfig& c) { c.image_height = c.image_width = 37; }},
  };
  for (const auto& [name, change] : rows) {
    SCOPED_TRACE(name);
    ModelCard card = tiny();
    change(card.config);
    card.config.mlp = 48;
    card.preprocess.height = card.config.image_height, card.preprocess.width = card.config.image_width;
    card.preprocess.resize = 40;
    write_folder(card, Dialect::kTimm);
    const auto model = open_model(at("m"));
    EXPECT_EQ(to_json(model->card().config), to_json(card.config));
    expect_rule_weights(*model);
  }
}

TEST_F(LibraryForms, ANormBeforeTheBlocksThatNothingSpeaksOfIsAClipTowers) {
  ModelCard card = tiny();
  card.config.pre_norm = true;
  write_model(at("plain"), card, {.dialect = Dialect::kTimm, .overwrite = true}, by_rule);
  const auto source = std::shared_ptr(open_tensors(at("plain")));
  write_safetensors(at("bare"), renamed(source, [](const std::string& n) { return n; }), {});
  EXPECT_SAYS(refusal(at("bare")), "CLIP");
}

// The absence of a norm or of positions must be stated; else the file has lost it.
TEST_F(LibraryForms, WhatIsMissingUnsaidIsMissing) {
  const auto without = [&](const char* part) {
    return renamed_file(tiny(), Dialect::kTimm,
                        [&](const std::string& n) { return n.starts_with(part) ? std::string() : n; });
  };
  EXPECT_SAYS(refusal(without("norm.")), "lacks norm.weight");
  EXPECT_SAYS(refusal(without("pos_embed")), "no table of positions");
}

TEST_F(LibraryForms, TheActivationsOfTransformers) {
  const std::tuple<const char*, ActKind, GeluKind> rows[] = {
      {"relu", ActKind::kRelu, GeluKind::kErf},
      {"swish", ActKind::kSilu, GeluKind::kErf},
      {"gelu_new", ActKind::kGelu, GeluKind::kTanh},
      {"quick_gelu", ActKind::kQuickGelu, GeluKind::kErf},
      {"hardswish", ActKind::kHardSwish, GeluKind::kErf}};
  for (const auto& [name, act, gelu] : rows) {
    SCOPED_TRACE(name);
    write_folder(tiny(), Dialect::kHf);
    edit([&, name = name](Json& config) { config["hidden_act"] = name; });
    EXPECT_EQ(open_model(at("m"))->card().config.activation, act);
    EXPECT_EQ(open_model(at("m"))->card().config.gelu, gelu);
  }
  ModelCard base = tiny();
  base.config.classes = 0, base.config.pre_logits = true, base.config.representation = 7;
  write_folder(base, Dialect::kHf);
  edit([](Json& config) { config["pooler_act"] = "sigmoid"; });
  EXPECT_EQ(open_model(at("m"))->card().config.pre_logits_act, ActKind::kSigmoid);
  EXPECT_EQ(open_model(at("m"))->card().config.representation, 7);
  edit([](Json& config) { config["pooler_act"] = "gelu_new"; });
  EXPECT_EQ(open_model(at("m"))->card().config.pre_logits_act, ActKind::kGelu);
  EXPECT_EQ(open_model(at("m"))->card().config.pre_logits_gelu, GeluKind::kTanh);
}

TEST_F(LibraryForms, TimmTakesPositionsOfAnotherSize) {
  const auto larger = [](Json& config) {
    config["pretrained_cfg"]["input_size"] = {3, 24, 24};
    config["model_args"]["img_size"] = 24;
  };
  EXPECT_EQ(timm_config(larger).image_height, 24);
  const auto model = open_model(at("m"));
  EXPECT_EQ(model->card().preprocess.height, 24);
  EXPECT_EQ(model->card().preprocess.resize, 26);  // floor(24 / 0.9)
}

TEST_F(LibraryForms, NamesOfClassesByNumberAndImageNetsOwn) {
  timm_config([](Json& c) { c["label_names"] = {{"0", "zero"}, {"3", "three"}}; });
  EXPECT_EQ(open_model(at("m"))->card().labels,
            (std::vector<std::string>{"zero", "class 1", "class 2", "three", "class 4"}));
  EXPECT_SAYS(timm_refusal([](Json& c) { c["label_names"] = {{"5", "six"}}; }), "label_names");
  ModelCard card = tiny();
  EXPECT_TRUE(display_labels(card).empty());
  card.config.classes = 1000;
  ASSERT_EQ(display_labels(card).size(), 1000u);
  EXPECT_EQ(display_labels(card)[285], "Egyptian cat");
  card.dialect = Dialect::kTorchvision;
  ASSERT_EQ(display_labels(card).size(), 1000u);
  EXPECT_EQ(display_labels(card)[0] + ", " + display_labels(card)[999], "tench, toilet tissue");
  card.dialect = Dialect::kHf;
  EXPECT_TRUE(display_labels(card).empty());
  card.labels = {"own"};
  EXPECT_EQ(display_labels(card), card.labels);
}

TEST_F(LibraryForms, ACropMayBeLargerThanTheResizedImage) {
  std::filesystem::copy(kTimmHub, at("m"));
  edit([](Json& config) { config["pretrained_cfg"]["crop_pct"] = 1.25; });
  EXPECT_EQ(open_model(at("m"))->card().preprocess.resize, 12);
}

}  // namespace
}  // namespace vitrail
