// Recorded programs against the parameter table and the cost formula, for every architecture of the zoo.
#include <gtest/gtest.h>

#include <set>

#include "models/vit.h"
#include "models/vit_params.h"
#include "models/zoo.h"
#include "ops/attention.h"

namespace vitrail {
namespace {

std::set<std::string> parameters_of(const Program& program) {
  std::set<std::string> names;
  for (const Value& value : program.values)
    if (value.kind == ValueKind::kParameter) names.insert(value.name);
  return names;
}

class ZooRecord : public testing::TestWithParam<ZooEntry> {};

TEST_P(ZooRecord, UsesExactlyTheParametersOfTheTable) {
  const VitConfig& config = GetParam().config;
  std::set<std::string> table;
  for (const ParamSpec& spec : vit_params(config)) table.insert(spec.name);
  EXPECT_EQ(parameters_of(record_vit(config)), table);
}

// Sums the FLOPs of the GEMMs alone, from the recorded ops; for all tokens, or for those a classifier needs.
double gemm_flops(const VitConfig& config, bool all_tokens = true) {
  const Program program = record_vit(config, {.layers = all_tokens});
  double flops = 0;
  for (const Node& node : program.nodes) {
    const std::string_view kind = node.op->kind();
    const double own = node.op->flops(program.descs(node.ins), program.descs(node.outs));
    const double e = static_cast<double>(config.head_size());
    if (kind == "linear" || kind == "patch_embed") flops += own;
    if (kind == "attention") flops += own * 4 * e / (4 * e + 5);  // the rest is softmax
  }
  return flops;
}

TEST_P(ZooRecord, ProductsAreTwiceTheMacs) {
  const VitConfig& config = GetParam().config;
  const double flops = gemm_flops(config), run = gemm_flops(config, false);
  EXPECT_NEAR(flops / 2, static_cast<double>(count_macs(config)), 1e-9 * flops);
  EXPECT_NEAR(run / 2, static_cast<double>(count_run_macs(config)), 1e-9 * run);
}

// The saving of class-token attention computed from the tokens themselves: the last block's qkv linear has
// one token, and its attention runs over tokens as wide as the model.
TEST_P(ZooRecord, MacsFromTheTokensThemselves) {
  const VitConfig& config = GetParam().config;
  if (!reads_class_token_alone(config)) {
    EXPECT_EQ(count_run_macs(config, true), count_run_macs(config));
    return;
  }
  const double d = static_cast<double>(config.width), n = static_cast<double>(config.tokens()),
               h = static_cast<double>(config.heads);
  const TensorDesc qkv{
      DType::kF32,
      {{'B', 1}, {'N', config.tokens()}, {'T', 3}, {'H', config.heads}, {'E', config.head_size()}}};
  const TensorDesc weight{DType::kF32, {qkv.shape[2], qkv.shape[3], qkv.shape[4], {'D', config.width}}};
  const double before = n * 3 * d * d + 2 * n * d,
               after = (first_attention_flops(qkv, weight) - 5 * h * n) / 2;
  EXPECT_NEAR(static_cast<double>(count_run_macs(config) - count_run_macs(config, true)), before - after,
              1e-9 * before);
}

TEST(VitRecord, MacsCountPoolingByAttentionOverThePatchesOnly) {
  VitConfig config = find_architecture("vit_tiny_patch16_224").config;
  config.pool = Pool::kMap;  // the class token stays, and the probe does not see it
  const double flops = gemm_flops(config);
  EXPECT_NEAR(flops / 2, static_cast<double>(count_macs(config)), 1e-9 * flops);
}

std::string test_name(const testing::TestParamInfo<ZooEntry>& test) {
  std::string name = test.param.config.arch;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Zoo, ZooRecord, testing::ValuesIn(zoo()), test_name);

TEST(VitRecord, TheLastBlockAnswersTheClassTokenAlone) {
  VitConfig config = find_architecture("vit_tiny_patch16_224").config;
  const auto others = static_cast<double>(config.tokens() - 1);
  const double width = static_cast<double>(config.width), tokens = others + 1;
  // Every other token saves its attention weights and their sum of values, proj, fc1 and fc2.
  const double spared = 2 * others * (2 * tokens * width + 9 * width * width);
  EXPECT_DOUBLE_EQ(gemm_flops(config, false), gemm_flops(config) - spared);
  config.distilled = true;
  EXPECT_DOUBLE_EQ(gemm_flops(config, false), gemm_flops(config)) << "two tokens are read";
  config.distilled = false;
  config.pool = Pool::kMean;
  EXPECT_DOUBLE_EQ(gemm_flops(config, false), gemm_flops(config));
}

TEST(VitRecord, OutputsAreThoseAskedFor) {
  VitConfig config = find_architecture("vit_tiny_patch16_224").config;
  config.depth = 2;
  const Program plain = record_vit(config);
  ASSERT_EQ(plain.outputs.size(), 1u);
  EXPECT_EQ(plain.outputs[0].name, "logits");
  const Program all =
      record_vit(config, {.features = true, .layers = true, .attention = true, .probabilities = true});
  for (const char* name :
       {"logits", "features", "embed", "blocks.0", "blocks.1", "tokens", "blocks.0.attention", "probs"})
    EXPECT_NO_THROW(all.output(name)) << name;
  EXPECT_EQ(to_string(all.values[all.output("blocks.1.attention")].desc.shape), "[B1 H3 N197 M197]");
  config.classes = 0;
  EXPECT_EQ(record_vit(config).outputs[0].name, "features");
}

struct Broken {
  const char* rule;  // a piece of the message
  void (*change)(VitConfig&);
};

TEST(VitConfig, BrokenRulesAreNamed) {
  const Broken cases[] = {
      {"model.depth", [](VitConfig& c) { c.depth = 1'000'000'000; }},
      {"model.depth", [](VitConfig& c) { c.depth = -1; }},
      {"model.patch", [](VitConfig& c) { c.patch = 0; }},
      {"model.patch", [](VitConfig& c) { c.patch = -16; }},
      {"model.heads", [](VitConfig& c) { c.heads = 7; }},
      {"model.heads", [](VitConfig& c) { c.heads = 0; }},
      {"model.image_height", [](VitConfig& c) { c.image_height = 1'000'000; }},
      {"larger than the image", [](VitConfig& c) { c.patch = 512; }},
      {"larger than the image", [](VitConfig& c) { c.patch_width = 225; }},
      {"model.patch_width", [](VitConfig& c) { c.patch_width = -1; }},
      {"model.representation", [](VitConfig& c) { c.representation = 1 << 20; }},
      {"tokens", [](VitConfig& c) { c.patch = 1, c.image_height = c.image_width = 512; }},
      {"norm_eps", [](VitConfig& c) { c.norm_eps = -1; }},
      {"norm_eps", [](VitConfig& c) { c.norm_eps = std::numeric_limits<double>::quiet_NaN(); }},
      {"class_token", [](VitConfig& c) { c.class_token = false; }},
      {"distilled", [](VitConfig& c) { c.distilled = true, c.pool = Pool::kMean; }},
      {"distilled", [](VitConfig& c) { c.distilled = c.pre_logits = true; }},
      {"distilled", [](VitConfig& c) { c.distilled = true, c.norm_place = NormPlace::kAfterPool; }},
      {"model.registers", [](VitConfig& c) { c.registers = -1; }},
      {"registers", [](VitConfig& c) { c.pos = PosKind::kSinCos2d, c.registers = 4; }},
      {"sincos2d", [](VitConfig& c) { c.pos = PosKind::kSinCos2d; }},
      {"model.classes", [](VitConfig& c) { c.classes = -1; }},
      {"model.width", [](VitConfig& c) { c.width = int64_t{1} << 40; }},
  };
  for (const Broken& broken : cases) {
    VitConfig config;
    broken.change(config);
    try {
      record_vit(config);
      ADD_FAILURE() << "accepted: " << broken.rule;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
      EXPECT_NE(error.message().find(broken.rule), std::string::npos) << error.message();
    }
  }
}

TEST(VitConfig, PatchesMayLeaveOutPixelsButNotWhereAUserAsksForASize) {
  VitConfig config;
  config.image_width = 239;
  EXPECT_EQ(config.grid_width(), 14);
  validate(config);
  EXPECT_FALSE(patches_cover(config));
  EXPECT_THROW(require_patches_cover(config, VitConfig()), Error);
  require_patches_cover(config, config);
  config.image_width = 240;
  require_patches_cover(config, VitConfig());
  config.patch_width = 7;
  EXPECT_FALSE(patches_cover(config));
  config.patch_width = 20;
  EXPECT_TRUE(patches_cover(config));
  EXPECT_EQ(config.grid_width(), 12);
}

}  // namespace
}  // namespace vitrail
