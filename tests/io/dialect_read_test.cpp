#include <fstream>

#include "io/dialect_files.h"
#include "source_root.h"

namespace vitrail {
namespace {

const std::string kDialectModels = VT_SOURCE_DIR "/tests/golden/models/";

class DialectRead : public DialectTest {
 protected:
  static Json golden(const std::string& name) {
    return parse_json(read_file(kDialectModels + name + ".json", 1 << 22), name);
  }
  // A copy of the model with a sidecar for what its bare tensors cannot hold.
  std::string with_sidecar(const Json& golden) {
    const std::string file = golden["model"];
    std::string path = at(file);
    std::filesystem::copy_file(kDialectModels + file, path);
    PreprocessConfig images{.height = golden["config"]["image_height"],
                            .width = golden["config"]["image_width"]};
    write_file(path + ".json",
               Json{{"vitrail", {{"model", golden["config"]}, {"preprocess", to_json(images)}}}}.dump());
    return path;
  }
};

// Which parameters the file holds: the rule's, or the rule's rounded to 16 bits.
float tolerance(const std::string& weights) {
  if (weights == "rule-f16") return 1.0f / 2048;
  return weights == "rule-bf16" ? 1.0f / 256 : 0;
}

TEST_F(DialectRead, FilesOfEveryLibraryGiveTheirConfigAndWeights) {
  int opened = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kDialectModels)) {
    if (entry.path().extension() != ".json") continue;
    const Json expected = golden(entry.path().stem().string());
    SCOPED_TRACE(expected["name"].dump());
    const std::string file = expected["model"], dialect = expected["dialect"], weights = expected["weights"];
    const bool speaks = dialect == "google" || std::filesystem::is_directory(kDialectModels + file);
    OpenOptions options;  // sincos2d files hold no positions to tell the image size by
    if (expected["config"]["pos"] == "sincos2d") options.image_height = options.image_width = 16;
    const auto model = open_model(speaks ? kDialectModels + file : with_sidecar(expected), options);
    ++opened;
    EXPECT_EQ(enum_name(model->card().dialect), dialect);
    EXPECT_FALSE(model->card().notes.empty());
    if (weights == "rule-cls-plus-row") continue;  // below
    const Json config = to_json(model->card().config);
    for (const auto& [key, value] : expected["config"].items()) EXPECT_EQ(config[key], value) << key;
    if (expected.contains("preprocess")) {
      Json images = to_json(model->card().preprocess);
      for (const auto& [key, value] : expected["preprocess"].items()) EXPECT_EQ(images[key], value) << key;
    }
    expect_rule_weights(*model, tolerance(weights));
    std::filesystem::remove_all(home_);
    std::filesystem::create_directories(home_);
  }
  EXPECT_GE(opened, 25);
}

TEST_F(DialectRead, AnOldClassRowStaysARowOfThePositions) {
  const auto model = open_model(kDialectModels + "big_vision_old_cls.npz");
  EXPECT_TRUE(model->card().config.pos_for_prefix);
  expect_rule_weights(*model);
}

TEST_F(DialectRead, HuggingFaceFoldersGiveImagesAndLabels) {
  const auto model = open_model(kDialectModels + "timm_hub");
  EXPECT_EQ(model->card().labels.size(), 5u);
  EXPECT_EQ(model->card().labels[1], "bell tower");
  EXPECT_EQ(model->card().preprocess.resize, 17);  // floor(16 / 0.9)
  EXPECT_EQ(model->card().preprocess.interpolation, Interpolation::kBicubic);
  const auto hf = open_model(kDialectModels + "hf_single");
  EXPECT_EQ(hf->card().preprocess.height, 16);
  EXPECT_EQ(hf->card().config.pos_resize, PosResize::kHf);
}

TEST_F(DialectRead, HybridsAreRefusedByName) {
  EXPECT_SAYS(refusal(kDialectModels + "google_hybrid.npz"), "ResNet");
}

TEST_F(DialectRead, OtherFamiliesAreRefusedByName) {
  write_model(at("plain"), tiny(), {.dialect = Dialect::kTimm}, by_rule);
  const std::pair<const char*, const char*> rows[] = {
      {"mask_token", "DINOv2"},
      {"logit_scale", "CLIP or SigLIP"},
      {"blocks.0.mlp.w12.weight", "SwiGLU"},
      {"rope.periods", "RoPE"},
      {"blocks.0.attn.relative_position_bias_table", "BEiT"},
      {"layers.0.blocks.0.norm", "Swin"},
      {"layers.0.blocks.0.attn.logit_scale", "Swin"},
      {"features.1.0.attn.logit_scale", "Swin"},
      {"features.1.0.attn.relative_position_bias_table", "Swin"},
      {"stages.0.blocks.0.attn_block.attn.rel_pos.relative_position_bias_table", "MaxViT"},
      {"blocks.0.layers.0.layers.window_attention.attn_layer.1.relative_position_bias_table", "MaxViT"},
      {"patch_embed.backbone.stem.conv1.weight", "ViTamin"},
      {"blocks_token_only.0.gamma_1", "CaiT"},
      {"decoder_blocks.0.norm1.weight", "autoencoder"},
      {"patch_embed.backbone.stem.conv.weight", "hybrid"},
      {"blocks.0.attn.extra", "unexpected \"blocks.0.attn.extra\""},
      {"blocks.00.norm1.weight", "unexpected"},
      {"blocks.99999999999.norm1.weight", "unexpected"},
  };
  for (const auto& [name, family] : rows) {
    auto tensors = renamed(open_tensors(at("plain")), [](const std::string& n) { return n; });
    TensorInfo info{.name = name, .shape = {1}, .bytes = 4};
    tensors.push_back({info, [](std::span<std::byte>) {}});
    write_safetensors(at("other"), tensors, {});
    EXPECT_SAYS(refusal(at("other")), family);
  }
}

// transformers' ViT has a mask token of its own where it was trained on masked images.
TEST_F(DialectRead, AMaskTokenOfTransformersIsNoOtherFamily) {
  write_model(at("plain"), tiny(), {.dialect = Dialect::kHf}, by_rule);
  auto tensors = renamed(open_tensors(at("plain")), [](const std::string& n) { return n; });
  tensors.push_back({TensorInfo{.name = "vit.embeddings.mask_token", .shape = {1}, .bytes = 4},
                     [](std::span<std::byte>) {}});
  write_safetensors(at("masked"), tensors, {});
  EXPECT_EQ(refusal(at("masked")).find("DINOv2"), std::string::npos) << refusal(at("masked"));
}

TEST_F(DialectRead, MissingAndMisshapenTensorsAreNamed) {
  write_model(at("plain"), tiny(), {.dialect = Dialect::kTimm}, by_rule);
  const auto source = std::shared_ptr(open_tensors(at("plain")));
  write_safetensors(at("missing"),
                    renamed(source, [](const std::string& n) { return n == "norm.bias" ? "" : n; }),
                    source->metadata());
  EXPECT_SAYS(refusal(at("missing")), "lacks norm.bias");
  write_safetensors(at("no_pos"),
                    renamed(source, [](const std::string& n) { return n == "pos_embed" ? "" : n; }),
                    source->metadata());
  EXPECT_SAYS(refusal(at("no_pos")), "pos_embed");
  auto tensors = renamed(source, [](const std::string& n) { return n; });
  for (TensorToWrite& tensor : tensors)
    if (tensor.info.name == "blocks.1.norm1.weight")
      tensor.info.shape = {12}, tensor.info.bytes = 48, tensor.fill = [](std::span<std::byte>) {};
  write_safetensors(at("misshapen"), tensors, source->metadata());
  EXPECT_SAYS(refusal(at("misshapen")), "blocks.1.norm1.weight");
}

TEST_F(DialectRead, AProductInPartsNeedsThemAll) {
  std::filesystem::copy(kDialectModels + "hf_single", at("keyless"));
  const auto source = std::shared_ptr(open_tensors(kDialectModels + "hf_single/model.safetensors"));
  const auto without_keys = [](const std::string& n) {
    return n.ends_with("layer.0.attention.attention.key.weight") ? "" : n;
  };
  write_safetensors(at("keyless/model.safetensors"), renamed(source, without_keys), source->metadata());
  EXPECT_SAYS(refusal(at("keyless")), "a part of blocks.0.attn.qkv.weight");
}

TEST_F(DialectRead, TorchvisionAndGoogleFilesKnowTheirImages) {
  ModelCard card;
  const auto zeros = [](const ParamSpec&, std::span<float>) {};
  card.config = {.width = 192, .heads = 3, .mlp = 768, .classes = 2};
  write_model(at("full"), card, {.dialect = Dialect::kTorchvision}, zeros);
  write_safetensors(at("bare"), renamed(open_tensors(at("full")), [](const std::string& n) { return n; }),
                    {});
  const auto torchvision = open_model(at("bare"));
  EXPECT_EQ(torchvision->card().config.heads, 3);
  EXPECT_EQ(torchvision->card().config.pos_resize, PosResize::kTorchvision);
  EXPECT_EQ(torchvision->card().preprocess.resize, 256);
  EXPECT_EQ(torchvision->card().preprocess.interpolation, Interpolation::kBilinear);
  const auto google = open_model(kDialectModels + "google_vit_jax.npz");
  EXPECT_EQ(google->card().preprocess.resampler, Resampler::kTf);
  EXPECT_EQ(google->card().preprocess.mode, ResizeMode::kStretch);
  EXPECT_EQ(google->card().config.gelu, GeluKind::kTanh);
}

TEST_F(DialectRead, WrappersOfTrainingProgramsAreTakenOff) {
  write_model(at("plain"), tiny(), {.dialect = Dialect::kTimm}, by_rule);
  const auto source = std::shared_ptr(open_tensors(at("plain")));
  for (const std::string wrapper : {"module.", "model.", "model.module.", "_orig_mod."}) {
    write_safetensors(at("wrapped"), renamed(source, [&](const std::string& n) { return wrapper + n; }),
                      source->metadata());
    expect_rule_weights(*open_model(at("wrapped")));
  }
}

TEST_F(DialectRead, AnArchitectureThatContradictsTheCardIsRefusedWithBothValues) {
  ModelCard card;
  card.config = {.width = 192, .heads = 3, .mlp = 768, .classes = 2};
  card.config.arch = "deit_tiny_patch16_224";
  const auto zeros = [](const ParamSpec&, std::span<float>) {};
  write_model(at("named"), card, {.dialect = Dialect::kTimm}, zeros);
  const std::string said = refusal(at("named"), {.arch = "vit_tiny_patch16_224"});
  EXPECT_SAYS(said, "vit_tiny_patch16_224");
  EXPECT_SAYS(said, "\"deit_tiny_patch16_224\"");
  EXPECT_EQ(refusal(at("named"), {.arch = "deit_tiny_patch16_224"}), "");
  card.config.arch.clear();
  card.config.heads = 6;
  write_model(at("nameless"), card, {.dialect = Dialect::kHf}, zeros);
  EXPECT_SAYS(refusal(at("nameless"), {.arch = "deit_tiny_patch16_224"}),
              "heads is 3, but config.json says 6");
}

TEST_F(DialectRead, DefaultsThatWereTakenAreWarnings) {
  const auto warnings = [](const std::string& path) { return open_model(path)->card().warnings; };
  ASSERT_EQ(warnings(kDialectModels + "google_vit_jax.npz").size(), 1u);
  EXPECT_SAYS(warnings(kDialectModels + "google_vit_jax.npz")[0],
              "vit_jax's evaluation; nothing with the file says");
  write_model(at("m"), tiny(), {.dialect = Dialect::kHf}, by_rule);
  std::filesystem::remove(at("m/preprocessor_config.json"));
  EXPECT_TRUE(warnings(at("m")).empty()) << "its own block says it";
  Json config = parse_json(read_file(at("m/config.json"), 1 << 20), "config.json");
  config.erase("vitrail");
  write_file(at("m/config.json"), config.dump());
  ASSERT_EQ(warnings(at("m")).size(), 1u);
  EXPECT_SAYS(warnings(at("m"))[0], "there is no preprocessor_config.json");
  EXPECT_EQ(open_model(at("m"))->card().notes.back(), warnings(at("m"))[0]);
}

TEST_F(DialectRead, ABareFileThatFitsSeveralArchitecturesNeedsAName) {
  ModelCard card;
  card.config.width = 192, card.config.heads = 3, card.config.mlp = 768;
  write_model(at("full"), card, {.dialect = Dialect::kTimm}, [](const ParamSpec&, std::span<float>) {});
  write_safetensors(at("bare"), renamed(open_tensors(at("full")), [](const std::string& n) { return n; }),
                    {});
  const std::string said = refusal(at("bare"));
  EXPECT_SAYS(said, "vit_tiny_patch16_224");
  EXPECT_SAYS(said, "deit_tiny_patch16_224");
  EXPECT_SAYS(said, "--arch");
  const auto deit = open_model(at("bare"), {.arch = "deit_tiny_patch16_224"});
  EXPECT_EQ(deit->card().config.heads, 3);
  EXPECT_EQ(deit->card().config.arch, "deit_tiny_patch16_224");
  EXPECT_EQ(deit->card().preprocess.mean[0], 0.485);
  EXPECT_SAYS(deit->card().notes.back(), "DeiT's own evaluation resizes to 256");
  EXPECT_TRUE(deit->card().warnings.empty());
  EXPECT_SAYS(refusal(at("bare"), {.arch = "vit_small_patch16_224"}),
              "width is 384, but the tensors say 192");
  EXPECT_SAYS(refusal(at("bare"), {.arch = "vit_tiny_patch16_384"}), "the file has 197");
  EXPECT_SAYS(refusal(at("bare"), {.arch = "vit_tiny"}), "unknown architecture");
}

}  // namespace
}  // namespace vitrail
