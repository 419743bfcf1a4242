// What convert reports about the library that will read its files, which ignores Vitrail's own metadata.
#include <gtest/gtest.h>

#include "in_process.h"
#include "io/cards/library_view.h"
#include "io/model_files.h"
#include "models/vit_init.h"
#include "source_root.h"

namespace vitrail::cli {
namespace {

ModelCard small_card() {
  ModelCard card;
  VitConfig& c = card.config;
  c.image_height = c.image_width = 32;
  c.patch = 8;
  c.width = 24;
  c.depth = 2;
  c.heads = 3;
  c.mlp = 48;
  c.classes = 5;
  card.preprocess.height = card.preprocess.width = 32;
  card.preprocess.resize = 36;
  return card;
}

class LibraryConversion : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }
  // Writes the model as Vitrail keeps it and converts that.
  nlohmann::json convert(const ModelCard& card, const std::string& to, const std::string& name) {
    write_model(at("source"), card,
                {.dialect = folder_dialect(card.config), .overwrite = true, .folder = true},
                [](const ParamSpec& spec, std::span<float> values) { fill_by_rule(spec, values); });
    return run_in_process("convert", {at("source"), at(name), "--to", to, "--force"}).json();
  }
  static bool tells(const nlohmann::json& answer, const std::string& part) {
    return answer["not_kept"].dump().find(part) != std::string::npos;
  }
  TempFolder folder_;
};

TEST_F(LibraryConversion, AnEpsilonThatTheLibraryWillNotUseIsSaid) {
  ModelCard card = small_card();
  card.config.norm_eps = 0.1;
  for (const auto& [to, name] : {std::pair{"timm", "t.safetensors"}, std::pair{"timm", "timm"},
                                 std::pair{"torchvision", "tv.safetensors"}, std::pair{"google", "g.npz"}}) {
    SCOPED_TRACE(name);
    const auto answer = convert(card, to, name);
    EXPECT_FALSE(answer["kept"].get<bool>());
    EXPECT_TRUE(tells(answer, "norm_eps (layernorm epsilon): 0.1 here")) << answer["not_kept"];
    EXPECT_TRUE(tells(answer, "will use 1e-06")) << answer["not_kept"];
    // Vitrail itself reads it back.
    EXPECT_TRUE(answer["changed"].empty());
    EXPECT_EQ(open_model(at(name))->card().config.norm_eps, 0.1);
  }
  EXPECT_FALSE(tells(convert(card, "hf", "hf"), "norm_eps"));
  card.config.norm_eps = 1e-6;
  EXPECT_FALSE(tells(convert(card, "timm", "timm"), "norm_eps"));
}

TEST_F(LibraryConversion, AWarningSaysThatAnotherLibraryDiffers) {
  ModelCard card = small_card();
  card.config.norm_eps = 0.1;
  convert(card, "timm", "timm");
  const Answer text = run_in_process("convert", {at("source"), at("timm"), "--to", "timm", "--force"}, false);
  EXPECT_NE(text.out.find("not kept"), std::string::npos) << text.out;
  EXPECT_NE(text.err.find("warning"), std::string::npos) << text.err;
}

TEST_F(LibraryConversion, TheGeluOfTheLibrary) {
  ModelCard card = small_card();
  card.config.norm_eps = 1e-6;
  EXPECT_TRUE(tells(convert(card, "google", "g.npz"), "gelu"));
  EXPECT_FALSE(tells(convert(card, "torchvision", "tv.safetensors"), "gelu"));
  card.config.gelu = GeluKind::kTanh;
  EXPECT_FALSE(tells(convert(card, "google", "g.npz"), "gelu"));
  EXPECT_TRUE(tells(convert(card, "torchvision", "tv.safetensors"), "gelu"));
  EXPECT_FALSE(tells(convert(card, "hf", "hf"), "gelu"));
}

// The activation goes where a config can name it; what only weights could carry is refused.
TEST_F(LibraryConversion, TheActivationOfTheLibrary) {
  ModelCard card = small_card();
  card.config.norm_eps = 1e-6;
  card.config.activation = ActKind::kRelu;
  EXPECT_FALSE(tells(convert(card, "timm", "timm"), "activation"));
  EXPECT_TRUE(tells(convert(card, "timm", "t.safetensors"), "activation"));
  EXPECT_FALSE(tells(convert(card, "hf", "hf"), "activation"));
  for (const auto& [to, name] : {std::pair{"torchvision", "tv.safetensors"}, std::pair{"google", "g.npz"}})
    EXPECT_THROW(convert(card, to, name), Error) << to;
  card.config.activation = ActKind::kGelu;
  card.config.gelu = GeluKind::kTanh;
  EXPECT_FALSE(tells(convert(card, "timm", "timm"), "gelu"));
}

// A crop that is not square is covered; transformers stores only the shorter side, and would pad with black
// where the other does not reach.
TEST_F(LibraryConversion, ACropThatIsNotSquareLeavesNoBlackBorderInTransformers) {
  ModelCard card = small_card();
  card.config.image_width = 64;
  card.preprocess.width = 64;
  const auto answer = convert(card, "hf", "hf");
  const auto images = nlohmann::json::parse(read_file(at("hf/preprocessor_config.json"), 1 << 20));
  EXPECT_EQ(images["size"]["shortest_edge"], 72);
  EXPECT_TRUE(tells(answer, "resize (side before the crop, along its shorter side): 36 here")) << answer;
  EXPECT_TRUE(tells(answer, "odd_margin")) << answer["not_kept"];
  EXPECT_EQ(open_model(at("hf"))->card().preprocess, card.preprocess);
}

TEST_F(LibraryConversion, WhatTransformersDoesAlikeIsNotMentioned) {
  ModelCard card = small_card();
  card.preprocess.odd_margin = OddMargin::kDown;
  const auto answer = convert(card, "hf", "hf");
  EXPECT_TRUE(answer["kept"].get<bool>()) << answer["not_kept"];
  card.preprocess.odd_margin = OddMargin::kHalfEven;
  EXPECT_TRUE(tells(convert(card, "hf", "hf"), "odd_margin"));
  card.preprocess.mode = ResizeMode::kStretch;
  card.preprocess.resize = 0;
  EXPECT_TRUE(convert(card, "hf", "hf")["kept"].get<bool>());
}

TEST_F(LibraryConversion, TimmHasNoPreLogits) {
  ModelCard card = small_card();
  card.config.pre_logits = true;
  for (const char* name : {"timm", "t.safetensors"}) {
    try {
      convert(card, "timm", name);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(error.message().find("pre_logits"), std::string::npos) << error.message();
      EXPECT_NE(error.hint().find("--to google"), std::string::npos) << error.hint();
    }
    EXPECT_FALSE(std::filesystem::exists(at(name)));
  }
  EXPECT_EQ(convert(card, "torchvision", "tv.safetensors")["max_difference"], 0);
  EXPECT_EQ(convert(card, "google", "g.npz")["max_difference"], 0);
}

TEST_F(LibraryConversion, AFolderAsTimmPublishesModels) {
  ModelCard card = small_card();
  card.labels = {"a", "b", "c", "d", "e"};
  const auto answer = convert(card, "timm", "timm");
  EXPECT_EQ(answer["to"], "timm");
  EXPECT_TRUE(answer["kept"].get<bool>()) << answer["not_kept"];
  const auto config = nlohmann::json::parse(read_file(at("timm/config.json"), 1 << 20));
  EXPECT_EQ(config["architecture"], "vit_base_patch16_224");
  EXPECT_EQ(config["model_args"]["embed_dim"], 24);
  EXPECT_EQ(config["pretrained_cfg"]["label_names"].size(), 5u);
  EXPECT_TRUE(std::filesystem::exists(at("timm/manifest.json")));
  EXPECT_EQ(open_model(at("timm"))->card().dialect, Dialect::kTimm);
}

// timm computes the side before the crop from a share of it.
TEST_F(LibraryConversion, TimmFindsEverySideBeforeTheCropAgain) {
  ModelCard card = small_card();
  for (int64_t side = 32; side < 132; ++side) {
    card.preprocess.resize = side;
    const LibraryView view = library_view(card, {.dialect = Dialect::kTimm, .folder = true});
    EXPECT_EQ(resize_sides(*view.preprocess).height, side);
    EXPECT_TRUE(not_kept(card, view).empty()) << not_kept(card, view)[0];
  }
}

class VerifyManifest : public LibraryConversion {
 protected:
  void SetUp() override { convert(small_card(), "hf", "m"); }
  static Error refusal(const std::vector<std::string>& arguments) {
    try {
      run_in_process("verify", arguments);
    } catch (const Error& error) {
      return error;
    }
    return {ErrorKind::kInternal, "not refused"};
  }
};

TEST_F(VerifyManifest, NamesTheFileThatChanged) {
  const auto good = run_in_process("verify", {"--manifest", at("m")}).json();
  EXPECT_TRUE(good["same"].get<bool>());
  EXPECT_EQ(good["files"].size(), 3u);
  std::string weights = read_file(at("m/model.safetensors"), 1 << 20);
  weights.back() = static_cast<char>(weights.back() ^ 2);
  folder_.file("m/model.safetensors", weights);
  const Error bad = refusal({"--manifest", at("m")});
  EXPECT_EQ(bad.kind(), ErrorKind::kData);
  EXPECT_NE(bad.message().find("model.safetensors"), std::string::npos) << bad.message();
  // Every reader of the files refuses them too.
  for (const std::string command : {"predict", "inspect"}) {
    const std::vector<std::string> arguments =
        command == "predict"
            ? std::vector<std::string>{"-m", at("m"),
                                       std::string(VT_SOURCE_DIR) + "/examples/images/coffee.png"}
            : std::vector<std::string>{at("m"), "--stats"};
    try {
      run_in_process(command, arguments);
      ADD_FAILURE() << command;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_NE(std::string(error.what()).find("model.safetensors"), std::string::npos) << error.what();
    }
  }
}

TEST_F(VerifyManifest, AnEditIsAcceptedByUpdate) {
  auto config = nlohmann::json::parse(read_file(at("m/config.json"), 1 << 20));
  config["id2label"]["0"] = "edited";
  folder_.file("m/config.json", config.dump());
  EXPECT_NE(refusal({at("m"), at("m")}).hint().find("verify --manifest --update"), std::string::npos);
  EXPECT_TRUE(run_in_process("verify", {"--manifest", "--update", at("m")}).json()["same"].get<bool>());
  EXPECT_EQ(open_model(at("m"))->card().labels.at(0), "edited");
}

TEST_F(VerifyManifest, TheBundledModelIsAsItWasPublished) {
  const std::string bundled = std::string(VT_SOURCE_DIR) + "/models/deit_tiny_patch16_224";
  const auto answer = run_in_process("verify", {"--manifest", bundled}).json();
  EXPECT_TRUE(answer["same"].get<bool>());
  EXPECT_EQ(answer["files"].size(), 3u);
}

TEST_F(VerifyManifest, IsAskedForAFolderOfAModel) {
  EXPECT_EQ(refusal({"--manifest", at("source")}).kind(), ErrorKind::kData);  // it has none
  EXPECT_EQ(refusal({"--manifest", at("m"), at("m")}).kind(), ErrorKind::kUsage);
  EXPECT_EQ(refusal({"--update", at("m"), at("m")}).kind(), ErrorKind::kUsage);
  EXPECT_EQ(refusal({at("m")}).kind(), ErrorKind::kUsage);
  folder_.file("other/notes.txt", "mine");
  EXPECT_EQ(refusal({"--manifest", "--update", at("other")}).kind(), ErrorKind::kUsage);
  EXPECT_FALSE(std::filesystem::exists(at("other/manifest.json")));
}

}  // namespace
}  // namespace vitrail::cli
