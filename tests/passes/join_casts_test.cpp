#include <gtest/gtest.h>

#include "ops/elementwise.h"
#include "ops/layernorm.h"
#include "passes/passes.h"
#include "tiny_training.h"

namespace vitrail {
namespace {

Program low_step(DType residual, Recompute level = Recompute::kNone) {
  return step_after("fuse", tiny_vit(2),
                    {.precision = {.compute = DType::kBF16, .residual = residual},
                     .recompute = {.level = level},
                     .traits = {.few_launches = true}});
}

std::vector<std::string> names_of(const Program& program, std::string_view kind) {
  std::vector<std::string> names;
  for (const Node& node : program.nodes)
    if (node.op->kind() == kind) names.push_back(node.name);
  return names;
}

const Node& node_of(const Program& program, std::string_view name) {
  for (const Node& node : program.nodes)
    if (node.name == name) return node;
  throw Error(ErrorKind::kInternal, "no node " + std::string(name));
}

std::vector<DType> types_of(const Program& program, std::string_view name) {
  std::vector<DType> types;
  for (const ValueId id : node_of(program, name).outs) types.push_back(program.values[id].desc.dtype);
  return types;
}

TEST(JoinCasts, NormsOfAWideStreamWriteTheTypeThatGemmsRead) {
  const Program apart = low_step(DType::kF32), joined = join_casts(apart);
  for (const char* norm : {"blocks.0.norm1", "blocks.1.norm2", "norm"}) {
    EXPECT_EQ(types_of(apart, norm), std::vector{DType::kF32}) << norm;
    EXPECT_EQ(types_of(joined, norm), std::vector{DType::kBF16}) << norm;
  }
  EXPECT_EQ(node_of(joined, "norm").op->attributes(), "eps=1e-06 to bf16");
}

TEST(JoinCasts, GradientsOfNormsWriteTheStreamInBothTypes) {
  const Program joined = join_casts(low_step(DType::kF32));
  const std::vector<DType> both = {DType::kF32, DType::kF32, DType::kF32, DType::kF32, DType::kBF16};
  EXPECT_EQ(types_of(joined, "blocks.1.norm1.dx"), both);
  EXPECT_EQ(types_of(joined, "blocks.0.norm2.dx"), both);
  EXPECT_EQ(node_of(joined, "blocks.0.norm2.dx").op->attributes(), "eps=1e-06 residual sums and bf16");
  // No GEMM reads what the first norm leaves.
  EXPECT_EQ(types_of(joined, "blocks.0.norm1.dx").size(), 3u);
}

// What stays casts what no norm makes.
TEST(JoinCasts, OtherCastsStay) {
  const std::vector<std::string> left = {"images.bf16", "head.bias.f32", "loss.dx.bf16", "tokens.dx.bf16"};
  for (const Recompute level : {Recompute::kNone, Recompute::kMlp, Recompute::kBlock})
    EXPECT_EQ(names_of(join_casts(low_step(DType::kF32, level)), "cast"), left) << enum_name(level);
}

TEST(JoinCasts, JoinsOnceAndNothingWhereTheStreamIsNarrow) {
  const Program joined = join_casts(low_step(DType::kF32)), narrow = low_step(DType::kBF16);
  EXPECT_EQ(to_string(join_casts(joined)), to_string(joined));
  EXPECT_EQ(to_string(join_casts(narrow)), to_string(narrow));
}

// A norm that something else reads as it is keeps its type.
TEST(JoinCasts, ANormWithAnotherReaderStays) {
  Builder b;
  const TensorDesc x{DType::kF32, {{'B', 2}, {'D', 8}}}, row{DType::kF32, {{'D', 8}}};
  const ValueId norm =
      b.add<LayernormOp>({b.input("x", x), b.parameter("w", row), b.parameter("b", row)}, "norm", 1e-6);
  b.output("low", b.add<CastOp>({norm}, "low", DType::kBF16));
  b.output("full", norm);
  const Program program = b.finish();
  EXPECT_EQ(to_string(join_casts(program)), to_string(program));
}

// Two casts of a norm make the same value, which both outputs then are.
TEST(JoinCasts, OutputsAreWhatTheirCastsWere) {
  Builder b;
  const TensorDesc x{DType::kF32, {{'B', 2}, {'D', 8}}}, row{DType::kF32, {{'D', 8}}};
  const ValueId norm =
      b.add<LayernormOp>({b.input("x", x), b.parameter("w", row), b.parameter("b", row)}, "norm", 1e-6);
  b.output("first", b.add<CastOp>({norm}, "first", DType::kBF16));
  b.output("second", b.add<CastOp>({norm}, "second", DType::kBF16));
  const Program joined = join_casts(b.finish());
  ASSERT_EQ(joined.nodes.size(), 1u);
  EXPECT_EQ(joined.output("first"), joined.nodes[0].outs[0]);
  EXPECT_EQ(joined.output("second"), joined.nodes[0].outs[0]);
}

// A norm's gradient writes one copy beside its own: a second cast stays.
TEST(JoinCasts, AGradientWritesOneCopyAlone) {
  Builder b;
  const TensorDesc x{DType::kF32, {{'B', 2}, {'D', 8}}}, row{DType::kF32, {{'D', 8}}};
  const ValueId grad = b.add<LayernormGradOp>({b.input("x", x), b.parameter("w", row), b.input("dy", x)},
                                              "norm.dx", 1e-6, false);
  b.output("full", grad);
  b.output("first", b.add<CastOp>({grad}, "first", DType::kBF16));
  b.output("second", b.add<CastOp>({grad}, "second", DType::kBF16));
  const Program joined = join_casts(b.finish());
  EXPECT_EQ(names_of(joined, "cast"), std::vector<std::string>{"second"});
  EXPECT_EQ(types_of(joined, "norm.dx"), (std::vector<DType>{DType::kF32, DType::kBF16}));
}

// Values in f64, by which kernels are judged, are not rounded.
TEST(JoinCasts, OpsAnswerForTheirTypes) {
  for (const DType type : {DType::kF32, DType::kF64}) {
    const DType low = type == DType::kF64 ? type : DType::kBF16;
    const TensorDesc x{type, {{'B', 2}, {'D', 8}}}, row{type, {{'D', 8}}};
    EXPECT_EQ(LayernormOp(1e-6, DType::kBF16).infer(std::vector{x, row, row})[0].dtype, low);
    const LayernormGradOp grad(1e-6, false, true, true, DType::kBF16);
    const std::vector<TensorDesc> outs = grad.infer(std::vector{x, row, x, x});
    ASSERT_EQ(outs.size(), 3u);
    EXPECT_EQ(outs[grad.sums_at()], row);
    EXPECT_EQ(outs[grad.copy_at()], (TensorDesc{low, x.shape}));
  }
}

}  // namespace
}  // namespace vitrail
