#include "io/dialect_files.h"
#include "io/dialects/express.h"

namespace vitrail {
namespace {

class DialectRoundTrip : public DialectTest {};

struct Variant {
  const char* name;
  void (*change)(VitConfig&);
};
constexpr Variant kVariants[] = {
    {"plain", [](VitConfig&) {}},
    {"tanh",
     [](VitConfig& c) { c.gelu = GeluKind::kTanh, c.norm_eps = 1e-5, c.pos_resize = PosResize::kJax; }},
    {"no_head", [](VitConfig& c) { c.classes = 0; }},
    {"non_square", [](VitConfig& c) { c.image_width = 48; }},
    {"one_channel", [](VitConfig& c) { c.channels = 1; }},
    {"distilled", [](VitConfig& c) { c.distilled = true; }},
    {"gap", [](VitConfig& c) { c.class_token = false, c.pool = Pool::kMean; }},
    {"gap_fc_norm", [](VitConfig& c) { c.pool = Pool::kMean, c.norm_place = NormPlace::kAfterPool; }},
    {"map", [](VitConfig& c) { c.class_token = false, c.pool = Pool::kMap; }},
    {"no_class_position", [](VitConfig& c) { c.pos_for_prefix = false; }},
    {"registers", [](VitConfig& c) { c.registers = 2, c.pos_for_prefix = false; }},
    {"extras", [](VitConfig& c) { c.qk_norm = c.layer_scale = true, c.qkv_bias = false; }},
    {"pre_logits", [](VitConfig& c) { c.pre_logits = true; }},
    {"pre_logits_no_head", [](VitConfig& c) { c.pre_logits = true, c.classes = 0; }},
    {"representation", [](VitConfig& c) { c.pre_logits = true, c.representation = 10; }},
    {"representation_no_head",
     [](VitConfig& c) {
       c.pre_logits = true, c.representation = 30, c.classes = 0, c.pre_logits_act = ActKind::kRelu;
     }},
    {"pooler_tanh_gelu",
     [](VitConfig& c) {
       c.pre_logits = true, c.classes = 0, c.pre_logits_act = ActKind::kGelu;
       c.pre_logits_gelu = GeluKind::kTanh;
     }},
    {"embed_norm", [](VitConfig& c) { c.embed_norm = EmbedNorm::kLayer; }},
    {"embed_rms", [](VitConfig& c) { c.embed_norm = EmbedNorm::kRms, c.pre_norm = true; }},
    {"distilled_no_norm", [](VitConfig& c) { c.distilled = true, c.norm_place = NormPlace::kNone; }},
    {"max", [](VitConfig& c) { c.pool = Pool::kMax; }},
    {"mean_max", [](VitConfig& c) { c.class_token = false, c.pool = Pool::kMeanMax; }},
    {"prr", [](VitConfig& c) { c.pool = Pool::kPrr; }},
    {"no_blocks", [](VitConfig& c) { c.depth = 0; }},
    {"rms", [](VitConfig& c) { c.norm = NormKind::kRms; }},
    {"simple_norms", [](VitConfig& c) { c.norm = NormKind::kSimple, c.qk_norm = true; }},
    {"inner_norms", [](VitConfig& c) { c.attn_norm = c.mlp_norm = true; }},
    {"inner_rms", [](VitConfig& c) { c.norm = NormKind::kRms, c.attn_norm = c.mlp_norm = c.qk_norm = true; }},
    {"selu", [](VitConfig& c) { c.activation = ActKind::kSelu; }},
    {"relu2", [](VitConfig& c) { c.activation = ActKind::kRelu2; }},
    {"no_last_norm", [](VitConfig& c) { c.norm_place = NormPlace::kNone; }},
    {"no_positions", [](VitConfig& c) { c.pos = PosKind::kNone; }},
    {"pre_norm", [](VitConfig& c) { c.pre_norm = true; }},
    {"relu", [](VitConfig& c) { c.activation = ActKind::kRelu; }},
    {"elu", [](VitConfig& c) { c.activation = ActKind::kElu; }},
    {"tall_patches", [](VitConfig& c) { c.patch_width = 4; }},
    {"uncovered", [](VitConfig& c) { c.image_height = c.image_width = 37; }},
    {"sincos", [](VitConfig& c) { c.pos = PosKind::kSinCos2d, c.class_token = false, c.pool = Pool::kMean; }},
};
constexpr Dialect kDialects[] = {Dialect::kTimm, Dialect::kHf, Dialect::kTorchvision, Dialect::kGoogle};

bool expressible(Dialect dialect, const VitConfig& config) {
  try {
    refuse_inexpressible(dialect, config);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return false;
  }
}

TEST_F(DialectRoundTrip, EveryModelComesBackFromEveryDialectThatHoldsIt) {
  int written = 0;
  for (const Variant& variant : kVariants)
    for (Dialect dialect : kDialects) {
      SCOPED_TRACE(std::string(variant.name) + " as " + enum_name(dialect));
      ModelCard card = tiny();
      variant.change(card.config);
      card.preprocess = {.height = card.config.image_height, .width = card.config.image_width, .resize = 40};
      card.preprocess.mean.assign(static_cast<size_t>(card.config.channels), 0.25);
      card.preprocess.std.assign(static_cast<size_t>(card.config.channels), 0.125);
      for (int64_t i = 0; i < card.config.classes; ++i)
        card.labels.push_back("class \"" + std::to_string(i) + "\"");
      const std::string path = at(std::string(variant.name) + enum_name(dialect));
      if (!expressible(dialect, card.config)) {
        EXPECT_THROW(write_model(path, card, {.dialect = dialect}, by_rule), Error);
        EXPECT_FALSE(std::filesystem::exists(path));
        continue;
      }
      write_model(path, card, {.dialect = dialect}, by_rule);
      const auto model = open_model(path);
      EXPECT_EQ(to_json(model->card().config), to_json(card.config));
      EXPECT_EQ(to_json(model->card().preprocess), to_json(card.preprocess));
      EXPECT_EQ(model->card().labels, card.labels);
      EXPECT_EQ(model->card().dialect, dialect);
      expect_rule_weights(*model);
      ++written;
    }
  EXPECT_EQ(written, 34 + 14 + 6 + 13);  // timm, hf, torchvision, google
}

// Transformers looks for the names of a ViTModel where there is no head, and for those behind "vit." where
// there is one.
TEST_F(DialectRoundTrip, AModelWithoutAHeadHasTheNamesOfAViTModel) {
  for (const int64_t classes : {0, 5}) {
    ModelCard card = tiny();
    card.config.classes = classes, card.labels.clear();
    const std::string path = at("of_" + std::to_string(classes));
    write_model(path, card, {.dialect = Dialect::kHf}, by_rule);
    const auto model = open_model(path);
    for (const TensorInfo& tensor : model->source().tensors())
      EXPECT_EQ(tensor.name.starts_with("vit.") || tensor.name.starts_with("classifier."), classes > 0)
          << tensor.name;
  }
}

TEST_F(DialectRoundTrip, HalfPrecisionIsWithinItsRounding) {
  const std::pair<DType, float> kinds[] = {{DType::kF16, 1.0f / 2048}, {DType::kBF16, 1.0f / 256}};
  for (const auto& [storage, rounding] : kinds)
    for (Dialect dialect : kDialects) {
      SCOPED_TRACE(std::string(to_string(storage)) + " as " + enum_name(dialect));
      const std::string path = at(std::string(to_string(storage)) + enum_name(dialect));
      write_model(path, tiny(), {.dialect = dialect, .storage = storage}, by_rule);
      const auto model = open_model(path);
      for (const TensorInfo& tensor : model->source().tensors())
        EXPECT_EQ(tensor.dtype, storage) << tensor.name;
      expect_rule_weights(*model, rounding);
    }
}

TEST_F(DialectRoundTrip, ChainsOfConversionsLoseNothing) {
  std::string path = at("first");
  write_model(path, tiny(), {.dialect = Dialect::kTimm}, by_rule);
  for (Dialect dialect :
       {Dialect::kGoogle, Dialect::kHf, Dialect::kTorchvision, Dialect::kTimm, Dialect::kHf}) {
    const auto model = open_model(path);
    const std::string next = path + enum_name(dialect);
    write_model(next, model->card(), {.dialect = dialect},
                [&](const ParamSpec& spec, std::span<float> target) { model->read_param(spec, target); });
    path = next;
  }
  const auto model = open_model(path);
  EXPECT_EQ(to_json(model->card().config), to_json(tiny().config));
  expect_rule_weights(*model);
}

TEST_F(DialectRoundTrip, NothingIsOverwrittenUnasked) {
  for (Dialect dialect : {Dialect::kHf, Dialect::kTimm}) {
    const std::string path = at(enum_name(dialect));
    write_model(path, tiny(), {.dialect = dialect}, by_rule);
    try {
      write_model(path, tiny(), {.dialect = dialect}, by_rule);
      FAIL() << "overwrote " << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kWrite);
    }
    EXPECT_NO_THROW(write_model(path, tiny(), {.dialect = dialect, .overwrite = true}, by_rule));
  }
}

TEST_F(DialectRoundTrip, TheJsonBesideAnNpzIsNotOverwrittenEither) {
  write_file(at("m.npz.json"), "mine");
  EXPECT_THROW(write_model(at("m.npz"), tiny(), {.dialect = Dialect::kGoogle}, by_rule), Error);
  EXPECT_FALSE(std::filesystem::exists(at("m.npz")));
  EXPECT_EQ(read_file(at("m.npz.json"), 10), "mine");
}

TEST_F(DialectRoundTrip, AParameterHasItsOwnNumberOfElements) {
  write_model(at("m"), tiny(), {.dialect = Dialect::kTimm}, by_rule);
  std::vector<float> longer(25);
  EXPECT_THROW(open_model(at("m"))->read_param({"norm.bias", {{'D', 24}}}, longer), Error);
}

TEST_F(DialectRoundTrip, RefusalsNameTheFeature) {
  ModelCard card = tiny();
  card.config.qk_norm = true;
  try {
    write_model(at("hf"), card, {.dialect = Dialect::kHf}, by_rule);
    FAIL();
  } catch (const Error& error) {
    EXPECT_SAYS(error.what(), "qk-norm");
  }
}

TEST_F(DialectRoundTrip, AnotherImageSizeResizesPositionsAndImages) {
  ModelCard card = tiny();
  write_model(at("m"), card, {.dialect = Dialect::kTimm}, by_rule);
  const auto model = open_model(at("m"), {.image_height = 64, .image_width = 48});
  const VitConfig& c = model->card().config;
  EXPECT_EQ(c.image_height, 64);
  EXPECT_EQ(c.image_width, 48);
  EXPECT_EQ(model->card().preprocess.height, 64);
  EXPECT_EQ(model->card().preprocess.resize, 54);
  const ParamSpec pos{"pos_embed", {{'N', 1 + 8 * 6}, {'D', 24}}};
  const std::vector<float> resized = values(*model, pos),
                           whole = values(*open_model(at("m")), {"pos_embed", {{'N', 17}, {'D', 24}}});
  EXPECT_TRUE(std::equal(whole.begin(), whole.begin() + 24, resized.begin()))
      << "the class token's row changed";
  EXPECT_FALSE(std::equal(whole.begin() + 24, whole.begin() + 48, resized.begin() + 24));
  EXPECT_SAYS(refusal(at("m"), {.image_height = 33}), "does not divide");
}

TEST_F(DialectRoundTrip, AFailedWriteLeavesNothingBehind) {
  const auto fails = [](const ParamSpec& spec, std::span<float>) {
    if (spec.name == "norm.bias") throw Error(ErrorKind::kData, "no more");
  };
  for (const Dialect dialect : {Dialect::kHf, Dialect::kGoogle, Dialect::kTimm}) {
    EXPECT_THROW(write_model(at("new/deep/m"), tiny(), {.dialect = dialect}, fails), Error);
    EXPECT_FALSE(std::filesystem::exists(at("new"))) << enum_name(dialect);
  }
  std::filesystem::create_directories(at("mine"));
  EXPECT_THROW(write_model(at("mine"), tiny(), {.dialect = Dialect::kHf}, fails), Error);
  EXPECT_TRUE(std::filesystem::is_empty(at("mine"))) << "a folder that was there stays, empty as it was";
}

// The weights are written first: when a file after them cannot be, they go again.
TEST_F(DialectRoundTrip, WhatWasWrittenBeforeAFailureIsRemovedFromAFolderThatWasThere) {
  const std::string in_the_way = at("mine/config.json/notes.txt");
  const auto blocks = [&](const ParamSpec& spec, std::span<float> target) {
    by_rule(spec, target);
    if (spec.name != "norm.bias") return;
    std::filesystem::create_directories(at("mine/config.json"));
    write_file(in_the_way, "x");
  };
  std::filesystem::create_directories(at("mine"));
  EXPECT_THROW(write_model(at("mine"), tiny(), {.dialect = Dialect::kHf}, blocks), Error);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(at("mine")))
    left.push_back(entry.path().filename().string());
  EXPECT_EQ(left, std::vector<std::string>{"config.json"}) << "what somebody else put there stays";
  EXPECT_TRUE(std::filesystem::exists(in_the_way));
}

TEST_F(DialectRoundTrip, OnlyAModelIsReplaced) {
  const WriteOptions replace{.dialect = Dialect::kHf, .overwrite = true};
  write_model(at("m"), tiny(), replace, by_rule);
  write_file(at("m/LICENSE.txt"), "free");
  EXPECT_NO_THROW(write_model(at("m"), tiny(), replace, by_rule));
  EXPECT_EQ(read_file(at("m/LICENSE.txt"), 10), "free");
  write_file(at("m/thesis.tex"), "years of work");
  try {
    write_model(at("m"), tiny(), replace, by_rule);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kWrite);
    EXPECT_SAYS(error.what(), "\"thesis.tex\"");
  }
  EXPECT_THROW(write_model(at("m"), tiny(), {.dialect = Dialect::kTimm, .overwrite = true}, by_rule), Error);
}

}  // namespace
}  // namespace vitrail
