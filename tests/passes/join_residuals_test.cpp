#include "passes/passes.h"

#include <gtest/gtest.h>

#include "ops/elementwise.h"
#include "ops/layernorm.h"
#include "tiny_training.h"

namespace vitrail {
namespace {

// The nodes that touch the gradient of the residual stream, one line each.
std::string stream_of(const Program& program) {
  std::string text, line;
  for (char c : to_string(program)) {
    line += c;
    if (c != '\n') continue;
    if (line.find("layernorm_grad") != line.npos || line.find(" = add(") != line.npos) text += line;
    line.clear();
  }
  return text;
}

// The two residuals of the only block are joined; the last norm has no residual branch, and the forward adds
// stay.
TEST(JoinResiduals, AddsTheResidualWhereTheNormsGradientIsMade) {
  const Program apart = record_step(tiny_vit(1)), joined = join_residuals(apart);
  EXPECT_EQ(stream_of(joined),
            "%22 f32[B1 D8] = add(%21, %20)  # blocks.0.attn.residual\n"
            "%35 f32[B1 D8] = add(%22, %34)  # blocks.0.mlp.residual\n"
            "%52 f32[B1 D8] %53 f32[D8] %54 f32[D8] = layernorm_grad{eps=1e-06}(%35, norm.weight, %49)  # "
            "norm.dx\n"
            "%71 f32[B1 D8] %69 f32[D8] %70 f32[D8] = layernorm_grad{eps=1e-06 residual}(%22, "
            "blocks.0.norm2.weight, %65, %52)  # blocks.0.norm2.dx\n"
            "%89 f32[B1 N5 D8] %87 f32[D8] %88 f32[D8] = layernorm_grad{eps=1e-06 residual}(%8, "
            "blocks.0.norm1.weight, %83, %74)  # blocks.0.norm1.dx\n");
  EXPECT_EQ(joined.nodes.size(), apart.nodes.size() - 2);
  EXPECT_EQ(joined.outputs.size(), apart.outputs.size());
}

TEST(JoinResiduals, TwoABlockWhateverIsRecomputedOrDropped) {
  for (const RecomputeOptions& again : {RecomputeOptions{}, {Recompute::kMlp}, {Recompute::kBlock, 2}})
    for (double drop_path : {0.0, 0.2}) {
      const Program apart =
          step_after("recompute", tiny_vit(3), {.recompute = again}, {.batch = 2, .drop_path = drop_path});
      const Program joined = join_residuals(apart);
      EXPECT_EQ(apart.nodes.size() - joined.nodes.size(), 6u);
      EXPECT_EQ(to_string(join_residuals(joined)), to_string(joined)) << "there is nothing left to join";
      EXPECT_NO_THROW(fuse(joined).validate());
    }
}

// Without the parameters of the first norm no gradient flows past it, and the frozen stem has none at all.
TEST(JoinResiduals, LeavesAGradientThatNothingIsAddedTo) {
  const Trained head_only = [](const std::string& name) { return name.starts_with("head."); };
  const Program apart = record_step(tiny_vit(2), {}, head_only);
  EXPECT_EQ(to_string(join_residuals(apart)), to_string(apart));
}

// A gradient that another node reads too must exist without the residual.
TEST(JoinResiduals, LeavesAGradientThatIsReadTwice) {
  Program program = record_step(tiny_vit(1));
  for (const Node& node : program.nodes)
    if (node.name == "blocks.0.norm2.dx") program.outputs.push_back({"seen", node.outs[0]});
  const Program joined = join_residuals(program);
  EXPECT_EQ(program.nodes.size() - joined.nodes.size(), 1u);
  EXPECT_NE(stream_of(joined).find("layernorm_grad{eps=1e-06}(%22"), std::string::npos);
}

// Records x and the gradient of a norm, the norm's gradient, and an add of it with tanh(x), which is computed
// after it or before.
Program norm_grad_and_add(Phase phase, bool tanh_first) {
  Builder b;
  b.set_phase(phase);
  const TensorDesc rows{DType::kF32, {{'B', 2}, {'D', 4}}};
  const ValueId x = b.input("x", rows), dy = b.input("dy", rows);
  const ValueId gamma = b.parameter("gamma", {DType::kF32, {{'D', 4}}});
  const auto tanh = [&] { return b.add<TanhOp>({x}, "tanh"); };
  ValueId beside = tanh_first ? tanh() : -1;
  const ValueId dx = b.add<LayernormGradOp>({x, gamma, dy}, "norm.dx", 1e-3, false);
  if (!tanh_first) beside = tanh();
  b.output("sum", b.add<AddOp>({dx, beside}, "sum"));
  return b.finish();
}

TEST(JoinResiduals, OnlyWhatIsThereInTime) {
  const Program late = norm_grad_and_add(Phase::kBackward, false);
  EXPECT_EQ(to_string(join_residuals(late)), to_string(late));
  const Program in_time = join_residuals(norm_grad_and_add(Phase::kBackward, true));
  ASSERT_EQ(in_time.nodes.size(), 2u);
  EXPECT_EQ(in_time.nodes[1].op->attributes(), "eps=0.001 residual") << "with the norm's own eps";
}

TEST(JoinResiduals, OnlyGoingBack) {
  const Program forward = norm_grad_and_add(Phase::kForward, true);
  EXPECT_EQ(to_string(join_residuals(forward)), to_string(forward));
}

}  // namespace
}  // namespace vitrail
