#include "models/zoo.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "base/error.h"
#include "models/vit_params.h"

namespace vitrail {
namespace {

struct Published {
  const char* name;
  int64_t params;
  double gmacs;   // at 224
  int64_t large;  // the larger image
  double large_gmacs;
  double rounding;  // half a unit of the last printed digit
};
// Published counts with 1000 classes at 224, and matrix multiply-adds.
constexpr Published kPublished[] = {
    {"vit_tiny_patch16_224", 5'717'416, 1.254, 384, 4.682, 0.0005},
    {"vit_small_patch32_224", 22'878'952, 1.143, 384, 3.44, 0.005},
    {"vit_small_patch16_224", 22'050'664, 4.599, 384, 15.49, 0.005},
    {"vit_small_patch8_224", 22'055'272, 22.41, 384, 98.1, 0.05},
    {"vit_base_patch32_224", 88'224'232, 4.409, 384, 13.04, 0.005},
    {"vit_base_patch16_224", 86'567'656, 17.564, 384, 55.48, 0.005},
    {"vit_base_patch8_224", 86'576'872, 78.15, 384, 294.0, 0.05},
    {"vit_large_patch32_224", 306'535'400, 15.38, 384, 45.3, 0.05},
    {"vit_large_patch16_224", 304'326'632, 61.56, 384, 191.1, 0.05},
    {"vit_large_patch14_224", 304'203'752, 81.01, 378, 247.1, 0.05},
    {"vit_huge_patch14_224", 632'045'800, 167.3, 378, 503.5, 0.05},
    {"vit_giant_patch14_224", 1'012'611'432, 267.0, 378, 797.4, 0.05},
    {"vit_gigantic_patch14_224", 1'844'440'680, 483.7, 378, 1429.2, 0.05},
};

TEST(Zoo, CountsEqualThePublishedOnes) {
  for (const Published& row : kPublished) {
    SCOPED_TRACE(row.name);
    VitConfig config = find_architecture(row.name).config;
    EXPECT_EQ(count_params(config), row.params);
    EXPECT_NEAR(static_cast<double>(count_macs(config)) / 1e9, row.gmacs, row.rounding);
    config.image_height = config.image_width = row.large;
    EXPECT_NEAR(static_cast<double>(count_macs(config)) / 1e9, row.large_gmacs, row.rounding);
  }
}

TEST(Zoo, CountsOfOtherForms) {
  const std::pair<const char*, int64_t> rows[] = {
      {"vit_base_patch16_gap_224", 86'566'120},        {"deit_tiny_distilled_patch16_224", 5'910'800},
      {"deit_base_distilled_patch16_384", 87'630'032}, {"deit3_base_patch16_224", 86'585'320},
      {"vit_base_patch16_224_miil", 86'540'008},       {"vit_base_patch16_reg4_gap_256", 86'615'272},
      {"vit_little_patch16_reg1_gap_256", 22'515'048}, {"vit_medium_patch16_gap_240", 38'845'416}};
  for (const auto& [name, params] : rows)
    EXPECT_EQ(count_params(find_architecture(name).config), params) << name;
}

// timm 1.0.30's counts of its image towers, which have no head.
TEST(Zoo, CountsOfSigLipTowers) {
  const std::tuple<const char*, int64_t, GeluKind> rows[] = {
      {"vit_base_patch16_siglip_224", 92'884'224, GeluKind::kErf},
      {"vit_base_patch16_siglip_gap_512", 86'433'024, GeluKind::kErf},
      {"vit_base_patch32_siglip_256", 94'552'320, GeluKind::kTanh},
      {"vit_large_patch16_siglip_384", 316'283'904, GeluKind::kErf},
      {"vit_large_patch16_siglip_512", 316'742'656, GeluKind::kTanh},
      {"vit_so400m_patch14_siglip_224", 427'680'704, GeluKind::kErf},
      {"vit_so400m_patch14_siglip_378", 428'225'600, GeluKind::kErf},
      {"vit_so400m_patch14_siglip_gap_224", 412'442'352, GeluKind::kErf},
      {"vit_so400m_patch14_siglip_gap_896", 416'866'032, GeluKind::kErf},
      {"vit_so400m_patch16_siglip_384", 428'256'704, GeluKind::kTanh},
      {"vit_giantopt_patch16_siglip_256", 1'163'168'256, GeluKind::kTanh},
  };
  for (const auto& [name, params, gelu] : rows) {
    const VitConfig& config = find_architecture(name).config;
    EXPECT_EQ(count_params(config), params) << name;
    EXPECT_EQ(config.gelu, gelu) << name;
    EXPECT_FALSE(config.class_token) << name;
  }
  EXPECT_EQ(find_architecture("vit_so400m_patch14_siglip_gap_448").preprocess.resize, 448);
  EXPECT_EQ(find_architecture("vit_so400m_patch14_siglip_378").preprocess.resize, 420);
}

TEST(Zoo, CountsOfTheOtherVariantsAreTimms) {
  const std::pair<const char*, int64_t> rows[] = {{"vit_so150m_patch16_reg4_gap_256", 134'131'560},
                                                  {"vit_so150m_patch16_reg4_map_256", 141'481'064},
                                                  {"vit_so150m2_patch16_reg1_gap_448", 136'498'856},
                                                  {"vit_small_patch14_dinov2", 22'056'192},
                                                  {"vit_large_patch14_reg4_dinov2", 304'370'688},
                                                  {"vit_so400m_patch14_reg1_tipsv2", 413'391'600},
                                                  {"flexivit_base", 86'589'160},
                                                  {"eva_large_patch14_336", 304'531'432},
                                                  {"test_vit", 371'240},
                                                  {"test_vit2", 455'720},
                                                  {"test_vit3", 930'280}};
  for (const auto& [name, params] : rows)
    EXPECT_EQ(count_params(find_architecture(name).config), params) << name;
}

TEST(Zoo, CountsOfBigVisionSizesFollowTheFormula) {
  struct Sizes {
    const char* name;
    int64_t d, depth, f, patch;
  };
  const Sizes rows[] = {{"bigvision_mu_patch16_224", 32, 1, 128, 16},
                        {"bigvision_m_patch16_224", 512, 12, 2048, 16},
                        {"bigvision_so400m_patch14_224", 1152, 27, 4304, 14},
                        {"bigvision_giantopt_patch14_224", 1536, 40, 6144, 14},
                        {"bigvision_giganticopt_patch14_224", 1536, 48, 8192, 14},
                        {"bigvision_e_patch14_224", 1792, 56, 15360, 14}};
  for (const auto& [name, d, depth, f, patch] : rows) {
    const int64_t grid = 224 / patch, embed = (3 * patch * patch + 1) * d + grid * grid * d;
    const int64_t attention = 4 * (d * d + d), mlp = 2 * d * f + f + d, norms = 4 * d;
    const int64_t expected = embed + depth * (attention + mlp + norms) + 2 * d + (d + 1) * 1000;
    EXPECT_EQ(count_params(find_architecture(name).config), expected) << name;
  }
}

// Patches of 14 leave 6 of 384 pixels out: the tensors are those of 378.
TEST(Zoo, PatchesNeedNotCoverTheImage) {
  const VitConfig& config = find_architecture("vit_so400m_patch14_siglip_384").config;
  EXPECT_EQ(config.grid_height(), 27);
  EXPECT_EQ(count_params(config), count_params(find_architecture("vit_so400m_patch14_siglip_378").config));
}

TEST(Zoo, EveryRowIsValidAndNamedOnce) {
  std::set<std::string> names;
  for (const ZooEntry& entry : zoo()) {
    SCOPED_TRACE(entry.config.arch);
    EXPECT_NO_THROW(validate(entry.config));
    EXPECT_TRUE(names.insert(entry.config.arch).second);
    EXPECT_EQ(entry.preprocess.height, entry.config.image_height);
    EXPECT_EQ(entry.preprocess.width, entry.config.image_width);
    EXPECT_GE(entry.preprocess.resize, entry.preprocess.height);
    EXPECT_GT(count_macs(entry.config), 0);
  }
}

TEST(Zoo, PreprocessingFollowsTheName) {
  const PreprocessConfig vit = find_architecture("vit_tiny_patch16_224").preprocess;
  const PreprocessConfig deit = find_architecture("deit_tiny_patch16_224").preprocess;
  EXPECT_EQ(vit.resize, 248);
  EXPECT_EQ(vit.mean, (std::vector<double>{0.5, 0.5, 0.5}));
  EXPECT_EQ(deit.resize, 248);
  EXPECT_EQ(deit.std, (std::vector<double>{0.229, 0.224, 0.225}));
  EXPECT_EQ(find_architecture("vit_base_patch16_384").preprocess.resize, 384);
}

TEST(Zoo, NamesMayCarryATagAndTyposGetTheNearestName) {
  EXPECT_EQ(find_architecture("vit_base_patch16_224.augreg_in21k_ft_in1k").config.arch,
            "vit_base_patch16_224");
  try {
    find_architecture("vit_base_patch16_22");
    FAIL() << "an unknown name was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(error.hint().find("vit_base_patch16_224"), std::string::npos) << error.hint();
    EXPECT_NE(error.hint().find("inspect --architectures"), std::string::npos) << error.hint();
  }
}

}  // namespace
}  // namespace vitrail
