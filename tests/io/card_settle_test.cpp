// How a card is settled where files say little: from tensors, architectures and dialects, and what is noted.
#include "io/adapters.h"
#include "io/cards/merge_stated.h"
#include "io/library_forms.h"
#include "io/names_only.h"
#include "models/zoo.h"

namespace vitrail {
namespace {

using Lines = std::vector<std::string>;

class CardSettle : public LibraryForms {
 protected:
  static void zeros(const ParamSpec&, std::span<float>) {}
  // The tensors alone, without any word on what they are.
  std::string bare(const ModelCard& card, Dialect dialect) {
    write_model(at("whole"), card, {.dialect = dialect, .overwrite = true}, zeros);
    const auto source = std::shared_ptr(open_tensors(at("whole")));
    write_safetensors(at("bare"), renamed(source, [](const std::string& n) { return n; }), {});
    return at("bare");
  }
  static std::string joined(const Lines& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }
};

TEST_F(CardSettle, ABareFileThatIsNoneOfTheKnown) {
  EXPECT_EQ(error_of([&] { open_model(bare(tiny(), Dialect::kTimm)); }),
            "data: the file says nothing about preprocessing, and no known architecture has its tensors "
            "(width 24, 2 "
            "blocks, patch 8, 17 positions)");
  // torchvision's habit tells the images, nothing the heads.
  EXPECT_EQ(error_of([&] { open_model(bare(tiny(), Dialect::kTorchvision)); }),
            "data: nothing says how many attention heads the model has (width 24, 2 blocks)");
}

TEST_F(CardSettle, OneArchitectureThatFitsIsTaken) {
  ModelCard card;
  card.config = find_architecture("test_vit3").config;
  card.preprocess = find_architecture("test_vit3").preprocess;
  const auto model = open_model(bare(card, Dialect::kTimm));
  EXPECT_EQ(model->card().config.arch, "test_vit3");
  EXPECT_EQ(model->card().config.heads, 3);
  EXPECT_EQ(model->card().preprocess.resize, 168);  // 160 / 0.95
  EXPECT_SAYS(joined(model->card().notes), "arch \"test_vit3\": architecture test_vit3");
  EXPECT_SAYS(joined(model->card().notes), "heads 3: architecture test_vit3");
  EXPECT_SAYS(joined(model->card().notes), "preprocessing: architecture test_vit3");
  EXPECT_TRUE(model->card().warnings.empty());
}

TEST_F(CardSettle, HeadsAsThoseOfAKnownModelOfThatSize) {
  ModelCard card;
  card.config.width = 192, card.config.heads = 3, card.config.mlp = 768;
  card.config.image_height = card.config.image_width = 64;
  card.preprocess.height = card.preprocess.width = 64, card.preprocess.resize = 73;
  const auto model = open_model(bare(card, Dialect::kTorchvision));
  EXPECT_EQ(model->card().config.heads, 3);
  EXPECT_SAYS(joined(model->card().notes), "heads 3: as vit_tiny_patch16_224");
  EXPECT_SAYS(joined(model->card().notes), "norm_eps 1e-06: torchvision's habit");
  EXPECT_EQ(model->card().warnings,
            Lines{"preprocessing: torchvision's habit; nothing with the file says how images are prepared"});
}

// bigvision_mu is 32 wide, has one block, and no class token.
TEST_F(CardSettle, HeadsOfAModelWithAnotherPrefixAreNoGuide) {
  ModelCard card = tiny();
  card.config.width = 32, card.config.depth = 1, card.config.mlp = 128, card.config.heads = 2;
  EXPECT_SAYS(refusal(bare(card, Dialect::kTorchvision)), "nothing says how many attention heads");
  const auto source = std::shared_ptr(open_tensors(at("bare")));
  auto tensors = renamed(source, [](const std::string& n) { return n == "class_token" ? "" : n; });
  for (TensorToWrite& tensor : tensors)
    if (tensor.info.name == "encoder.pos_embedding")
      tensor.info.shape = {1, 16, 32}, tensor.info.bytes = 16 * 32 * 4,
      tensor.fill = [](std::span<std::byte>) {};
  write_safetensors(at("without"), tensors, {});
  EXPECT_EQ(open_model(at("without"))->card().config.heads, 2);
}

TEST_F(CardSettle, GridsThatAreNoSquareNeedASize) {
  ModelCard card = tiny();
  card.config.image_width = card.preprocess.width = 64;  // 4 x 8 patches and the class token
  EXPECT_EQ(error_of([&] {
              open_model(bare(card, Dialect::kTimm), {.arch = "vit_tiny_patch16_224"});
            }).substr(0, 5),
            "data:");
  write_model(at("g.npz"), card, {.dialect = Dialect::kGoogle}, by_rule);
  std::filesystem::remove(at("g.npz.json"));
  EXPECT_EQ(error_of([&] { open_model(at("g.npz")); }),
            "data: 33 positions are no square grid, and no config gives the image's size");
  write_folder(card, Dialect::kHf);
  EXPECT_EQ(open_model(at("m"))->card().config.image_width, 64);
  edit([](Json& config) { config["image_size"] = 40; });
  EXPECT_EQ(error_of([&] { open_model(at("m")); }),
            "data: an image of 40 x 40 (config.json) in patches of 8 needs 25 positions, or 26 with those of "
            "the tokens "
            "before the patches; the file has 33");
}

TEST_F(CardSettle, APositionOfTheClassTokenThatIsClaimedMustBeThere) {
  write_model(at("m"), tiny(), {.dialect = Dialect::kTimm, .folder = true}, by_rule);
  edit([](Json& config) { config["vitrail"]["model"]["pos_for_prefix"] = false; });
  EXPECT_EQ(error_of([&] { open_model(at("m")); }),
            "data: config.json (vitrail) says the class token has no position, but the file has 17 rows of "
            "positions");
}

TEST_F(CardSettle, WithoutPositionsTheSizeIsAGuess) {
  ModelCard card = tiny();
  card.config.pos = PosKind::kNone;
  write_folder(card, Dialect::kTimm);
  edit([](Json& config) {
    config["model_args"].erase("img_size");
    config["pretrained_cfg"].erase("input_size");
    config["architecture"] = "vit_base_patch8_224";
  });
  EXPECT_TRUE(open_model(at("m"))->card().warnings.empty()) << "the architecture says 224";
  write_model(
      at("g.npz"),
      [] {
        ModelCard fixed = tiny();
        fixed.config.pos = PosKind::kSinCos2d, fixed.config.class_token = false,
        fixed.config.pool = Pool::kMean;
        return fixed;
      }(),
      {.dialect = Dialect::kGoogle}, by_rule);
  std::filesystem::remove(at("g.npz.json"));
  const ModelCard found = open_model(at("g.npz"))->card();
  EXPECT_EQ(found.config.image_height, 224);
  EXPECT_SAYS(joined(found.warnings),
              "the file holds no positions to tell the image size by: 224 is a guess");
}

TEST_F(CardSettle, LabelsMustBeOnePerClass) {
  write_model(at("m"), tiny(), {.dialect = Dialect::kTimm, .folder = true}, by_rule);
  edit([](Json& config) { config["label_names"] = {"a", "b"}; });
  EXPECT_EQ(error_of([&] { open_model(at("m")); }), "data: 2 labels for 5 classes");
}

TEST_F(CardSettle, ABaseModelsConfigMayStillCountLabels) {
  ModelCard card = tiny();
  card.config.classes = 0;
  write_folder(card, Dialect::kHf);
  edit([](Json& config) { config["id2label"] = {{"0", "a"}, {"1", "b"}}; });
  const ModelCard found = open_model(at("m"))->card();
  EXPECT_EQ(found.config.classes, 0);
  EXPECT_TRUE(found.labels.empty());
}

TEST_F(CardSettle, ANameIsKeptOnlyWhileTheModelIsIt) {
  const auto name_with = [&](const std::function<void(VitConfig&)>& change) {
    ModelCard card;
    card.config = find_architecture("test_vit").config;
    card.preprocess = find_architecture("test_vit").preprocess;
    change(card.config);
    card.preprocess.height = card.config.image_height, card.preprocess.width = card.config.image_width;
    card.preprocess.crop_pct = 0;
    write_model(at("named"), card, {.dialect = Dialect::kTimm, .overwrite = true}, zeros);
    return open_model(at("named"))->card().config.arch;
  };
  const std::string name = "test_vit";
  EXPECT_EQ(name_with([](VitConfig&) {}), name);
  EXPECT_EQ(name_with([](VitConfig& c) { c.classes = 3; }), name);
  EXPECT_EQ(name_with([](VitConfig& c) { c.image_height = c.image_width = 32; }), name);
  const std::function<void(VitConfig&)> others[] = {
      [](VitConfig& c) { c.depth = 1; },
      [](VitConfig& c) { c.heads = 4; },
      [](VitConfig& c) { c.mlp = 100; },
      [](VitConfig& c) { c.patch = 8; },
      [](VitConfig& c) { c.registers = 1; },
      [](VitConfig& c) { c.pool = Pool::kMean; },
      [](VitConfig& c) { c.patch_width = 8; },
      [](VitConfig& c) { c.pool = Pool::kMean, c.pool_prefix = true; },
      [](VitConfig& c) { c.pos = PosKind::kNone; },
      [](VitConfig& c) { c.norm = NormKind::kRms; },
      [](VitConfig& c) { c.norm_place = NormPlace::kNone; },
  };
  for (size_t i = 0; i < std::size(others); ++i) EXPECT_EQ(name_with(others[i]), "") << i;
}

TEST_F(CardSettle, WhichWeightsOfACheckpointWereTakenIsAWarning) {
  const ModelCard card = tiny();
  write_model(at("plain"), card, {.dialect = Dialect::kTimm}, by_rule);
  const auto source = std::shared_ptr(open_tensors(at("plain")));
  auto metadata = source->metadata();
  metadata["state_dict"] = "model_ema", metadata["state_dicts_passed_over"] = "model";
  write_safetensors(at("two"), renamed(source, [](const std::string& n) { return n; }), metadata);
  EXPECT_EQ(open_model(at("two"))->card().warnings,
            Lines{"the weights under \"model_ema\" are taken, as timm's loader does; the file has others "
                  "under model"});
}

TEST_F(CardSettle, ConfigsBesideAFile) {
  write_model(at("f.safetensors"), tiny(), {.dialect = Dialect::kTimm}, by_rule);
  const auto source = std::shared_ptr(open_tensors(at("f.safetensors")));
  const Json block = parse_json(source->metadata().at("vitrail"), "m");
  for (const char* name : {"f.safetensors.json", "f.json"}) {
    write_safetensors(at("f.safetensors"), renamed(source, [](const std::string& n) { return n; }), {});
    write_file(at(name), block.dump());
    EXPECT_EQ(open_model(at("f.safetensors"))->card().config.heads, 3) << name;
    EXPECT_SAYS(joined(open_model(at("f.safetensors"))->card().notes),
                "heads 3: " + std::string(name) + " (vitrail)");
    write_file(at(name), "[]");
    EXPECT_SAYS(refusal(at("f.safetensors")), "expected a JSON object");
    std::filesystem::remove(at(name));
  }
}

TEST(SpokenClaims, AsPeopleSayThem) {
  const std::tuple<const char*, Json, const char*> rows[] = {
      {"norm_place", "after_pool", "the last layernorm is after pooling"},
      {"norm_place", "before_pool", "the last layernorm is before pooling"},
      {"norm_place", "none", "there is no last layernorm"},
      {"patch_width", 0, "patches are square"},
      {"patch_width", 7, "patches are 7 pixels wide"},
      {"pos_for_prefix", true, "the class token has a position"},
      {"pos_for_prefix", false, "the class token has none"},
      {"pre_logits", true, "there is a layer before the head"},
      {"pre_logits", false, "there is none"},
      {"depth", 3, "depth is 3"}};
  for (const auto& [field, value, text] : rows) EXPECT_EQ(spoken(field, value), text);
  EXPECT_EQ(spoken_value("depth", 3), "3");
  EXPECT_EQ(spoken_value("patch_width", 0), "patches are square");
}

TEST_F(CardSettle, AdaptersThatDoNotBelong) {
  const auto said = [&](const std::function<void(std::vector<TensorToWrite>&,
                                                 std::map<std::string, std::string>&)>& change) {
    write_model(at("m"), tiny(), {.overwrite = true}, by_rule);
    write_adapters(at("m"), tiny().config, {.rank = 2}, by_rule);
    const auto source = std::shared_ptr(open_tensors(at("m/adapters.safetensors")));
    auto metadata = source->metadata();
    auto tensors = renamed(source, [](const std::string& n) { return n; });
    change(tensors, metadata);
    write_safetensors(at("new"), tensors, metadata);
    std::filesystem::rename(at("new"), at("m/adapters.safetensors"));
    return error_of([&] { open_model(at("m")); });
  };
  using Tensors = std::vector<TensorToWrite>;
  using Words = std::map<std::string, std::string>;
  EXPECT_EQ(said([](Tensors&, Words&) {}), "");
  EXPECT_EQ(open_model(at("m"))->card().notes.back(), "adapters of rank 2 merged");
  EXPECT_EQ(said([](Tensors&, Words& m) { m.erase("lora_rank"); }), "data: the metadata has no lora_rank");
  EXPECT_EQ(said([](Tensors&, Words& m) { m["lora_alpha"] = "x"; }),
            "data: the metadata's lora_alpha is \"x\", expected a number");
  EXPECT_EQ(said([](Tensors&, Words& m) { m["lora_rank"] = "0"; }),
            "data: adapters of rank 0; it must be between 1 and 4096");
  EXPECT_EQ(said([](Tensors&, Words& m) { m["lora_rank"] = "4097"; }),
            "data: adapters of rank 4097; it must be between 1 and 4096");
  EXPECT_EQ(said([](Tensors&, Words& m) { m["lora_alpha"] = "inf"; }),
            "data: lora_alpha is no finite number");
  EXPECT_SAYS(said([](Tensors&, Words& m) { m["lora_rank"] = "3"; }),
              "another shape or type than the f32 [R3 D24]");
  EXPECT_SAYS(said([](Tensors& t, Words&) { t.pop_back(); }),
              "the adapters are incomplete or of another model");
  EXPECT_EQ(said([](Tensors& t, Words&) {
              t.push_back({{.name = "x", .shape = {1}, .bytes = 4}, [](std::span<std::byte>) {}});
            }),
            "data: \"x\" is no adapter of this model");
}

}  // namespace
}  // namespace vitrail
