// How images become inputs, by what the folders of other libraries say.
#include "io/cards/stated_config.h"
#include "io/dialect_files.h"
#include "models/zoo.h"
#include "source_root.h"

namespace vitrail {
namespace {

const std::string kModels = VT_SOURCE_DIR "/tests/golden/models/";

class CardImages : public DialectTest {
 protected:
  // A Hugging Face folder that states nothing but transformers' defaults.
  void write_hf(const ModelCard& card) {
    write_model(at("m"), card, {.dialect = Dialect::kHf, .overwrite = true}, by_rule);
    edit("m/config.json", [](Json& config) { config.erase("vitrail"); });
  }
  void edit(const std::string& name, const std::function<void(Json&)>& change) {
    Json json = parse_json(read_file(at(name), 1 << 20), name);
    change(json);
    write_file(at(name), json.dump());
  }
  PreprocessConfig read_hf(const char* images) {
    write_file(at("m/preprocessor_config.json"), images);
    return open_model(at("m"))->card().preprocess;
  }
  static std::string said(const ModelCard& card) {
    std::string text;
    for (const std::string& note : card.notes) text += note + "\n";
    return text;
  }
  // timm's hub folder with another pretrained_cfg.
  ModelCard read_timm(const std::function<void(Json&)>& change) {
    std::filesystem::remove_all(at("t"));
    std::filesystem::copy(kModels + "timm_hub", at("t"));
    edit("t/config.json", [&](Json& config) { change(config["pretrained_cfg"]); });
    return open_model(at("t"))->card();
  }
};

// mode, resize, resize_longer of a crop of 32 x 32
struct Geometry {
  ResizeMode mode;
  int64_t resize, resize_longer;
  Interpolation interpolation;
};

TEST_F(CardImages, HuggingFaceProcessorsInAllTheirForms) {
  write_hf(tiny());
  const std::pair<const char*, Geometry> rows[] = {
      {R"({"size": 32, "resample": 3, "feature_extractor_type": "ViTFeatureExtractor"})",
       {ResizeMode::kStretch, 0, 0, Interpolation::kBicubic}},
      {R"({"size": {"shortest_edge": 36}, "crop_size": 32, "do_center_crop": true, "resample": 1})",
       {ResizeMode::kShorterSide, 36, 0, Interpolation::kLanczos}},
      {R"({"size": 36, "crop_size": 32, "do_center_crop": true, "feature_extractor_type": "CLIPFeatureExtractor"})",
       {ResizeMode::kShorterSide, 36, 0, Interpolation::kBicubic}},
      {R"({"size": 36, "crop_size": 32, "do_center_crop": true, "feature_extractor_type": "DeiTFeatureExtractor"})",
       {ResizeMode::kStretchCrop, 36, 0, Interpolation::kBicubic}},
      {R"({"size": {"height": 40, "width": 36}, "crop_size": {"height": 32, "width": 32}, "do_center_crop": true})",
       {ResizeMode::kStretchCrop, 40, 36, Interpolation::kBilinear}},
      // what is left out
      {R"({})", {ResizeMode::kStretch, 0, 0, Interpolation::kBilinear}},
      {R"({"image_processor_type": "DeiTImageProcessor"})",
       {ResizeMode::kStretchCrop, 36, 0, Interpolation::kBicubic}},
      {R"({"image_processor_type": "DeiTImageProcessorPil", "size": 32, "do_center_crop": false})",
       {ResizeMode::kStretch, 0, 0, Interpolation::kBicubic}},
      {R"({"image_processor_type": "CLIPImageProcessor"})",
       {ResizeMode::kShorterSide, 32, 0, Interpolation::kBicubic}},
  };
  for (const auto& [text, expected] : rows) {
    SCOPED_TRACE(text);
    const PreprocessConfig p = read_hf(text);
    EXPECT_EQ(p.mode, expected.mode);
    EXPECT_EQ(p.resize, expected.resize);
    EXPECT_EQ(p.resize_longer, expected.resize_longer);
    EXPECT_EQ(p.interpolation, expected.interpolation);
    EXPECT_EQ(p.height, 32);
    EXPECT_EQ(p.width, 32);
    EXPECT_EQ(p.odd_margin, p.mode == ResizeMode::kStretch ? OddMargin::kHalfEven : OddMargin::kDown);
  }
  EXPECT_EQ(read_hf(R"({"image_processor_type": "CLIPImageProcessor"})").mean[2], 0.40821073);
  // (2 x - 0.5) / 0.25 with x = pixel / 255 is (x - 0.25) / 0.125
  const PreprocessConfig p = read_hf(R"({"size": 32, "rescale_factor": 0.00784313725490196,
      "image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.25, 0.25]})");
  EXPECT_NEAR(p.mean[0], 0.25, 1e-12);
  EXPECT_NEAR(p.std[2], 0.125, 1e-12);
}

TEST_F(CardImages, WithoutAProcessorTheModelTypeDecides) {
  write_hf(tiny());
  std::filesystem::remove(at("m/preprocessor_config.json"));
  const auto vit = open_model(at("m"));
  EXPECT_EQ(vit->card().preprocess.mode, ResizeMode::kStretch);
  EXPECT_SAYS(said(vit->card()), "transformers' ViTImageProcessor");
  edit("m/config.json", [](Json& config) { config["model_type"] = "deit"; });
  const auto deit = open_model(at("m"));
  EXPECT_EQ(deit->card().preprocess.mode, ResizeMode::kStretchCrop);
  EXPECT_EQ(deit->card().preprocess.resize, 36);  // 32 * 256 / 224, rounded down
  EXPECT_SAYS(said(deit->card()), "transformers' DeiTImageProcessor");
}

TEST_F(CardImages, ACropThatIsNotSquareKeepsTransformersShorterSide) {
  ModelCard card = tiny();
  card.config.image_width = card.preprocess.width = 48;
  write_hf(card);
  const PreprocessConfig p = read_hf(
      R"({"size": {"shortest_edge": 52}, "crop_size": {"height": 32, "width": 48}, "do_center_crop": true})");
  EXPECT_EQ(p.mode, ResizeMode::kShorterSide);
  EXPECT_EQ(resize_sides(p).height, 52);
  EXPECT_EQ(resize_sides(p).width, 52);
}

TEST_F(CardImages, WhatTransformersCanSayIsWrittenForIt) {
  ModelCard card = tiny();
  card.config.image_height = card.preprocess.height = 48;
  card.preprocess.odd_margin = OddMargin::kDown;
  card.preprocess.resize_longer = 50;
  card.preprocess.mode = ResizeMode::kStretchCrop;
  write_hf(card);
  EXPECT_EQ(to_json(open_model(at("m"))->card().preprocess), to_json(card.preprocess));
  card.preprocess.mode = ResizeMode::kStretch;
  card.preprocess.resize = card.preprocess.resize_longer = 0;
  card.preprocess.odd_margin = OddMargin::kHalfEven;
  write_hf(card);
  EXPECT_EQ(to_json(open_model(at("m"))->card().preprocess), to_json(card.preprocess));
}

TEST_F(CardImages, TimmSquashesThenCrops) {
  const ModelCard squashed = read_timm([](Json& cfg) {
    cfg.update({{"crop_mode", "squash"}, {"crop_pct", 0.875}});
  });
  EXPECT_EQ(squashed.preprocess.mode, ResizeMode::kStretchCrop);
  EXPECT_EQ(squashed.preprocess.resize, 18);
  EXPECT_EQ(squashed.preprocess.crop_pct, 0.875);
  for (const std::string& note : squashed.notes) EXPECT_EQ(note.find("not supported"), std::string::npos);
  const PreprocessConfig whole = read_timm([](Json& cfg) {
                                   cfg.update({{"crop_mode", "squash"}, {"crop_pct", 1.0}});
                                 }).preprocess;
  EXPECT_EQ(whole.mode, ResizeMode::kStretch);
  EXPECT_EQ(whole.resize, 0);
  const PreprocessConfig zoo = find_architecture("vit_medium_patch16_gap_384").preprocess;
  EXPECT_EQ(zoo.mode, ResizeMode::kStretchCrop);
  EXPECT_EQ(zoo.resize, 404);  // floor(384 / 0.95)
}

TEST_F(CardImages, TimmsDefaultsFillWhatItsConfigLeavesOut) {
  const PreprocessConfig p =
      read_timm([](Json& cfg) {
        for (const char* key : {"mean", "std", "crop_pct", "crop_mode", "interpolation"}) cfg.erase(key);
      }).preprocess;
  EXPECT_EQ(p.mean, (std::vector<double>{0.485, 0.456, 0.406}));
  EXPECT_EQ(p.std, (std::vector<double>{0.229, 0.224, 0.225}));
  EXPECT_EQ(p.resize, 18);  // floor(16 / 0.875)
  EXPECT_EQ(p.interpolation, Interpolation::kBicubic);
  // the older form has everything at top level
  edit("t/config.json", [](Json& config) {
    config.erase("pretrained_cfg");
    config.update({{"input_size", {3, 16, 16}}, {"crop_pct", 0.8}, {"mean", {0.1, 0.2, 0.3}}});
  });
  const auto model = open_model(at("t"));
  EXPECT_EQ(model->card().preprocess.resize, 20);
  EXPECT_EQ(model->card().preprocess.mean[1], 0.2);
}

TEST_F(CardImages, AnArchitectureAtAnotherSizeFollowsItsCropPct) {
  ModelCard card;
  card.config.width = 192, card.config.heads = 3, card.config.mlp = 768;
  write_model(at("full"), card, {.dialect = Dialect::kTimm}, [](const ParamSpec&, std::span<float>) {});
  write_safetensors(at("bare"), renamed(open_tensors(at("full")), [](const std::string& n) { return n; }),
                    {});
  const auto resize = [&](const char* arch, int64_t side) {
    return open_model(at("bare"), {.arch = arch, .image_height = side, .image_width = side})
        ->card()
        .preprocess.resize;
  };
  EXPECT_EQ(resize("vit_tiny_patch16_224", 384), 426);
  EXPECT_EQ(resize("deit_tiny_patch16_224", 256), 284);
}

TEST_F(CardImages, VitJaxStretchesAndBigVisionKeepsTheShape) {
  const PreprocessConfig jax = open_model(kModels + "google_vit_jax.npz")->card().preprocess;
  EXPECT_EQ(jax.mode, ResizeMode::kStretch);
  EXPECT_EQ(jax.resampler, Resampler::kTf);
  const PreprocessConfig big = open_model(kModels + "big_vision_cls.npz")->card().preprocess;
  EXPECT_EQ(big.mode, ResizeMode::kShorterSide);
  EXPECT_EQ(big.resampler, Resampler::kTfArea);
  EXPECT_EQ(big.resize, 18);  // 16 * 256 / 224
  const PreprocessConfig tower = open_model(kModels + "big_vision_scanned.npz")->card().preprocess;
  EXPECT_EQ(tower.mode, ResizeMode::kStretch);  // params/img
  VitConfig c;
  c.image_height = c.image_width = 384;
  EXPECT_EQ(dialect_preprocess(Dialect::kGoogle, c, {.big_vision = true})->preprocess.resize, 448);
}

TEST_F(CardImages, SidesMustBeWhatTheirCropPctSays) {
  ModelCard card = tiny();
  const std::tuple<double, int64_t, const char*> rows[] = {
      {0.9, 35, ""},
      {0.9, 36, "resize 36 is not the crop's 32 / crop_pct 0.9"},
      {17, 36, "crop_pct is 17"},
      {1e-300, 36, "crop_pct is 1e-300"},
      {-0.5, 36, "crop_pct is -0.5"},
  };
  for (const auto& [crop_pct, resize, reason] : rows) {
    card.preprocess.crop_pct = crop_pct;
    card.preprocess.resize = resize;
    try {
      validate(card.preprocess, card.config);
      EXPECT_STREQ(reason, "");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
      ASSERT_STRNE(reason, "") << error.what();
      EXPECT_SAYS(error.what(), reason);
    }
  }
}

TEST_F(CardImages, ABaseModelsPoolerHasAKnownActivation) {
  ModelCard card = tiny();
  card.config.classes = 0;
  card.config.pre_logits = true;
  write_hf(card);
  edit("m/config.json", [](Json& config) { config["pooler_act"] = "tanh"; });
  EXPECT_EQ(refusal(at("m")), "");
  edit("m/config.json", [](Json& config) { config["pooler_act"] = "prelu"; });
  EXPECT_SAYS(refusal(at("m")), "pooler_act");
}

}  // namespace
}  // namespace vitrail
