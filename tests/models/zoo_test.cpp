#include "models/zoo.h"

#include <gtest/gtest.h>

#include <set>

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
  }
}

}  // namespace
}  // namespace vitrail
