#include "passes/pipeline.h"

#include <gtest/gtest.h>

#include "passes/tiny_training.h"

namespace vitrail {
namespace {

Program rich_loss(ValueId& seed) {
  VitConfig config = tiny_vit(3);
  config.layer_scale = config.qk_norm = true;
  Recorded recorded = record_loss(config, {.batch = 2, .dropout = 0.1, .lora = {.rank = 2}});
  seed = recorded.seed;
  return std::move(recorded.program);
}

const Rewrites kEverything{.arithmetic = Arithmetic::kTF32,
                           .precision = {.compute = DType::kBF16, .residual = DType::kBF16},
                           .recompute = {.level = Recompute::kBlock},
                           .traits = {.first_attention = true, .few_launches = true}};

struct Watched {
  std::vector<std::string> passes;
  std::string last;
  AfterPass after = [this](std::string_view pass, const Program& program) {
    passes.emplace_back(pass);
    last = to_string(program);
  };
};

template <typename List>
std::vector<std::string> strings(const List& list) {
  return {list.begin(), list.end()};
}

TEST(Pipeline, ShowsEveryPassOfTrainingAndLastWhatRuns) {
  ValueId seed = -1;
  Program recorded = rich_loss(seed);
  Watched watched;
  const Program result =
      micro_program(std::move(recorded), {.seed = seed}, kEverything, watched.after).program;
  EXPECT_EQ(watched.passes, strings(micro_passes()));
  EXPECT_EQ(watched.last, to_string(result));
  result.validate();
}

// What training keeps beside a parameter is told from its name by nobody.
TEST(Pipeline, PersistentValuesKnowTheParameterTheyBelongTo) {
  ValueId seed = -1;
  Program recorded = rich_loss(seed);
  const Program program = micro_program(std::move(recorded), {.seed = seed}, kEverything).program;
  size_t sums = 0, copies = 0;
  for (const Value& value : program.values) {
    if (!value.persistent()) continue;
    const std::string bare = value.name.substr(0, value.name.find('@'));
    const bool sum = bare.starts_with("grad/");
    EXPECT_EQ(value.owner, sum ? bare.substr(5) : bare) << value.name;
    sums += sum;
    copies += bare != value.name;
  }
  EXPECT_GT(sums, 20u);
  EXPECT_GT(copies, 10u);
}

// A node that a pass makes belongs to the step of the node that it comes from.
TEST(Pipeline, NodesKeepTheirStepThroughEveryPass) {
  const auto step_of = [](const Program& program, const std::string& name) {
    for (const Node& node : program.nodes)
      if (node.name == name) return node.step;
    throw Error(ErrorKind::kInternal, "no node " + name);
  };
  const Rewrites half{.precision = {.compute = DType::kBF16, .residual = DType::kF32}};
  const Program low = step_after("precision", tiny_vit(2), half);
  EXPECT_EQ(step_of(low, "images.bf16"), ModelStep::kEmbeddings) << "an input's cast belongs to its reader";
  EXPECT_EQ(step_of(low, "blocks.0.norm2.bf16"), ModelStep::kNorm2) << "another to what made the value";
  EXPECT_EQ(step_of(low, "grad/blocks.1.mlp.fc1.weight"), ModelStep::kFc1);
  EXPECT_EQ(step_of(low, "blocks.1.attn.softmax.dx"), ModelStep::kScores);
  const Program fused = step_after("fuse", tiny_vit(2));
  EXPECT_EQ(step_of(fused, "blocks.1.mlp.fc1.dw"), ModelStep::kFc1);
  const Program grouped = step_after("group_updates", tiny_vit(2), {.traits = {.few_launches = true}});
  EXPECT_EQ(step_of(grouped, "grouped accumulate"), ModelStep::kNone) << "it has sums of every step";
}

TEST(Pipeline, ShowsEveryPassOfInferenceAndLastWhatRuns) {
  Watched watched;
  const Program result = inference_program(record_vit(tiny_vit(2), {}), kEverything, watched.after);
  EXPECT_EQ(watched.passes, strings(inference_passes()));
  EXPECT_EQ(watched.last, to_string(result));
}

TEST(Pipeline, EveryPassOfInferenceIsOneOfTraining) {
  const std::vector<std::string> training = strings(micro_passes());
  for (const std::string& pass : strings(inference_passes()))
    EXPECT_NE(std::find(training.begin(), training.end(), pass), training.end()) << pass;
}

TEST(Pipeline, WithoutRewritesTheForwardNodesStayAsRecorded) {
  const Program recorded = record_vit(tiny_vit(2), {});
  const Program result = inference_program(recorded, {.fuse = false});
  EXPECT_EQ(to_string(result), to_string(recorded));
}

// Returns the number in "blocks.7.mlp.fc1"; -1 outside the blocks.
int block_in(const std::string& name) {
  const size_t at = name.find("blocks.");
  return at == std::string::npos ? -1 : std::stoi(name.substr(at + 7));
}

TEST(Pipeline, NodesKnowTheirBlockWhateverPassMadeThem) {
  ValueId seed = -1;
  Program recorded = rich_loss(seed);
  Rewrites rewrites = kEverything;
  rewrites.traits.few_launches = false;  // a group of gradient sums belongs to many blocks
  int seen = 0;
  for (const Node& node : micro_program(std::move(recorded), {.seed = seed}, rewrites).program.nodes) {
    const bool is_sum = node.name.starts_with("grad/");
    if (!is_sum) {
      EXPECT_EQ(node.block, block_in(node.name)) << node.name;
    }
    seen += node.block >= 0;
  }
  EXPECT_GT(seen, 100);
}

TEST(Pipeline, NodesKnowTheirPart) {
  ValueId seed = -1;
  const Program program = rich_loss(seed);
  const auto part_of = [&](std::string_view name) {
    for (const Node& node : program.nodes)
      if (node.name == name) return node.part;
    throw Error(ErrorKind::kInternal, "no node " + std::string(name));
  };
  EXPECT_EQ(part_of("patch_embed"), ModelPart::kNone);
  EXPECT_EQ(part_of("tokens"), ModelPart::kTokens);
  EXPECT_EQ(part_of("pos_embed"), ModelPart::kTokens);
  EXPECT_EQ(part_of("blocks.1.norm1"), ModelPart::kNone);
  EXPECT_EQ(part_of("blocks.1.attn.qkv"), ModelPart::kAttention);
  EXPECT_EQ(part_of("blocks.1.attn.qkv.lora_a"), ModelPart::kAdapter);
  EXPECT_EQ(part_of("blocks.1.attn.residual"), ModelPart::kAttention);
  EXPECT_EQ(part_of("blocks.2.mlp.fc1"), ModelPart::kMlp);
  EXPECT_EQ(part_of("blocks.2.mlp.residual"), ModelPart::kMlp);
  EXPECT_EQ(part_of("head"), ModelPart::kNone);
}

}  // namespace
}  // namespace vitrail
