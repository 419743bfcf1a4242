// Vitrail's own block of a config, what an architecture's name states, the limits of preprocessing, and how
// another library reads what was written for it.
#include <gtest/gtest.h>

#include "base/error.h"
#include "io/cards/library_view.h"
#include "io/cards/stated_config.h"
#include "io/cards/written_json.h"
#include "io/config_json.h"
#include "io/names_only.h"

namespace vitrail {
namespace {

TEST(OwnClaims, TheBlockComesBack) {
  ModelCard card;
  card.config.depth = 3;
  card.preprocess.resize = 99;
  card.scores = ScoreKind::kSigmoid;
  const StatedConfig stated =
      read_vitrail_config({{"vitrail", vitrail_block(card)}, {"id2label", {{"0", "a"}}}}, "here");
  EXPECT_EQ(stated.origin, "here (vitrail)");
  EXPECT_EQ(stated.model, to_json(card.config));
  EXPECT_EQ(*stated.preprocess, card.preprocess);
  EXPECT_EQ(stated.scores, ScoreKind::kSigmoid);
  EXPECT_EQ(stated.labels, std::vector<std::string>{"a"});
  EXPECT_FALSE(vitrail_block(ModelCard{}).contains("scores"));
  const StatedConfig silent = read_vitrail_config({{"vitrail", Json::object()}}, "here");
  EXPECT_FALSE(silent.preprocess);
  EXPECT_FALSE(silent.scores);
  EXPECT_TRUE(silent.model.empty());
  const std::pair<Json, const char*> rows[] = {
      {Json::object(), "config: here: no \"vitrail\" block"},
      {{{"vitrail", 3}}, "config: here: vitrail is 3; expected an object"},
      {{{"vitrail", {{"modle", Json::object()}}}},
       "config: here: unknown key 'modle' in vitrail; expected model, preprocess or scores"},
      {{{"vitrail", {{"model", {{"depht", 3}}}}}}, "config: here (vitrail): unknown key 'depht'"},
      {{{"vitrail", {{"preprocess", {{"mode", "x"}}}}}},
       "config: here (vitrail): mode is \"x\"; expected one of shorter_side, stretch, stretch_crop, "
       "longer_side, none, shorter_most, within, crop_stretch, shorter_down, shorter_up, square, corner, "
       "thumbnail"},
  };
  for (const auto& [root, reason] : rows)
    EXPECT_EQ(error_of([&, &config = root] { read_vitrail_config(config, "here"); }), reason);
}

TEST(OwnClaims, LabelsOfEveryClassInTurn) {
  using Names = std::vector<std::string>;
  const auto labels = [](const Json& table) { return read_labels({{"id2label", table}}, "here"); };
  EXPECT_EQ(labels({{"1", "b"}, {"0", "a"}, {"2", 5}}), (Names{"a", "b", "5"}));
  EXPECT_EQ(labels({{"0", "LABEL_0"}, {"1", "LABEL_1"}}), Names{}) << "names that transformers makes up";
  EXPECT_EQ(labels({{"0", "LABEL_0"}, {"1", "LABEL_2"}}), (Names{"LABEL_0", "LABEL_2"}));
  EXPECT_EQ(read_labels(Json::object(), "here"), Names{});
  EXPECT_EQ(error_of([&] {
              labels({{"0", "a"}, {"2", "b"}});
            }),
            "config: here: id2label has 2 entries but none for class 1");
  EXPECT_EQ(error_of([&] { labels(Json::array({"a"})); }),
            "config: here: id2label is [\"a\"]; expected an object");
}

TEST(OwnClaims, ANameClaimsItsNumericsInTimmsDialectAlone) {
  const StatedConfig timm = architecture_config("deit3_base_patch16_224", Dialect::kTimm);
  EXPECT_EQ(timm.origin, "architecture deit3_base_patch16_224");
  EXPECT_EQ(timm.images_origin, "");
  for (const char* field : {"norm_eps", "activation", "gelu", "pos_resize"}) {
    EXPECT_TRUE(timm.model.contains(field)) << field;
    EXPECT_FALSE(architecture_config("deit3_base_patch16_224", Dialect::kHf).model.contains(field)) << field;
  }
  EXPECT_FALSE(timm.model.contains("classes"));
  EXPECT_FALSE(timm.model.contains("pool")) << "open beside a class token";
  EXPECT_EQ(architecture_config("vit_base_patch16_gap_224", Dialect::kTimm).model.at("pool"), "mean");
  EXPECT_EQ(
      architecture_config("deit_base_patch16_384", Dialect::kTimm).images_origin,
      "architecture deit_base_patch16_384 (timm's preprocessing; DeiT's own evaluation resizes to 438)");
}

TEST(OwnClaims, EveryDialectHasItsNumerics) {
  const std::tuple<Dialect, double, const char*, const char*> rows[] = {
      {Dialect::kTimm, 1e-6, "erf", "timm"},
      {Dialect::kHf, 1e-12, "erf", "hf"},
      {Dialect::kTorchvision, 1e-6, "erf", "torchvision"},
      {Dialect::kGoogle, 1e-6, "tanh", "jax"}};
  for (const auto& [dialect, eps, gelu, resize] : rows) {
    const StatedConfig stated = dialect_config(dialect);
    EXPECT_EQ(stated.model, (Json{{"norm_eps", eps}, {"gelu", gelu}, {"pos_resize", resize}}));
    EXPECT_EQ(stated.origin, std::string(enum_name(dialect)) + "'s habit");
  }
  VitConfig small;
  small.image_height = 112, small.image_width = 448, small.channels = 2;
  const DialectPreprocess torchvision = *dialect_preprocess(Dialect::kTorchvision, small, {});
  EXPECT_EQ(torchvision.origin, "torchvision's habit");
  EXPECT_EQ(torchvision.preprocess.resize, 128);
  EXPECT_EQ(torchvision.preprocess.std, (std::vector<double>{0.229, 0.224, 0.225}));
  const DialectPreprocess jax = *dialect_preprocess(Dialect::kGoogle, small, {});
  EXPECT_EQ(jax.origin, "vit_jax's evaluation");
  EXPECT_EQ(jax.preprocess.resize, 0);
  EXPECT_EQ(jax.preprocess.mean, (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(jax.preprocess.std, (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(jax.preprocess.interpolation, Interpolation::kBilinear);
  const DialectPreprocess big = *dialect_preprocess(Dialect::kGoogle, small, {.big_vision = true});
  EXPECT_EQ(big.origin, "big_vision's evaluation");
  EXPECT_EQ(big.preprocess.resize, 128);
  EXPECT_FALSE(dialect_preprocess(Dialect::kTimm, small, {}));
  EXPECT_FALSE(dialect_preprocess(Dialect::kHf, small, {}));
  VitConfig wide;  // the rows of published weights are square
  wide.image_width = 448;
  EXPECT_EQ(dialect_preprocess(Dialect::kTorchvision, wide, {})->origin, "torchvision's habit");
  EXPECT_EQ(dialect_preprocess(Dialect::kTorchvision, VitConfig{}, {})->origin,
            "torchvision's vit_b_16 V1 (a SWAG_LINEAR file is told by its name, *_lc_swag*)");
}

TEST(PreprocessLimits, BothEndsAreAllowedAndNothingBeyond) {
  constexpr int64_t kMost = 1 << 16;
  const auto said = [](const std::function<void(PreprocessConfig&, VitConfig&)>& change) {
    PreprocessConfig p;
    VitConfig c;
    change(p, c);
    return error_of([&] { validate(p, c); });
  };
  using P = PreprocessConfig;
  using C = VitConfig;
  const std::pair<std::function<void(P&, C&)>, const char*> rows[] = {
      {[](P&, C&) {}, ""},
      {[](P& p, C& c) { p.height = c.image_height = kMost, p.width = c.image_width = 1; }, ""},
      {[](P& p, C& c) { p.height = c.image_height = 1, p.width = c.image_width = kMost; }, ""},
      {[](P& p, C&) { p.height = kMost + 1; },
       "config: preprocess: height x width is 65537 x 224; each must be between 1 and 65536"},
      {[](P& p, C&) { p.height = 0; }, "height x width is 0 x 224"},
      {[](P& p, C&) { p.width = 0; }, "height x width is 224 x 0"},
      {[](P& p, C&) { p.width = kMost + 1; }, "height x width is 224 x 65537"},
      {[](P& p, C&) { p.resize = kMost, p.resize_longer = kMost; }, ""},
      {[](P& p, C&) { p.resize = 0; }, ""},
      {[](P& p, C&) { p.resize = kMost + 1; }, "preprocess: resize is 65537; it must be between 0 and 65536"},
      {[](P& p, C&) { p.resize = -1; }, "preprocess: resize is -1"},
      {[](P& p, C&) { p.resize_longer = kMost + 1; },
       "preprocess: resize_longer is 65537; it must be between 0 and 65536"},
      {[](P& p, C&) { p.resize_longer = -1; }, "preprocess: resize_longer is -1"},
      {[](P& p, C&) { p.crop_pct = 0.01, p.resize = 22400; }, ""},
      {[](P& p, C&) { p.crop_pct = 0.0099; }, "crop_pct is 0.0099; it must be 0 or between 0.01 and 16"},
      {[](P& p, C&) { p.crop_pct = 16, p.resize = 14; }, ""},
      {[](P& p, C&) { p.crop_pct = 16.1, p.resize = 13; }, "crop_pct is 16.1"},
      {[](P& p, C& c) { p.width = c.image_width = 448, p.crop_pct = 0.5, p.resize = 448; }, ""},
      {[](P& p, C& c) { p.height = c.image_height = 448, p.crop_pct = 0.5, p.resize = 896; },
       "config: preprocess: resize 896 is not the crop's 224 / crop_pct 0.5, rounded down; say crop_pct 0"},
      {[](P&, C& c) { c.image_height = 112; },
       "config: preprocess gives 224 x 224 pixels but the model takes 112 x 224"},
      {[](P&, C& c) { c.image_width = 112; }, "the model takes 224 x 112"},
      {[](P&, C& c) { c.channels = 2; }, "config: preprocess: mean has 3 and std 3 numbers for 2 channels"},
      {[](P& p, C&) { p.std.pop_back(); }, "mean has 3 and std 2 numbers for 3 channels"},
      {[](P& p, C&) { p.mean[2] = -1e6; }, ""},
      {[](P& p, C&) { p.mean[2] = 1.1e6; },
       "config: preprocess: mean holds 1.1e+06; it must be between -1e+06 and 1e+06"},
      {[](P& p, C&) { p.std[2] = 1e6; }, ""},
      {[](P& p, C&) { p.std[2] = 1e-6; }, ""},
      {[](P& p, C&) { p.std[2] = 1.1e6; },
       "preprocess: std holds 1.1e+06; it must be between 1e-06 and 1e+06"},
      {[](P& p, C&) { p.std[2] = 0.9e-6; }, "preprocess: std holds 9e-07"},
  };
  for (const auto& [change, reason] : rows) {
    const std::string found = said(change);
    EXPECT_NE(found.find(reason), std::string::npos) << found << "\nexpected " << reason;
    EXPECT_EQ(found.empty(), *reason == '\0') << found;
  }
}

TEST(PreprocessLimits, OnlyTimmsCropsThatKeepTheShapeChangeTheirInterpolation) {
  PreprocessConfig p;
  p.crop_pct = 0.9;
  const auto wide = [](const PreprocessConfig& from) {
    return at_size(from, 224, 320, Interpolation::kLanczos).interpolation;
  };
  EXPECT_EQ(wide(p), Interpolation::kBilinear);
  EXPECT_EQ(at_size(p, 320, 320, Interpolation::kLanczos).interpolation, Interpolation::kLanczos);
  EXPECT_EQ(at_size(p, 320, 320).interpolation, Interpolation::kBicubic);
  // 224 / 16 and 230 / 16 are both 14 when rounded down.
  p.crop_pct = 16, p.resize = 14;
  EXPECT_EQ(at_size(p, 224, 230, Interpolation::kLanczos).interpolation, Interpolation::kLanczos);
  p.crop_pct = 0.9, p.resize = 248, p.mode = ResizeMode::kStretchCrop;
  EXPECT_EQ(wide(p), Interpolation::kBicubic);
  p.mode = ResizeMode::kShorterSide, p.resampler = Resampler::kTfArea;
  EXPECT_EQ(wide(p), Interpolation::kBicubic);
  p.resampler = Resampler::kPillow, p.crop_pct = 0;
  EXPECT_EQ(wide(p), Interpolation::kBicubic);
}

TEST(LibraryView, WhatALibraryComputesOtherwise) {
  using Lines = std::vector<std::string>;
  const auto lines = [](const ModelCard& card, const WriteOptions& options) {
    return not_kept(card, library_view(card, options));
  };
  ModelCard card;
  EXPECT_EQ(lines(card, {.dialect = Dialect::kHf}),
            Lines{"odd_margin (start of a crop with an odd margin: half_even or down): \"half_even\" here, "
                  "transformers will use \"down\""});
  EXPECT_EQ(lines(card, {.dialect = Dialect::kTimm, .folder = true}), Lines{});
  card.preprocess.resampler = Resampler::kTf;
  EXPECT_EQ(lines(card, {.dialect = Dialect::kHf}),
            Lines{"resampler (pillow, tf or tf_area): \"tf\" here, transformers will use \"pillow\""})
      << "TensorFlow's margins are always rounded down";
  card.preprocess.resampler = Resampler::kPillow;
  card.preprocess.mode = ResizeMode::kStretch;
  EXPECT_EQ(lines(card, {.dialect = Dialect::kHf}), Lines{});
  EXPECT_EQ(lines(card, {.dialect = Dialect::kTimm, .folder = true}), Lines{});
  EXPECT_EQ(lines(card, {.dialect = Dialect::kTorchvision}), Lines{});
  EXPECT_EQ(lines(card, {.dialect = Dialect::kGoogle}),
            Lines{"gelu (erf or tanh: the form of the gelu): \"erf\" here, vit_jax will use \"tanh\""});
  card.config.norm_eps = 0.5;
  EXPECT_EQ(lines(card, {.dialect = Dialect::kTorchvision}),
            Lines{"norm_eps (layernorm epsilon): 0.5 here, torchvision will use 1e-06"});
  EXPECT_EQ(lines(card, {.dialect = Dialect::kHf}), Lines{});
  card.config.norm_eps = 1e-6;
  card.scores = ScoreKind::kSigmoid;
  EXPECT_EQ(lines(card, {.dialect = Dialect::kHf}), Lines{});
  card.scores = ScoreKind::kSoftmax, card.config.classes = 1;
  EXPECT_EQ(lines(card, {.dialect = Dialect::kHf}),
            Lines{"scores: softmax here, transformers will use sigmoid"});
  card.config.classes = 1000, card.preprocess.resampler = Resampler::kTf;
  EXPECT_EQ(lines(card, {.dialect = Dialect::kTimm, .folder = true}),
            Lines{"resampler (pillow, tf or tf_area): \"tf\" here, timm will use \"pillow\""});
  EXPECT_EQ(lines(card, {.dialect = Dialect::kTimm}), Lines{}) << "a bare file's user chooses";
  card.config.arch = "vit_base_patch16_224", card.preprocess = {};
  EXPECT_EQ(lines(card, {.dialect = Dialect::kTimm}), Lines{}) << "a name says how";
  card.preprocess.resize = 240;
  EXPECT_EQ(lines(card, {.dialect = Dialect::kTimm}).size(), 2u) << "both sides";
  card = {};
  card.config.image_width = card.preprocess.width = 448, card.preprocess.resize = 250,
  card.preprocess.resize_longer = 550;
  card.preprocess.interpolation = Interpolation::kBilinear;
  EXPECT_EQ(
      lines(card, {.dialect = Dialect::kTimm, .folder = true}),
      Lines{"resize_longer (the other side before the crop; 0: in proportion): 550 here, timm will use 500"});
  card.config.pre_logits = true;
  EXPECT_EQ(library_refuses(card, {.dialect = Dialect::kTimm}),
            "timm has no pre_logits layer any more: it refuses the file, or leaves the layer out");
  EXPECT_EQ(library_refuses(card, {.dialect = Dialect::kGoogle}), "");
}

}  // namespace
}  // namespace vitrail
