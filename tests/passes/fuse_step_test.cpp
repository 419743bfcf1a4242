// Fusing in a training step: gradients join their sums, and what the backward pass reads again is kept.
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/linear.h"
#include "ops/persistent.h"
#include "passes/passes.h"
#include "tiny_training.h"

namespace vitrail {
namespace {

// In the backward pass, a gradient that nothing else reads joins its sum; a layernorm's three outputs do not.
TEST(Fuse, GradientsJoinTheirSums) {
  const Program fused = fuse(record_step(tiny_vit(1)));
  const auto counts = count_kinds(fused);
  EXPECT_EQ(counts.at("linear_dw+accumulate"), 5);
  EXPECT_EQ(counts.at("sum_rows+accumulate"), 7) << "six biases and the positions";
  EXPECT_EQ(counts.at("patch_embed_dw+accumulate"), 1);
  EXPECT_EQ(counts.at("sum_tokens+accumulate"), 1);
  EXPECT_EQ(counts.at("accumulate"), 6) << "weights and biases of three norms";
  for (const Node& node : fused.nodes) {
    if (!fuses<LinearDwOp, AccumulateOp>(*node.op)) continue;
    EXPECT_TRUE(node.outs.empty());
    ASSERT_EQ(node.op->updates().size(), 1u);
    const Value& sum = fused.values[node.ins[static_cast<size_t>(node.op->updates()[0])]];
    EXPECT_TRUE(sum.name.starts_with("grad/")) << sum.name;
    EXPECT_EQ(node.phase, Phase::kBackward);
  }
}

TEST(Fuse, TheGeluOfABlockJoinsTheGradientOfTheGemmBehindIt) {
  const Program program = record_step(tiny_vit(2));
  auto counts = count_kinds(fuse(program));
  EXPECT_EQ(counts["linear_dx+gelu_grad"], 2);
  EXPECT_EQ(counts["gelu_grad"], 0);
  const PrecisionOptions bf16{.compute = DType::kBF16, .residual = DType::kF32};
  counts = count_kinds(step_after("fuse", tiny_vit(2), {.precision = bf16, .join = false}));
  EXPECT_EQ(counts["linear_dx+gelu_grad"], 0) << "in 16 bits the GEMM is rounded on its own";
  EXPECT_EQ(counts["gelu_grad"], 2);
}

// The rule of a backend that has kernels for some fused nodes.
KernelRule has(std::string_view kind) {
  return [kind](const Op& op, DescSpan) { return op.kind() == kind; };
}

TEST(Fuse, AGemmMakesTheGeluOfWhatItKeepsWhereThereIsAKernel) {
  const PrecisionOptions bf16{.compute = DType::kBF16, .residual = DType::kF32};
  const Program program = step_after("precision", tiny_vit(2), {.precision = bf16});
  const Program fused = fuse(program, {.norms = nullptr}, has("linear+bias+gelu"));
  auto counts = count_kinds(fused);
  EXPECT_EQ(counts["gelu"], 0);
  ASSERT_EQ(counts["linear+bias+gelu"], 2);
  for (const Node& node : fused.nodes) {
    if (!fuses<LinearOp, BiasOp, GeluOp>(*node.op)) continue;
    EXPECT_EQ(node.op->attributes(), "erf keeps bias");
    ASSERT_EQ(node.outs.size(), 2u);
    EXPECT_TRUE(fused.values[node.outs[0]].name.ends_with("gelu")) << fused.values[node.outs[0]].name;
    EXPECT_GT(fused.use_counts()[node.outs[1]], 0) << "the gradient reads what is kept";
  }
  counts = count_kinds(fuse(program, {.norms = nullptr}, has("nothing")));
  EXPECT_EQ(counts["gelu"], 2);
  EXPECT_EQ(counts["linear+bias+gelu"], 0);
}

// What is recomputed must have the bits of the original, so both run by the kernel that makes two results.
TEST(Fuse, AGemmAndItsCloneBothMakeTheGeluOfWhatTheyKeep) {
  const PrecisionOptions bf16{.compute = DType::kBF16, .residual = DType::kF32};
  for (const RecomputeOptions& again : {RecomputeOptions{Recompute::kMlp}, {Recompute::kBlock}}) {
    const Program program = step_after("recompute", tiny_vit(2), {.precision = bf16, .recompute = again});
    auto counts = count_kinds(fuse(program, {.norms = nullptr}, has("linear+bias+gelu")));
    EXPECT_EQ(counts["linear+bias+gelu"], 4);
    EXPECT_EQ(counts["gelu"], 0);
  }
}

TEST(Fuse, TheGradientsOfGeluAndGemmAreOneIn16BitsWhereThereIsAKernel) {
  const PrecisionOptions bf16{.compute = DType::kBF16, .residual = DType::kF32};
  const Program program = step_after("join_row_sums", tiny_vit(2),
                                     {.precision = bf16, .join = false, .traits = {.few_launches = true}});
  const Program fused = fuse(program, {.norms = nullptr}, has("linear_dx+gelu_grad"));
  auto counts = count_kinds(fused);
  EXPECT_EQ(counts["linear_dx+gelu_grad"], 2);
  EXPECT_EQ(counts["gelu_grad"], 0);
  for (const Node& node : fused.nodes) {
    if (fuses<LinearDxOp, GeluGradOp>(*node.op)) {
      EXPECT_EQ(node.outs.size(), 2u) << "with the bias' sums";
    }
  }
  EXPECT_EQ(count_kinds(fuse(program, {.norms = nullptr}, has("nothing")))["gelu_grad"], 2);
}

TEST(Fuse, AGradientReadTwiceDoesNotJoinItsSum) {
  Builder b;
  const ValueId w = b.parameter("w", {DType::kF32, {{'B', 2}, {'D', 4}}});
  b.output("loss", b.add<TanhOp>({w}, "y"));
  const ValueId seed = b.input("seed", b.desc(w));
  Program program = differentiate(b.finish(), {.seed = seed});
  EXPECT_EQ(kinds(fuse(program)), (std::vector<std::string>{"tanh", "tanh_grad+accumulate"}));
  program.outputs.push_back({"dw", program.nodes[1].outs[0]});
  EXPECT_EQ(kinds(fuse(program)), (std::vector<std::string>{"tanh", "tanh_grad", "accumulate"}));
}

// Values that the backward pass reads again must exist, so GEMMs are not fused with their neighbours there.
TEST(Fuse, SavedActivationsAreNotSwallowed) {
  const auto counts = count_kinds(fuse(record_step(tiny_vit(1))));
  EXPECT_FALSE(counts.contains("layernorm+linear+bias+gelu"));
  EXPECT_EQ(counts.at("linear+bias+add"), 2);
  EXPECT_EQ(counts.at("gelu"), 1);
}

}  // namespace
}  // namespace vitrail
