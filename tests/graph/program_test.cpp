#include "graph/program.h"

#include <gtest/gtest.h>

#include "graph/builder.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/persistent.h"

namespace vitrail {
namespace {

const Dim kB('B', 2), kN('N', 3), kD('D', 4), kF('F', 8);

Program small_program() {
  Builder b;
  const ValueId x = b.input("x", {DType::kF32, {kB, kN, kD}});
  const Builder::Scope scope(b, "mlp");
  const ValueId w = b.parameter(b.path("w"), {DType::kF32, {kF, kD}});
  const ValueId y = b.add<LinearOp>({x, w}, "fc1");
  b.output("y", b.add<GeluOp>({y}, "gelu", true));
  return b.finish();
}

TEST(Program, PrintsOneReadableLineANode) {
  EXPECT_EQ(to_string(small_program()),
            "input x f32[B2 N3 D4]\n"
            "%2 f32[B2 N3 F8] = linear(x, mlp.w)  # mlp.fc1\n"
            "%3 f32[B2 N3 F8] = gelu{tanh}(%2)  # mlp.gelu\n"
            "output y = %3\n");
}

TEST(Program, CountsFlopsAndBytes) {
  const Cost cost = small_program().cost();
  EXPECT_EQ(cost.flops, 2.0 * 6 * 4 * 8 + 10.0 * 48);
  EXPECT_EQ(cost.bytes, 4.0 * (24 + 32 + 48) + 4.0 * (48 + 48));
}

TEST(Program, AnOutputIsAUse) {
  EXPECT_EQ(small_program().use_counts(), (std::vector<int>{1, 1, 1, 1}));
}

TEST(Program, NodesRememberTheLineThatRecordedThem) {
  const Program program = small_program();
  EXPECT_NE(std::string(program.nodes[0].where.file).find("program_test.cpp"), std::string::npos);
  EXPECT_EQ(program.nodes[1].where.line, program.nodes[0].where.line + 1);
}

// What a scope sets holds until it ends.
TEST(Program, ScopesEndWithWhatTheySet) {
  Builder b;
  const ValueId x = b.input("x", {DType::kF32, {kB, kD}});
  ValueId y = b.add<GeluOp>({x}, "before", true);
  {
    const Builder::Scope block(b, "blocks.7", 7);
    const Builder::Scope step(b, ModelStep::kGelu);
    y = b.add<GeluOp>({y}, "within", true);
  }
  b.output("y", b.add<GeluOp>({y}, "behind", true));
  const Program program = b.finish();
  const Node &before = program.nodes[0], &within = program.nodes[1], &behind = program.nodes[2];
  EXPECT_EQ(within.name, "blocks.7.within");
  EXPECT_EQ(within.block, 7);
  EXPECT_EQ(within.step, ModelStep::kGelu);
  EXPECT_NE(before.step, ModelStep::kGelu);
  EXPECT_EQ(behind.name, "behind");
  EXPECT_EQ(behind.block, before.block);
  EXPECT_EQ(behind.step, before.step);
}

TEST(Program, AnAppendedNodeMakesWhatItsOpInfers) {
  Program program = small_program();
  const ValueId y = program.output("y");
  const std::vector<ValueId> outs = program.append({.op = std::make_shared<GeluOp>(true),
                                                    .ins = {y},
                                                    .outs = {},
                                                    .name = "again",
                                                    .block = 3,
                                                    .step = ModelStep::kGelu});
  ASSERT_EQ(outs, std::vector<ValueId>{y + 1});
  const Value& made = program.values[static_cast<size_t>(outs[0])];
  EXPECT_EQ(made.name, "again");
  EXPECT_EQ(made.desc, program.values[static_cast<size_t>(y)].desc);
  EXPECT_EQ(made.step, ModelStep::kGelu);
  EXPECT_EQ(program.nodes.back().outs, outs);
  EXPECT_EQ(program.nodes.back().block, 3);
  program.validate();
  const Node twice = program.nodes.back();
  EXPECT_THROW(program.append(twice), Error) << "its outputs are there";
}

TEST(Program, SharedParametersAreOneValueAndMustAgree) {
  Builder b;
  const ValueId first = b.parameter("w", {DType::kF32, {kD}});
  EXPECT_EQ(b.parameter("w", {DType::kF32, {kD}}), first);
  EXPECT_THROW(b.parameter("w", {DType::kF32, {kF}}), Error);
}

TEST(Program, RefusesInputsThatDoNotFit) {
  Builder b;
  const ValueId x = b.input("x", {DType::kF32, {kB, kN, kD}}), y = b.input("y", {DType::kF32, {kB, kD}});
  EXPECT_THROW(b.add<AddOp>({x, y}, "add"), Error);
  EXPECT_THROW(b.add<BiasOp>({y, x}, "bias"), Error);
  EXPECT_THROW(b.add<LinearOp>({x, b.parameter("w", {DType::kF32, {kD, kF}})}, "linear"), Error);
}

TEST(Program, ValidateFindsWhatPassesCouldBreak) {
  Program twice = small_program();
  twice.nodes.push_back(twice.nodes[0]);
  EXPECT_THROW(twice.validate(), Error);
  Program swapped = small_program();
  std::swap(swapped.nodes[0], swapped.nodes[1]);
  EXPECT_THROW(swapped.validate(), Error);
  Program wrong_shape = small_program();
  wrong_shape.values[2].desc.shape = {kB, kN, kD};
  EXPECT_THROW(wrong_shape.validate(), Error);
}

// A layernorm's gradient with its parameters' and the sums they go to: three outputs, and nodes with none.
Program norm_gradient() {
  Builder b;
  const TensorDesc x{DType::kBF16, {kB, kN, kD}}, row{DType::kF32, {kD}};
  const auto outs = b.add_all<LayernormGradOp>({b.input("x", x), b.parameter("w", row), b.input("dy", x)},
                                               "norm.dx", 1e-6, true);
  b.set_phase(Phase::kBackward);
  b.add_all<AccumulateOp>({b.state("grad/w", row, Category::kGradients), outs[1]}, "grad/w");
  b.output("dx", outs[0]);
  return b.finish();
}

TEST(Program, NodesHaveAnyNumberOfOutputs) {
  const Program program = norm_gradient();
  EXPECT_EQ(to_string(program),
            "input x bf16[B2 N3 D4]\n"
            "input dy bf16[B2 N3 D4]\n"
            "%3 bf16[B2 N3 D4] %4 f32[D4] %5 f32[D4] = layernorm_grad{eps=1e-06}(x, w, dy)  # norm.dx\n"
            "accumulate(grad/w, %4)  # grad/w\n"
            "output dx = %3\n");
  EXPECT_EQ(program.nodes[1].phase, Phase::kBackward);
  EXPECT_EQ(program.cost().bytes, 2.0 * 24 * 3 + 4.0 * 4 * 3 + 4.0 * 4 * 2);
  Builder b;
  const ValueId x = b.input("x", {DType::kF32, {kD}});
  EXPECT_THROW(b.add<AccumulateOp>({b.parameter("w", b.desc(x)), x}, "no output"), Error);
}

TEST(Program, OnlyWhatPersistsIsUpdated) {
  Program program = norm_gradient();
  EXPECT_NO_THROW(program.validate());
  program.nodes[1].ins = {program.nodes[0].outs[2], program.nodes[0].outs[1]};
  EXPECT_THROW(program.validate(), Error);
}

TEST(Program, PersistentValuesAgreeInKindAndType) {
  Builder b;
  const TensorDesc row{DType::kF32, {kD}};
  const ValueId m = b.state("m", row, Category::kOptimizer);
  EXPECT_EQ(b.state("m", row, Category::kOptimizer), m);
  EXPECT_THROW(b.parameter("m", row), Error);
  EXPECT_THROW(b.state("m", {DType::kBF16, {kD}}, Category::kOptimizer), Error);
}

TEST(Linear, ContractsByName) {
  const LinearOp op;
  const Dim t('T', 3), h('H', 2), e('E', 2);
  const auto out = [&](Shape x, Shape w) {
    const TensorDesc ins[] = {{DType::kF32, std::move(x)}, {DType::kF32, std::move(w)}};
    return to_string(op.infer(ins)[0].shape);
  };
  EXPECT_EQ(out({kB, kN, kD}, {t, h, e, kD}), "[B2 N3 T3 H2 E2]");
  EXPECT_EQ(out({kB, kN, h, e}, {kD, h, e}), "[B2 N3 D4]");
  EXPECT_EQ(out({kB, kD}, {{'K', 10}, kD}), "[B2 K10]");
}

}  // namespace
}  // namespace vitrail
