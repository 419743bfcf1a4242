#include <gtest/gtest.h>

#include "ops/attention.h"
#include "ops/attention_sums.h"
#include "passes/passes.h"
#include "tiny_training.h"

namespace vitrail {
namespace {

const KernelRule kAlways = [](const Op&, DescSpan) { return true; };

const Node& node_of(const Program& program, std::string_view kind, Phase phase) {
  for (const Node& node : program.nodes)
    if (node.op->kind() == kind && node.phase == phase) return node;
  throw Error(ErrorKind::kInternal, "no such node");
}

VitConfig pooled(int64_t depth) {
  VitConfig config = tiny_vit(depth);
  config.pool = Pool::kMean;  // every token of every block is a query
  return config;
}

TEST(KeepAttentionSums, TheGradientReadsWhatAttentionKept) {
  const Program before = record_step(pooled(2));
  const Program after = keep_attention_sums(before, kAlways);
  EXPECT_EQ(count_kinds(after)["attention_sums"], 2);
  EXPECT_EQ(count_kinds(after)["attention_sums_grad"], 2);
  EXPECT_FALSE(count_kinds(after).contains("attention"));
  EXPECT_EQ(after.nodes.size(), before.nodes.size());
  for (const Node& grad : after.nodes) {
    if (!is<AttentionSumsGradOp>(*grad.op)) continue;
    const auto forward = std::find_if(after.nodes.begin(), after.nodes.end(), [&](const Node& node) {
      return is<AttentionSumsOp>(*node.op) && node.block == grad.block;
    });
    ASSERT_NE(forward, after.nodes.end());
    EXPECT_EQ(grad.ins[0], forward->ins[0]);
    EXPECT_EQ(grad.ins[1], forward->outs[0]);
    EXPECT_EQ(grad.ins[2], forward->outs[1]);
  }
}

TEST(KeepAttentionSums, AQueryOfTheClassTokenAloneKeepsNothing) {
  const Program after = keep_attention_sums(record_step(tiny_vit(2)), kAlways);
  EXPECT_EQ(count_kinds(after)["attention_sums"], 1);
  EXPECT_EQ(count_kinds(after)["attention"], 1);
}

TEST(KeepAttentionSums, WithoutKernelsNothingChanges) {
  const Program before = record_step(pooled(2));
  const KernelRule forward_only = [](const Op& op, DescSpan) { return is<AttentionSumsOp>(op); };
  for (const KernelRule& rule : {KernelRule(), forward_only})
    EXPECT_EQ(to_string(keep_attention_sums(before, rule)), to_string(before));
}

// Where the projection is not trained, nothing reads attention's output going back, and it is freed.
TEST(KeepAttentionSums, AnOutputThatIsNotKeptAnywayIsNotKept) {
  const Trained but_projections = [](const std::string& name) { return !name.ends_with("attn.proj.weight"); };
  const Program before = record_step(pooled(2), {}, but_projections);
  EXPECT_EQ(to_string(keep_attention_sums(before, kAlways)), to_string(before));
}

TEST(KeepAttentionSums, OfARecomputedBlockTheSecondAttentionKeeps) {
  const Program again = step_after("recompute", pooled(1), {.recompute = {.level = Recompute::kBlock}});
  const Program after = keep_attention_sums(again, kAlways);
  const Node& kept = node_of(after, "attention_sums", Phase::kBackward);
  EXPECT_EQ(node_of(after, "attention_sums_grad", Phase::kBackward).ins[2], kept.outs[1]);
  EXPECT_EQ(count_kinds(after)["attention"], 1);  // the one of the forward pass
}

// What the rule is asked is what will run.
TEST(KeepAttentionSums, AsksForTheNodesAsTheyWillBe) {
  std::vector<std::string> asked;
  const KernelRule rule = [&](const Op& op, DescSpan ins) {
    asked.push_back(std::string(op.kind()) + strf(" of %zu", ins.size()));
    return true;
  };
  keep_attention_sums(record_step(pooled(1)), rule);
  EXPECT_EQ(asked, (std::vector<std::string>{"attention_sums of 1", "attention_sums_grad of 4"}));
}

}  // namespace
}  // namespace vitrail
