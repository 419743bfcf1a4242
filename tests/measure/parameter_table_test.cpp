// Parameters by part: they add up to what the model has, and ResNets to their published sizes.
#include "measure/parameter_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/vit_params.h"
#include "models/zoo.h"

namespace vitrail {
namespace {

// What torchvision's models hold with 1,000 classes.
TEST(ParameterTable, ResnetsHaveTheirPublishedSizes) {
  EXPECT_EQ(count_resnet(18).total(), 11'689'512);
  EXPECT_EQ(count_resnet(34).total(), 21'797'672);
  EXPECT_EQ(count_resnet(50).total(), 25'557'032);
  EXPECT_EQ(count_resnet(101).total(), 44'549'160);
  EXPECT_EQ(count_resnet(50, 10).total(), 25'557'032 - 990 * 2049);
  EXPECT_THROW(count_resnet(20), Error);
}

TEST(ParameterTable, PartsAddUpInEveryModelOfTheZoo) {
  for (const ZooEntry& entry : zoo()) {
    const ParameterTable table = parameter_table(entry.config);
    EXPECT_EQ(table.exact(), count_params(entry.config)) << entry.config.arch;
    EXPECT_LE(table.document(), table.exact()) << entry.config.arch;
  }
}

// B/16 by hand: 768 wide, 12 blocks, 197 tokens, 1,000 classes.
TEST(ParameterTable, PartsOfTheBaseModel) {
  const ParameterTable table = parameter_table(find_architecture("vit_base_patch16_224").config);
  const std::vector<std::pair<std::string, int64_t>> parts = {
      {"patch embedding", 16 * 16 * 3 * 768 + 768},
      {"positions and tokens", (197 + 1) * 768},
      {"attention", 12 * (768 * 3 * 768 + 3 * 768 + 768 * 768 + 768)},
      {"MLP", 12 * (2 * 768 * 3072 + 3072 + 768)},
      {"norms", 25 * 2 * 768},
      {"head", 768 * 1000 + 1000}};
  ASSERT_EQ(table.rows.size(), parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(table.rows[i].part, parts[i].first);
    EXPECT_EQ(table.rows[i].exact, parts[i].second) << parts[i].first;
  }
  EXPECT_EQ(table.exact(), 86'567'656);
  EXPECT_EQ(table.document(), 84'934'656);
  EXPECT_EQ(to_json(table)["parts"][2]["document"], 12 * 4 * 768 * 768);
}

// A small model: 8 wide, 2 blocks, 4 patches, pooled by an attention of its own, which counts to the head.
TEST(ParameterTable, ScalesAndPoolingHaveTheirRows) {
  VitConfig config;
  config.image_height = config.image_width = 32, config.patch = 16;
  config.width = 8, config.heads = 2, config.mlp = 16, config.depth = 2, config.classes = 5;
  config.layer_scale = true, config.pool = Pool::kMap, config.class_token = false;
  const ParameterTable table = parameter_table(config);
  const std::vector<std::pair<std::string, int64_t>> parts = {
      {"patch embedding", 16 * 16 * 3 * 8 + 8},
      {"positions and tokens", 4 * 8},
      {"attention", 2 * (4 * 8 * 8 + 4 * 8)},
      {"MLP", 2 * (2 * 8 * 16 + 16 + 8)},
      {"norms", 5 * 2 * 8},
      {"layer scale", 2 * 2 * 8},
      {"head", 8 + (4 * 8 * 8 + 4 * 8) + 2 * 8 + (2 * 8 * 16 + 16 + 8) + 8 * 5 + 5}};
  ASSERT_EQ(table.rows.size(), parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(table.rows[i].part, parts[i].first);
    EXPECT_EQ(table.rows[i].exact, parts[i].second) << parts[i].first;
  }
  EXPECT_EQ(table.rows[2].formula, "L (k d 3 d_h + d d)");
  EXPECT_EQ(table.rows[3].formula, "L (2 d d_mlp)");
}

TEST(ParameterTable, TableOneStandsBesideWhatWasPrinted) {
  const TableOne table = table_one();
  ASSERT_EQ(table.rows.size(), 7u);
  EXPECT_EQ(table.rows[0].exact, 11'689'512);
  EXPECT_EQ(table.rows[0].printed, 31.7);
  EXPECT_EQ(table.rows[6].exact, 632'045'800);
  EXPECT_NEAR(table.rows[6].calculated, 629.1e6, 0.1e6);
  EXPECT_EQ(table.rows[2].head, 2049 * 1000);
  EXPECT_EQ(table.rows[4].head, 769 * 1000);
  EXPECT_NE(to_text(table).find("(p + 1) c"), std::string::npos);
  EXPECT_EQ(to_json(table).size(), 7u);
}

}  // namespace
}  // namespace vitrail
