// The collectives of a step, counted on its programs: as many as the textbook has for each strategy.
#include <gtest/gtest.h>

#include "mesh_run.h"
#include "ops/collective.h"
#include "train/model_setup.h"

namespace vitrail {
namespace {

using Counts = std::map<std::string, int>;  // "forward all_reduce tp"

StepConfig step_of(const std::array<int, kAxisCount>& mesh, int zero = 0, bool tokens = false) {
  StepConfig step = usual_step(DType::kF32);
  step.model.depth = 4;
  for (const ParamSpec& spec : step_params(step.model, step.lora))
    step.trained.push_back({spec.name, {DType::kF32, spec.shape}});
  step.distribution.mesh = {mesh, 0};
  step.distribution.tokens_on_tp = tokens;
  step.zero = zero;
  return step;
}

std::string key_of(const Node& node, const CollectiveOp& op) {
  const char* phase = node.phase == Phase::kForward ? "forward " : "backward ";
  return phase + std::string(op.kind()) + " " + to_string(op.form().axes);
}

// Those of one block in the middle.
Counts counts_of_block(const Program& program, int block) {
  Counts counts;
  for (const Node& node : program.nodes)
    if (const auto* op = as_collective(*node.op); op && node.block == block) ++counts[key_of(node, *op)];
  return counts;
}

Program micro_of(const StepConfig& step) {
  return record_micro(step, {}).program;
}

TEST(CollectiveCounts, TensorParallelReducesTwiceABlockAndHalf) {
  EXPECT_EQ(counts_of_block(micro_of(step_of({1, 4, 1})), 1),
            (Counts{{"forward all_reduce tp", 2}, {"backward all_reduce tp", 2}}));
}

// The norms' outputs are kept in parts and gathered once more for the gradients of the weights.
TEST(CollectiveCounts, TokensOnTpGatherAndScatterInstead) {
  EXPECT_EQ(counts_of_block(micro_of(step_of({1, 4, 1}, 0, true)), 1), (Counts{{"forward all_gather tp", 2},
                                                                               {"forward reduce_scatter tp", 2},
                                                                               {"backward all_gather tp", 4},
                                                                               {"backward reduce_scatter tp", 2}}));
}

TEST(CollectiveCounts, UlyssesExchangesFourTimesABlock) {
  EXPECT_EQ(counts_of_block(micro_of(step_of({1, 1, 2})), 1),
            (Counts{{"forward all_to_all sp", 2}, {"backward all_to_all sp", 2}}));
}

TEST(CollectiveCounts, DataParallelSumsEveryGradientOnce) {
  const StepConfig step = step_of({4, 1, 1});
  const StepPlan plan = plan_step(step, find_backend("cpu"), {});
  double elems = 0;
  for (const Node& node : plan.last_micro->program.nodes)
    if (const auto* op = as_collective(*node.op)) {
      EXPECT_EQ(op->kind(), "all_reduce");
      for (const size_t count : op->form().counts) elems += static_cast<double>(count);
    }
  double params = 0;
  for (const TrainedParam& param : step.trained) params += static_cast<double>(param.desc.elems());
  EXPECT_GE(elems, params);
  EXPECT_LE(elems, 1.01 * params) << "padding to 64 bytes";
  for (const Node& node : plan.micro.program.nodes) EXPECT_FALSE(as_collective(*node.op)) << node.name;
}

TEST(CollectiveCounts, Zero3GathersTwiceAndScattersOnceABlock) {
  for (const Recompute level : {Recompute::kNone, Recompute::kBlock}) {
    StepConfig step = step_of({4, 1, 1}, 3);
    step.recompute.level = level;
    Counts counts;
    const Program program = micro_of(step);
    for (const Node& node : program.nodes)
      if (const auto* op = as_collective(*node.op)) ++counts[key_of(node, *op)];
    // Four blocks, and what is before and behind them; the gradients of what is before need no weights.
    EXPECT_EQ(counts, (Counts{{"forward all_gather dp", 6}, {"backward all_gather dp", 5},
                              {"backward reduce_scatter dp", 6}}))
        << enum_name(level);
  }
}

// ZeRO's formula: parameters, gradients and state of a rank, in bytes, without what is exchanged.
TEST(CollectiveCounts, ZeroKeepsWhatItsFormulaSays) {
  for (const int stage : {1, 2, 3}) {
    StepConfig step = step_of({4, 1, 1}, stage);
    step.optim.ema_decay = 0;
    step.model.width = 192, step.model.mlp = 768;
    step.trained.clear();
    double params = 0;
    for (const ParamSpec& spec : step_params(step.model, step.lora)) {
      step.trained.push_back({spec.name, {DType::kF32, spec.shape}});
      params += static_cast<double>(spec.shape.elems());
    }
    const StepPlan plan = plan_step(step, find_backend("cpu"), {});
    const double shares[] = {4 + 4 + 8.0 / 4, 4 + 4.0 / 4 + 8.0 / 4, (4 + 4 + 8.0) / 4};
    size_t kept = 0;
    for (const Category c : {Category::kParameters, Category::kGradients, Category::kOptimizer})
      kept += plan.layout->bytes(c);
    EXPECT_LE(static_cast<double>(kept), 1.02 * shares[stage - 1] * params) << stage;
    EXPECT_GE(static_cast<double>(kept), 0.98 * shares[stage - 1] * params) << stage;
  }
}

}  // namespace
}  // namespace vitrail
