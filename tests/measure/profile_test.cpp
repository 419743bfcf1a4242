// Rows of a profile: every node in its part and operation, no FLOP lost.
#include "measure/profile.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace vitrail {
namespace {

VitConfig small_config() {
  VitConfig config;
  config.image_height = 32, config.image_width = 48, config.patch = 16;
  config.heads = 2, config.width = 8;
  return config;
}

TEST(Profile, NodesBelongToPartsAndOperations) {
  const std::pair<const char*, const char*> parts[] = {
      {"patch_embed.bias", "embeddings"}, {"blocks.11.norm1", "layer norm 1"},
      {"blocks.0.attn.qkv", "attention"}, {"blocks.0.attn.residual", "residual 1"},
      {"blocks.3.mlp.fc2", "MLP"},        {"blocks.3.mlp.residual", "residual 2"},
      {"norm", "last layer norm"},        {"head", "pooling and head"}};
  for (const auto& [node, part] : parts) EXPECT_EQ(part_of(node), part) << node;
  EXPECT_EQ(operation_of("blocks.11.mlp.fc1"), "blocks.*.mlp.fc1");
  EXPECT_EQ(operation_of("fc1"), "fc1");
}

TEST(Profile, RowsKeepEveryFlopWhateverTheGrouping) {
  VitConfig config = small_config();
  config.mlp = 16, config.depth = 3, config.classes = 5;
  const ExecutionPlan plan = plan_inference(config, {.threads = 1});
  std::vector<NodeTime> times(plan.program.nodes.size(), {0.5, 5});
  for (const ProfileBy by : {ProfileBy::kPart, ProfileBy::kOperation, ProfileBy::kNode}) {
    double flops = 0, seconds = 0;
    for (const ProfileRow& row : profile_rows(plan, times, by)) flops += row.flops, seconds += row.seconds;
    EXPECT_DOUBLE_EQ(flops, plan.program.cost().flops);
    EXPECT_NEAR(seconds, 0.1 * static_cast<double>(times.size()), 1e-9);
  }
  EXPECT_EQ(profile_rows(plan, times, ProfileBy::kNode).size(), times.size());
  EXPECT_NE(profile_table(profile_rows(plan, times, ProfileBy::kPart), {.gflops = 10}, ProfileColumns::kParts)
                .find("100.00 %"),
            std::string::npos);
}

TEST(Profile, PartsTellTheTimeInOneLayerAndWhyKernelsDeclined) {
  VitConfig config = small_config();
  config.mlp = 16, config.depth = 3, config.classes = 5;
  ExecutionPlan plan = plan_inference(config, {.threads = 1, .fuse = false});
  std::vector<NodeTime> times(plan.program.nodes.size(), {0.5, 5});
  for (size_t i = 0; i < times.size(); ++i)  // the last block does less
    if (plan.program.nodes[i].name.starts_with("blocks.2.")) times[i].seconds = 0.1;
  for (NodeChoice& choice : plan.choices) choice.declined = {"fast: too small"};
  for (const ProfileRow& row : profile_rows(plan, times, ProfileBy::kPart)) {
    const bool in_blocks =
        row.name == "attention" || row.name == "MLP" || row.name.ends_with(" 1") || row.name.ends_with(" 2");
    EXPECT_EQ(row.layers(), in_blocks ? 3 : 0) << row.name;
    if (row.name == "layer norm 1") {
      EXPECT_DOUBLE_EQ(row.seconds_per_layer(), 0.1);
    }
    EXPECT_EQ(row.declined, std::vector<std::string>{"fast: too small"}) << row.name;
  }
  const std::vector<std::string> lines = declined_lines(plan);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "blocks.*.mlp.fc1: kernel fast declined: too small"), 1);
}

}  // namespace
}  // namespace vitrail
