#include <gtest/gtest.h>

#include <algorithm>

#include "ops/gelu.h"
#include "ops/gelu_slope.h"
#include "passes/passes.h"
#include "tiny_training.h"

namespace vitrail {
namespace {

const KernelRule kAnyKernel = [](const Op&, DescSpan) { return true; };

Program summed_step(int64_t depth, Recompute level = Recompute::kNone) {
  return step_after("join_row_sums", tiny_vit(depth),
                    {.recompute = {.level = level}, .join = false, .traits = {.few_launches = true}});
}

const Node& keeping_gelu(const Program& program, const Node& grad) {
  const auto found = std::find_if(program.nodes.begin(), program.nodes.end(), [&](const Node& node) {
    return is<GeluSlopeOp>(*node.op) && node.outs[1] == grad.ins[0];
  });
  if (found == program.nodes.end())
    throw Error(ErrorKind::kInternal, "no gelu keeps what the gradient reads");
  return *found;
}

TEST(KeepSlopes, TheGradientReadsTheSlopeAndNothingElseReadsTheGelusInput) {
  const Program before = summed_step(2), after = keep_slopes(before, kAnyKernel);
  EXPECT_EQ(count_kinds(after)["gelu_slope"], 2);
  EXPECT_EQ(count_kinds(after)["gelu_slope_grad"], 2);
  EXPECT_FALSE(count_kinds(after).contains("gelu"));
  EXPECT_FALSE(count_kinds(after).contains("gelu_grad"));
  const std::vector<int> uses = after.use_counts();
  for (const Node& grad : after.nodes) {
    const auto* op = dynamic_cast<const GeluSlopeGradOp*>(grad.op.get());
    if (!op) continue;
    EXPECT_TRUE(op->row_sums());
    const Node& gelu = keeping_gelu(after, grad);
    EXPECT_EQ(gelu.block, grad.block);
    EXPECT_EQ(uses[gelu.ins[0]], 1);
  }
}

TEST(KeepSlopes, WithoutAKernelForBothSidesNothingChanges) {
  const Program before = summed_step(2);
  const KernelRule forward_only = [](const Op& op, DescSpan) {
    return op.kind() == "linear+bias+gelu_slope";
  };
  for (const KernelRule& rule : {KernelRule(), forward_only})
    EXPECT_EQ(to_string(keep_slopes(before, rule)), to_string(before));
}

// Fused with the slope, the GEMM's gradient alone would no longer be there for anybody else.
TEST(KeepSlopes, AGradientThatSomethingElseReadsStaysAsItIs) {
  Program before = summed_step(1);
  for (const Node& node : before.nodes)
    if (is<GeluGradOp>(*node.op)) before.outputs.push_back({"also", node.ins[1]});
  ASSERT_EQ(before.outputs.back().name, "also");
  EXPECT_EQ(to_string(keep_slopes(before, kAnyKernel)), to_string(before));
}

// Its clone needs the gelu's input, which is then kept anyway.
TEST(KeepSlopes, AGeluThatIsComputedAgainAloneStaysAsItIs) {
  const Program cheap = summed_step(1, Recompute::kCheap);
  ASSERT_EQ(count_kinds(cheap)["gelu"], 2);
  EXPECT_EQ(to_string(keep_slopes(cheap, kAnyKernel)), to_string(cheap));
}

TEST(KeepSlopes, OfARecomputedBlockBothGelusAreOneOp) {
  const Program after = keep_slopes(summed_step(1, Recompute::kBlock), kAnyKernel);
  EXPECT_EQ(count_kinds(after)["gelu_slope"], 2);
  for (const Node& grad : after.nodes)
    if (is<GeluSlopeGradOp>(*grad.op)) {
      EXPECT_EQ(keeping_gelu(after, grad).phase, Phase::kBackward);
    }
}

// Where a kernel is asked for, it is asked for the nodes that fuse will make.
TEST(KeepSlopes, AsksForTheNodesAsFuseMakesThem) {
  std::vector<std::string> asked;
  const KernelRule rule = [&](const Op& op, DescSpan) {
    asked.push_back(std::string(op.kind()));
    return true;
  };
  const Program kept = keep_slopes(summed_step(1), rule);
  EXPECT_EQ(asked, (std::vector<std::string>{"linear+bias+gelu_slope", "linear_dx+gelu_slope_grad"}));
  auto kinds = count_kinds(fuse(kept, {.norms = nullptr}, kAnyKernel));
  for (const std::string& kind : asked) EXPECT_EQ(kinds[kind], 1) << kind;
}

}  // namespace
}  // namespace vitrail
