// Edges of passes on programs made by hand: batches through stages, what stays on the device of an update,
// the first node of a program, types that do not join.
#include <gtest/gtest.h>

#include <map>

#include "graph/builder.h"
#include "ops/bias.h"
#include "ops/collective.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/scale.h"
#include "ops/turn.h"
#include "ops/update/control.h"
#include "ops/update/sgd.h"
#include "passes/offload.h"
#include "passes/passes.h"
#include "passes/pipeline_turns.h"
#include "passes/precision.h"
#include "passes/stages.h"
#include "passes/tiny_training.h"

namespace vitrail::pass_edges {
namespace {

// A batch goes forward through three stages, and what comes out goes back to each of them.
TEST(BatchStages, EveryOneGetsTheOutputs) {
  const Program whole = record_vit(tiny_vit(6), {.batch = 2});
  const std::string made = whole.values[whole.output("logits")].name;
  std::map<std::tuple<int, int, int>, int> sent, received;
  for (int s = 0; s < 3; ++s) {
    const Program program = stage_of(whole, {.begins = {2, 4}}, {{1, 1, 1, 3}, s}, StageOf::kBatch);
    check_exchanges(program);  // what is sent is waited for
    ASSERT_EQ(program.outputs.size(), 1u);
    EXPECT_EQ(program.outputs[0].name, "logits");
    EXPECT_EQ(program.values[program.outputs[0].value].name, made + (s == 2 ? "" : ".receive"));
    for (const Node& node : program.nodes) {
      EXPECT_FALSE(is<TurnOp>(*node.op));
      const CollectiveOp* op = as_collective(*node.op);
      if (!op) continue;
      const bool sends = op->form().kind == CollectiveKind::kSend;
      EXPECT_EQ(op->form().started, sends);
      EXPECT_TRUE(node.name.ends_with(sends ? ".send" : ".receive")) << node.name;
      ++(sends ? sent[{s, op->form().peer, op->form().channel}]
               : received[{op->form().peer, s, op->form().channel}]);
    }
  }
  EXPECT_EQ(sent, received);
  EXPECT_EQ(sent, (std::map<std::tuple<int, int, int>, int>{
                      {{0, 1, 0}, 1}, {{1, 2, 0}, 1}, {{2, 1, 1}, 1}, {{1, 0, 1}, 1}}));
}

TEST(SplitUpdates, ControlHostAndGatherAreApart) {
  Builder b;
  b.set_phase(Phase::kUpdate);
  const TensorDesc desc{DType::kF32, {{'W', 32}}}, one{DType::kF64, {{'Z', 1}}};
  const ValueId hyper = b.input("hyper", hyper_desc()), sum = b.state("grad/p", desc, Category::kGradients);
  const ValueId squares = b.add<SquareSumOp>({sum}, "squares");
  const ValueId control = b.add<StepControlOp>(
      {squares, hyper, b.state("scale", one, Category::kOptimizer),
       b.state("counters", {DType::kF64, {{'Z', kUpdateCounters}}}, Category::kOptimizer)},
      "control", 0.0, LossScaleRule{});
  const ValueId param = b.parameter("p", desc);
  b.add_all<SgdUpdateOp>({param, sum, control}, "p", UpdateScale{}, 0.0, false);
  b.add_all<CollectiveOp>({param}, "gather",
                          CollectiveOp::Form{.kind = CollectiveKind::kAllGather,
                                             .axes = Axis::kData,
                                             .counts = {16, 16},
                                             .in_place = true,
                                             .started = true});
  b.add_all<WaitOp>({param}, "wait");
  b.output("control", control);
  const UpdateParts parts = split_update(b.finish());
  const auto names = [](const Program& program) {
    std::vector<std::string> list;
    for (const Node& node : program.nodes) list.push_back(node.name);
    return list;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(parts.control), (Names{"squares", "control"}));
  EXPECT_EQ(names(parts.host), (Names{"p"}));
  EXPECT_EQ(names(parts.gather), (Names{"gather", "wait"}));
  EXPECT_EQ(parts.control.outputs.size(), 1u);
  EXPECT_TRUE(parts.host.outputs.empty());
}

// A GEMM, its bias and its gelu as the first nodes of a program, or the GEMM's gradient, and the gradient of
// the gelu.
void keep_slope_of_first(bool gradient_first) {
  Builder b;
  const Dim rows('B', 4), in('D', 8), hidden('F', 16);
  const TensorDesc weight{DType::kF32, {hidden, in}};
  const ValueId w = b.parameter("w", weight), dz = b.input("dz", {DType::kF32, {rows, {'K', 3}}}),
                w2 = b.parameter("w2", {DType::kF32, {{'K', 3}, hidden}});
  ValueId dy = gradient_first ? b.add<LinearDxOp>({dz, w2}, "dx") : -1;
  const ValueId made = b.add<LinearOp>({b.input("x", {DType::kF32, {rows, in}}), w}, "linear");
  const ValueId biased = b.add<BiasOp>({made, b.parameter("b", {DType::kF32, {hidden}})}, "bias");
  b.output("y", b.add<GeluOp>({biased}, "gelu", false));
  if (!gradient_first) dy = b.add<LinearDxOp>({dz, w2}, "dx");
  b.output("dh", b.add<GeluGradOp>({biased, dy}, "grad", false));
  const Program kept = keep_slopes(b.finish(), [](const Op&, DescSpan) { return true; });
  EXPECT_EQ(count_kinds(kept)["gelu_slope"], 1);
  EXPECT_EQ(count_kinds(kept)["gelu_slope_grad"], 1);
}

TEST(FirstNodes, AreSeenLikeOthers) {
  for (const bool gradient_first : {false, true}) keep_slope_of_first(gradient_first);
}

TEST(JoinedRows, AreOfF32) {
  for (const DType residual : {DType::kF32, DType::kBF16}) {
    Builder b;
    const Dim rows('B', 4), width('D', 8);
    const TensorDesc x{DType::kF32, {rows, width}};
    const ValueId summed = b.add<CollectiveOp>(
        {b.add<TanhOp>({b.input("x", x)}, "tanh")}, "sum",
        CollectiveOp::Form{.kind = CollectiveKind::kAllReduce, .axes = Axis::kTensor, .counts = {32}});
    const ValueId biased = b.add<BiasOp>({summed, b.parameter("b", {DType::kF32, {width}})}, "bias");
    b.output("y", b.add<AddOp>({b.input("residual", {residual, {rows, width}}), biased}, "add"));
    RewriteTraits traits;
    traits.residual_rows = true;
    EXPECT_EQ(count_kinds(fuse(b.finish(), traits)).contains("residual_rows"), residual == DType::kF32);
  }
}

// What stands behind the sum that ranks exchange, value by value.
struct BehindASum {
  DType bias = DType::kF32;
  bool has_bias = true, for_tokens = false, is_output = false;
  DType norm = DType::kF32;
  bool norm_of_another = false;
  std::vector<DropUnit> drops = {};  // with a scale behind the first
  bool other_counters = false;       // of the last
};

// Returns how many results the pass over rows has; 0: there is none.
size_t joined_results(const BehindASum& how) {
  Builder b;
  const Dim batch('B', 2), tokens('N', 3), width('D', 8);
  const TensorDesc x{DType::kF32, {batch, tokens, width}}, row{DType::kF32, {width}};
  ValueId flowing = b.add<CollectiveOp>(
      {b.add<TanhOp>({b.input("x", x)}, "tanh")}, "sum",
      CollectiveOp::Form{.kind = CollectiveKind::kAllReduce, .axes = Axis::kTensor, .counts = {48}});
  const ValueId other = b.input("other", x);
  if (how.has_bias) {
    const Shape shape = how.for_tokens ? Shape{tokens, width} : Shape{width};
    flowing = b.add<BiasOp>({flowing, b.parameter("b", {how.bias, shape})}, "bias");
  }
  if (how.is_output) b.output("biased", flowing);
  const TensorDesc three{DType::kI64, {{'Z', kCounterCount}}};
  const ValueId counters = b.input("counters", three), others = b.input("others", three);
  for (size_t i = 0; i < how.drops.size(); ++i) {
    const bool last = i + 1 == how.drops.size();
    flowing = b.add<DropoutOp>({flowing, last && how.other_counters ? others : counters},
                               "drop" + std::to_string(i), 0.5, how.drops[i], uint64_t{i});
    if (i == 0 && !last) flowing = b.add<ScaleOp>({flowing, b.parameter("s", row)}, "scale");
  }
  const ValueId sum = b.add<AddOp>({b.input("residual", x), flowing}, "add");
  b.output("y", sum);
  const ValueId normed = how.norm_of_another ? other : sum;
  b.output("normed", b.add<LayernormOp>({normed, b.parameter("w", row), b.parameter("v", row)}, "norm", 1e-6,
                                        how.norm));
  RewriteTraits traits;
  traits.residual_rows = true;
  for (const Node& node : fuse(b.finish(), traits).nodes)
    if (node.op->kind() == "residual_rows") return node.outs.size();
  return 0;
}

TEST(JoinedRows, TakeWhatFollowsAtOnceAndNothingElse) {
  EXPECT_EQ(joined_results({}), 2u) << "bias, residual and norm";
  EXPECT_EQ(joined_results({.is_output = true}), 0u) << "the result in between is wanted";
  EXPECT_EQ(joined_results({.bias = DType::kBF16}), 0u);
  EXPECT_EQ(joined_results({.for_tokens = true}), 0u) << "a vector for each token";
  EXPECT_EQ(joined_results({.norm = DType::kBF16}), 1u);
  EXPECT_EQ(joined_results({.norm_of_another = true}), 1u);
  EXPECT_EQ(joined_results({.has_bias = false}), 2u);
  EXPECT_EQ(joined_results({.has_bias = false, .norm_of_another = true}), 0u) << "a sum alone stays one";
}

TEST(JoinedRows, TakeWhatIsDroppedAlong) {
  constexpr DropUnit kElement = DropUnit::kElement, kSample = DropUnit::kSample;
  EXPECT_EQ(joined_results({.drops = {kElement}}), 2u);
  EXPECT_EQ(joined_results({.drops = {kSample}}), 2u);
  EXPECT_EQ(joined_results({.has_bias = false, .norm_of_another = true, .drops = {kSample}}), 1u);
  EXPECT_EQ(joined_results({.drops = {kElement, kSample}}), 2u) << "with a scale between";
  EXPECT_EQ(joined_results({.drops = {kElement, kSample}, .other_counters = true}), 0u);
  EXPECT_EQ(joined_results({.drops = {kSample, kElement}}), 0u) << "in another order than the op has";
}

TEST(PassEdges, NothingIsNoPipelineAndNoSegment) {
  for (const PipelineShape& none : {PipelineShape{PipelineSchedule::k1F1B, 0, 1, 1},
                                    {PipelineSchedule::k1F1B, 1, 0, 1},
                                    {PipelineSchedule::k1F1B, 1, 1, 0}})
    EXPECT_THROW(pipeline_turns(none), Error);
  EXPECT_THROW(recompute(record_step(tiny_vit(2)), {Recompute::kBlock, 0}), Error);
}

// What is cast for an output belongs to no block, as what stands outside of them.
TEST(PassEdges, CastsOutsideOfBlocksHaveNone) {
  const PrecisionOptions low{.compute = DType::kBF16, .residual = DType::kBF16, .keep_masters = false};
  for (const Node& node : precision(record_vit(tiny_vit(2), {.batch = 2}), low).program.nodes)
    EXPECT_TRUE(node.block >= -1 && node.block < 2) << node.name;
}

}  // namespace
}  // namespace vitrail::pass_edges
