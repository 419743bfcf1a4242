// The JSON files beside weights, key by key; what is said of sealed folders, of places that are taken, and of
// files that changed.

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/crc32c.h"
#include "io/cards/written_json.h"
#include "io/dialect_files.h"
#include "io/names_only.h"
#include "io/sealed_folder.h"
#include "io/source_identity.h"
#include "io/write_target.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

class WrittenFiles : public DialectTest {};

TEST_F(WrittenFiles, ConfigsOfTransformers) {
  ModelCard card = tiny();
  card.config.norm_eps = 1e-12;
  Json expected = {{"architectures", {"ViTForImageClassification"}},
                   {"model_type", "vit"},
                   {"hidden_size", 24},
                   {"num_hidden_layers", 2},
                   {"num_attention_heads", 3},
                   {"intermediate_size", 40},
                   {"patch_size", 8},
                   {"num_channels", 3},
                   {"qkv_bias", true},
                   {"layer_norm_eps", 1e-12},
                   {"hidden_act", "gelu"},
                   {"attention_probs_dropout_prob", 0.0},
                   {"hidden_dropout_prob", 0.0},
                   {"dtype", "float32"},
                   {"image_size", 32}};
  for (int i = 0; i < 5; ++i) {
    const std::string label = "LABEL_" + std::to_string(i);
    expected["id2label"][std::to_string(i)] = label;
    expected["label2id"][label] = i;
  }
  EXPECT_EQ(hf_config_json(card, DType::kF32), expected);
  card.config.classes = 0;
  expected.erase("id2label"), expected.erase("label2id");
  expected["architectures"] = {"ViTModel"};
  EXPECT_EQ(hf_config_json(card, DType::kF32), expected);
  const auto with = [](const std::function<void(ModelCard&)>& change, const char* key,
                       DType storage = DType::kF32) {
    ModelCard changed = tiny();
    change(changed);
    const Json json = hf_config_json(changed, storage);
    return json.contains(key) ? json.at(key) : Json();
  };
  const auto none = [](ModelCard&) {};
  EXPECT_EQ(with(none, "dtype", DType::kF16), "float16");
  EXPECT_EQ(with(none, "dtype", DType::kBF16), "bfloat16");
  EXPECT_EQ(with(none, "problem_type"), Json());
  EXPECT_EQ(with([](ModelCard& c) { c.scores = ScoreKind::kSigmoid; }, "problem_type"),
            "multi_label_classification");
  EXPECT_EQ(with([](ModelCard& c) { c.config.image_width = 48; }, "image_size"), (Json{32, 48}));
  EXPECT_EQ(with([](ModelCard& c) { c.config.patch_width = 4; }, "patch_size"), (Json{8, 4}));
  EXPECT_EQ(with([](ModelCard& c) { c.config.distilled = true; }, "model_type"), "deit");
  EXPECT_EQ(with([](ModelCard& c) { c.config.distilled = true; }, "architectures"),
            Json::array({"DeiTForImageClassificationWithTeacher"}));
  EXPECT_EQ(with([](ModelCard& c) { c.config.distilled = true, c.config.classes = 0; }, "architectures"),
            Json::array({"DeiTModel"}));
  const auto pooled = [](ModelCard& c) { c.config.pre_logits = true, c.config.representation = 9; };
  EXPECT_EQ(with(pooled, "pooler_output_size"), 9);
  EXPECT_EQ(with(pooled, "pooler_act"), "tanh");
  EXPECT_EQ(with([](ModelCard& c) { c.labels = {"a", "b", "c", "d", "e"}; }, "label2id")["e"], 4);
}

TEST_F(WrittenFiles, ImagesOfTransformers) {
  PreprocessConfig p{.height = 32, .width = 48, .mode = ResizeMode::kStretchCrop, .resize = 40};
  p.mean = {0.1}, p.std = {0.2};
  Json expected = {{"do_resize", true},
                   {"do_rescale", true},
                   {"do_normalize", true},
                   {"rescale_factor", 1.0 / 255},
                   {"resample", 3},
                   {"image_mean", {0.1}},
                   {"image_std", {0.2}},
                   {"do_center_crop", true},
                   {"image_processor_type", "DeiTImageProcessor"},
                   {"crop_size", {{"height", 32}, {"width", 48}}},
                   {"size", {{"height", 40}, {"width", 60}}}};
  EXPECT_EQ(hf_preprocessor_json(p), expected);
  p.mode = ResizeMode::kShorterSide;
  expected["image_processor_type"] = "CLIPImageProcessor";
  expected["size"] = {{"shortest_edge", 60}};
  EXPECT_EQ(hf_preprocessor_json(p), expected);
  p.mode = ResizeMode::kStretch;
  expected["image_processor_type"] = "ViTImageProcessor";
  expected.erase("do_center_crop"), expected.erase("crop_size");
  expected["size"] = {{"height", 32}, {"width", 48}};
  EXPECT_EQ(hf_preprocessor_json(p), expected);
  const std::pair<Interpolation, int> codes[] = {{Interpolation::kNearest, 0},  {Interpolation::kLanczos, 1},
                                                 {Interpolation::kBilinear, 2}, {Interpolation::kBicubic, 3},
                                                 {Interpolation::kBox, 4},      {Interpolation::kHamming, 5}};
  for (const auto& [interpolation, code] : codes) {
    p.interpolation = interpolation;
    EXPECT_EQ(hf_preprocessor_json(p)["resample"], code);
  }
}

TEST_F(WrittenFiles, ConfigsOfTimm) {
  ModelCard card = tiny();
  card.config.image_width = card.preprocess.width = 48;
  card.config.mlp = 36;
  card.config.registers = 2;
  card.preprocess.crop_pct = 0.5, card.preprocess.resize = 64;
  card.preprocess.mean = {0.1, 0.2, 0.3};
  const Json json = timm_config_json(card);
  EXPECT_EQ(json["architecture"], "vit_base_patch16_224");
  EXPECT_EQ(json["num_classes"], 5);
  EXPECT_EQ(json["num_features"], 24);
  EXPECT_EQ(json["model_args"], (Json{{"img_size", {32, 48}},
                                      {"patch_size", 8},
                                      {"in_chans", 3},
                                      {"embed_dim", 24},
                                      {"depth", 2},
                                      {"num_heads", 3},
                                      {"mlp_ratio", 1.5},
                                      {"qkv_bias", true},
                                      {"qk_norm", false},
                                      {"act_layer", "gelu"},
                                      {"num_classes", 5},
                                      {"class_token", true},
                                      {"global_pool", "token"},
                                      {"fc_norm", false},
                                      {"reg_tokens", 2},
                                      {"no_embed_class", false}}));
  EXPECT_EQ(json["pretrained_cfg"], (Json{{"input_size", {3, 32, 48}},
                                          {"interpolation", "bicubic"},
                                          {"crop_pct", 0.5},
                                          {"crop_mode", "center"},
                                          {"mean", {0.1, 0.2, 0.3}},
                                          {"std", {0.5, 0.5, 0.5}},
                                          {"num_classes", 5}}));
  card.preprocess.crop_pct = 0, card.preprocess.resize = 40;
  EXPECT_EQ(timm_config_json(card)["pretrained_cfg"]["crop_pct"], 0.8) << "of the rows: 32 / 40";
  card.config.patch_width = 1;
  EXPECT_EQ(timm_config_json(card)["model_args"]["patch_size"], (Json{8, 1}));
  card.config.patch_width = 0;
  card.config.distilled = true;
  EXPECT_EQ(timm_config_json(card)["architecture"], "deit_base_distilled_patch16_224");
  EXPECT_FALSE(timm_config_json(card)["model_args"].contains("class_token"));
  card.config.arch = "own";
  EXPECT_EQ(timm_config_json(card)["architecture"], "own");
  card.preprocess.mode = ResizeMode::kStretch;
  EXPECT_EQ(timm_config_json(card)["pretrained_cfg"]["crop_mode"], "squash");
  EXPECT_EQ(timm_config_json(card)["pretrained_cfg"]["crop_pct"], 1);
}

TEST_F(WrittenFiles, WeightsSayThatTheyAreTorchs) {
  write_model(at("hf"), tiny(), {}, by_rule);
  write_model(at("timm"), tiny(), {.dialect = Dialect::kTimm}, by_rule);
  EXPECT_EQ(open_tensors(at("hf"))->metadata().at("format"), "pt") << "transformers asks for it";
  EXPECT_EQ(open_tensors(at("timm"))->metadata().at("format"), "pt");
}

TEST_F(WrittenFiles, AFolderIsTransformersWhereThatHoldsTheModel) {
  VitConfig config = tiny().config;
  EXPECT_EQ(folder_dialect(config), Dialect::kHf);
  config.qk_norm = true;
  EXPECT_EQ(folder_dialect(config), Dialect::kTimm);
}

TEST_F(WrittenFiles, OnlyFloatsAreStored) {
  EXPECT_EQ(error_of([&] { write_model(at("m"), tiny(), {.storage = DType::kF64}, by_rule); }),
            "usage: weights are stored as f32, f16 or bf16, not f64");
}

TEST_F(WrittenFiles, PlacesThatAreTaken) {
  fs::create_directories(at("folder/inner"));
  write_file(at("file"), "x");
  const auto said = [&](const char* name, bool overwrite, bool folder) {
    return error_of([&] { check_target(at(name), overwrite, folder); });
  };
  EXPECT_EQ(said("new", false, true), "");
  EXPECT_EQ(said("folder/inner", false, true), "") << "empty";
  EXPECT_EQ(said("folder", true, true), "write: " + at("folder") +
                                            " already exists and holds \"inner\", which is no part of "
                                            "a model that could be replaced");
  EXPECT_EQ(said("folder", true, false),
            "write: " + at("folder") + " is a folder, and a file is to be written there");
  EXPECT_EQ(said("file", true, true),
            "write: " + at("file") + " is a file, and a folder is to be written there");
  EXPECT_EQ(said("file", false, false), "write: " + at("file") + " already exists");
  EXPECT_EQ(said("file", true, false), "");
  for (const char* name : {"adapters.safetensors", "manifest.json", "model.safetensors", "config.json",
                           "preprocessor_config.json", "LICENSE", "README.md", "NOTICE", ".gitattributes"})
    write_file(at("folder/inner/") + name, "x");
  EXPECT_EQ(foreign_to_model(at("folder/inner")), "");
  write_file(at("folder/inner/license"), "x");
  EXPECT_EQ(foreign_to_model(at("folder/inner")), "license");
}

TEST_F(WrittenFiles, WhatIsSaidOfSealedFiles) {
  write_model(at("m"), tiny(), {.manifest = true, .facts = {{"kept", 1}}}, by_rule);
  const Manifest manifest = require_manifest(at("m"));
  EXPECT_EQ(manifest.facts, (Json{{"kept", 1}}));
  EXPECT_EQ(manifest.step, 0);
  write_file(at("m/config.json"), "{}");
  const std::vector<SealedFile> files = check_sealed(at("m"), manifest);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_SAYS(files[0].problem, "config.json has 2 bytes, ");
  const auto json = sealed_json(at("m"), files);
  EXPECT_EQ(json["folder"], at("m"));
  EXPECT_EQ(json["same"], false);
  EXPECT_EQ(json["files"][0]["same"], false);
  EXPECT_EQ(json["files"][0]["problem"], files[0].problem);
  EXPECT_EQ(json["files"][1].dump(), R"({"name":"model.safetensors","same":true,"problem":""})");
  const std::string table = sealed_table(manifest, files);
  EXPECT_SAYS(table, files[0].problem);
  EXPECT_SAYS(table, "as it was written");
  EXPECT_EQ(error_of([&] { read_sealed(at("m/config.json"), 100); }).substr(0, 6), "data: ");
  fs::remove(at("m/preprocessor_config.json"));
  EXPECT_EQ(error_of([&] {
              require_present(at("m"), {"absent", "preprocessor_config.json"});
            }),
            "data: " + at("m") + " lacks preprocessor_config.json, which its manifest.json lists");
  seal_folder(at("m"), {{"other", 2}});
  EXPECT_EQ(require_manifest(at("m")).facts, (Json{{"kept", 1}})) << "those of the manifest that was there";
  write_file(at("plain"), "12345");
  EXPECT_EQ(read_sealed(at("plain"), 5), "12345");
  EXPECT_EQ(error_of([&] { read_sealed(at("plain"), 4); }),
            "data: " + at("plain") + " is larger than the 4 bytes allowed here");
  fs::create_directories(at("none"));
  EXPECT_EQ(error_of([&] { require_manifest(at("none")); }), "data: " + at("none") + " has no manifest.json");
  EXPECT_EQ(error_of([&] { require_model(at("none")); }), "usage: " + at("none") + " holds no model");
  for (const char* name : {"manifest.json", "model.safetensors", "model.safetensors.index.json",
                           "pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    write_file(at("none/") + name, "x");
    EXPECT_EQ(error_of([&] { require_model(at("none")); }), "") << name;
    fs::remove(at("none/") + name);
  }
}

// The size and the last MiB tell weights apart.
TEST_F(WrittenFiles, TheMarkOfWeights) {
  const std::string end(1 << 20, 'e');
  write_file(at("w"), "start" + end);
  const Json mark = weights_mark(at("w"));
  EXPECT_EQ(mark, (Json{{"bytes", 5 + (1 << 20)}, {"end_crc32c", strf("%08x", crc32c(as_byte_span(end)))}}));
  EXPECT_NO_THROW(require_own_weights({{kWeightsMark, mark}}, "w.json", at("w")));
  EXPECT_NO_THROW(require_own_weights(Json::object(), "w.json", at("w")));
  write_file(at("w"), "start+" + end);
  EXPECT_EQ(error_of([&] {
              require_own_weights({{kWeightsMark, mark}}, "w.json", at("w"));
            }),
            "data: w.json was written for other weights than " + at("w") + " now holds");
}

// 256 KiB at the start, 64 blocks of 4 KiB spread over the file, and its end.
TEST_F(WrittenFiles, AChangeOfAFileChangesItsIdentity) {
  constexpr int64_t kCount = 600'000;
  write_safetensors(at("w"), {{{.name = "a", .shape = {kCount}, .bytes = 4 * kCount},
                               [](std::span<std::byte> t) { std::fill(t.begin(), t.end(), std::byte{1}); }}});
  const auto time = fs::last_write_time(at("w"));
  const std::string good = read_file(at("w"), 1 << 23);
  const auto identity = [&](const std::string& content) {
    std::ofstream(at("w"), std::ios::binary) << content;
    fs::last_write_time(at("w"), time);
    return source_identity(*open_tensors(at("w")));
  };
  const std::string before = identity(good);
  EXPECT_SAYS(before, strf("w %zu bytes, changed ", good.size()));
  const size_t share = good.size() / 64;
  for (const size_t at_byte : {size_t{200}, size_t{(256 << 10) - 1}, 29 * share - 4096, 30 * share - 1,
                               64 * share - 1, good.size() - 1}) {
    std::string changed = good;
    changed[at_byte] = 2;
    EXPECT_NE(identity(changed), before) << at_byte;
  }
  EXPECT_EQ(identity(good), before);
  write_file(at("adapters.safetensors"), "x");
  EXPECT_SAYS(source_identity(*open_tensors(at("w"))), "adapters.safetensors 1 bytes, changed ");
  fs::remove(at("adapters.safetensors"));
  fs::last_write_time(at("w"), time + std::chrono::milliseconds(1));
  EXPECT_NE(source_identity(*open_tensors(at("w"))), before);
}

TEST_F(WrittenFiles, WhatAModelLearnedFromIsKept) {
  const Json facts = {{kLearnedFrom, "cats"}, {"other", 3}}, kept = {{kLearnedFrom, "cats"}};
  write_model(at("m"), tiny(), {.manifest = true, .facts = facts}, by_rule);
  EXPECT_EQ(kept_facts(at("m")), kept);
  EXPECT_EQ(kept_facts(at("m/model.safetensors")), kept);
  write_model(at("f"), tiny(), {.dialect = Dialect::kTimm, .facts = facts}, by_rule);
  EXPECT_EQ(kept_facts(at("f")), kept);
  write_model(at("g.npz"), tiny(), {.dialect = Dialect::kGoogle, .facts = facts}, by_rule);
  EXPECT_EQ(kept_facts(at("g.npz")), kept);
  EXPECT_EQ(kept_facts(at("missing")), Json::object());
}

}  // namespace
}  // namespace vitrail
