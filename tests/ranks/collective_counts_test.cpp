// The collectives of a step, counted on its programs: as many as the textbook has for each strategy, and as
// many bytes.
#include <gtest/gtest.h>

#include "mesh_run.h"
#include "ops/collective.h"
#include "train/model_setup.h"

namespace vitrail {
namespace {

// Of a block and kind, "forward all_reduce tp": how many, and the bytes that this rank sends.
struct Traffic {
  int count = 0;
  double bytes = 0;
};
using Traffics = std::map<std::string, Traffic>;
using Counts = std::map<std::string, int>;

StepConfig step_of(const std::array<int, kAxisCount>& mesh, int zero = 0, bool tokens = false) {
  StepConfig step = usual_step(DType::kF32);
  step.model.depth = 4;
  step.micro_batch = 24;
  step.distribution.mesh = {mesh, 0};
  step.distribution.tokens_on_tp = tokens;
  step.zero = zero;
  train_parameters(step);
  return step;
}

// Of one block, or with -2 of all.
Traffics traffic_of(const StepConfig& step, int block) {
  Traffics traffic;
  const Program program = record_micro(step, {}).program;
  for (const Node& node : program.nodes) {
    const auto* op = as_collective(*node.op);
    if (!op || (block != -2 && node.block != block)) continue;
    const char* phase = node.phase == Phase::kForward ? "forward " : "backward ";
    Traffic& row = traffic[phase + std::string(op->kind()) + " " + to_string(op->form().axes)];
    ++row.count;
    row.bytes += op->bytes_sent(program.descs(node.ins), step.distribution.mesh.size(op->form().axes));
  }
  return traffic;
}

Counts counts_of(const Traffics& traffic) {
  Counts counts;
  for (const auto& [key, row] : traffic) counts[key] = row.count;
  return counts;
}

// The bytes of the residual stream of a micro-batch: 24 images of 17 tokens of width 48.
constexpr double kStream = 24.0 * 17 * 48 * 4;

TEST(CollectiveCounts, TensorParallelReducesTwiceABlockAndHalf) {
  const Traffics found = traffic_of(step_of({1, 4, 1}), 1);
  EXPECT_EQ(counts_of(found), (Counts{{"forward all_reduce tp", 2}, {"backward all_reduce tp", 2}}));
  for (const auto& [key, row] : found) EXPECT_DOUBLE_EQ(row.bytes, 2 * 2 * 0.75 * kStream) << key;
}

// A partial sum goes through the second product of an adapter, which is linear in it.
TEST(CollectiveCounts, AdaptersAddNoReductionToTensorParallel) {
  StepConfig step = step_of({1, 4, 1});
  step.lora = {.rank = 4, .alpha = 8, .mlp = true};
  train_parameters(step);
  step.dropout = 0;
  EXPECT_EQ(counts_of(traffic_of(step, 1)),
            (Counts{{"forward all_reduce tp", 2}, {"backward all_reduce tp", 2}}));
}

// The norms' outputs are kept in parts and gathered once more for the gradients of the weights.
TEST(CollectiveCounts, TokensOnTpGatherAndScatterInstead) {
  const Traffics found = traffic_of(step_of({1, 4, 1}, 0, true), 1);
  EXPECT_EQ(counts_of(found), (Counts{{"forward all_gather tp", 2},
                                      {"forward reduce_scatter tp", 2},
                                      {"backward all_gather tp", 4},
                                      {"backward reduce_scatter tp", 2}}));
  for (const auto& [key, row] : found) EXPECT_DOUBLE_EQ(row.bytes, row.count * 0.75 * kStream) << key;
}

TEST(CollectiveCounts, UlyssesExchangesFourTimesABlock) {
  const Traffics found = traffic_of(step_of({1, 1, 2}), 1);
  EXPECT_EQ(counts_of(found), (Counts{{"forward all_to_all sp", 2}, {"backward all_to_all sp", 2}}));
  // Of qkv a rank has 8 of 17 tokens and hands half the heads over; of the answers it has half the heads.
  const double there = 0.5 * kStream * 8 / 17, back = 0.5 * kStream / 2;
  EXPECT_DOUBLE_EQ(found.at("forward all_to_all sp").bytes, 3 * there + back);
  EXPECT_DOUBLE_EQ(found.at("backward all_to_all sp").bytes, there + 3 * back);
}

// What is before the blocks needs no weights for its gradients; the last block and what is behind it are
// still there when the backward half begins.
bool is_gathered_again(const std::string& name) {
  return name.starts_with("blocks.") && !name.starts_with("blocks.3.");
}

TEST(CollectiveCounts, Zero3GathersTwiceAndScattersOnceABlock) {
  for (const Recompute level :
       {Recompute::kNone, Recompute::kNorms, Recompute::kCheap, Recompute::kMlp, Recompute::kBlock}) {
    StepConfig step = step_of({4, 1, 1}, 3);
    step.recompute.level = level;
    EXPECT_EQ(counts_of(traffic_of(step, -2)), (Counts{{"forward all_gather dp", 6},
                                                       {"backward all_gather dp", 3},
                                                       {"backward reduce_scatter dp", 6}}))
        << enum_name(level) << ": four blocks, and what is before and behind them";
    EXPECT_EQ(counts_of(traffic_of(step, 3)),
              (Counts{{"forward all_gather dp", 1}, {"backward reduce_scatter dp", 1}}));
    double block = 0;
    for (const TrainedParam& param : step.trained)
      if (param.name.starts_with("blocks.1.")) block += 0.75 * static_cast<double>(param.desc.bytes());
    for (const auto& [key, row] : traffic_of(step, 1)) {
      EXPECT_EQ(row.count, 1) << key;
      EXPECT_NEAR(row.bytes, block, 0.01 * block) << key << ": padding to 64 bytes";
    }
  }
}

// The bytes of an update that depend on parameters alone, in units of (p-1)/p of them; of ZeRO 3's gathers
// the half is that of the forward pass.
struct Textbook {
  int zero;
  int64_t accumulation;
  bool whole_sums;
  std::map<std::string, double> units;
};

TEST(CollectiveCounts, EveryGradientOnceWhateverTheStage) {
  const Textbook rows[] = {
      {0, 1, false, {{"all_reduce", 2}}},
      {0, 4, false, {{"all_reduce", 2}}},
      {1, 4, false, {{"reduce_scatter", 1}, {"all_gather", 1}}},
      {2, 1, false, {{"reduce_scatter", 1}, {"all_gather", 1}}},
      {2, 4, false, {{"reduce_scatter", 4}, {"all_gather", 1}}},
      {2, 4, true, {{"reduce_scatter", 1}, {"all_gather", 1}}},
      {3, 1, false, {{"reduce_scatter", 1}, {"all_gather", 2}}},
      {3, 4, false, {{"reduce_scatter", 4}, {"all_gather", 8}}},
      {3, 4, true, {{"reduce_scatter", 1}, {"all_gather", 8}}},
  };
  for (const Textbook& row : rows) {
    StepConfig step = step_of({4, 1, 1}, row.zero);
    step.whole_sums = row.whole_sums;
    double params = 0, again = 0;
    for (const TrainedParam& param : step.trained) {
      const double sent = 0.75 * static_cast<double>(param.desc.bytes());
      params += sent;
      if (is_gathered_again(param.name)) again += sent;
    }
    std::map<std::string, double> found;
    const StepPlan plan = plan_step(step, find_backend("cpu"), {});
    for (const CollectiveRow& sent : collective_rows(plan, row.accumulation))
      if (sent.bytes > 100) found[sent.kind] += sent.bytes / params;  // the norm's sum is a few bytes
    ASSERT_EQ(found.size(), row.units.size()) << row.zero;
    for (const auto& [kind, units] : row.units) {
      const bool twice = row.zero == 3 && kind == "all_gather";
      const double sent = twice ? units / 2 * (1 + again / params) : units;
      EXPECT_LE(found[kind], 1.01 * sent) << kind << " of ZeRO " << row.zero;
      EXPECT_GE(found[kind], sent) << kind << " of ZeRO " << row.zero;
    }
    const bool every = row.zero == 3 || (row.zero == 2 && !row.whole_sums);
    int exchanged = 0;
    for (const Node& node : plan.micro.program.nodes) exchanged += as_collective(*node.op) != nullptr;
    EXPECT_EQ(exchanged > 0, every) << "in a micro-step that is not the last";
  }
}

// ZeRO's formula: parameters, gradients and state of a rank, in bytes, without what is exchanged.
double formula(int stage, bool averages, double with_copy, double plain) {
  const double share = 0.25, params = with_copy + plain;
  const double kept = 2 * with_copy + 4 * plain, masters = with_copy > 0 ? 4 * with_copy : 0;
  const double state = share * ((8 + (averages ? 4 : 0)) * params + masters);
  const double gradients = 4 * params * (stage >= 2 ? share : 1);
  return kept * (stage >= 3 ? share : 1) + gradients + state;
}

TEST(CollectiveCounts, ZeroKeepsWhatItsFormulaSaysOnEveryRank) {
  for (const DType compute : {DType::kF32, DType::kBF16})
    for (const bool averages : {false, true})
      for (const int stage : {1, 2, 3})
        for (int rank = 0; rank < 4; ++rank) {
          StepConfig step = step_of({4, 1, 1}, stage);
          widen(step);
          step.distribution.mesh.rank = rank;
          step.optim.ema_decay = averages ? 0.9 : 0;
          step.precision.compute = compute;
          train_parameters(step);
          std::set<std::string> masters;
          for (const LowCopy& copy : record_micro(step, {}).copies) masters.insert(copy.master);
          double with_copy = 0, plain = 0;
          for (const TrainedParam& param : step.trained)
            (masters.contains(param.name) ? with_copy : plain) += static_cast<double>(param.desc.elems());
          EXPECT_EQ(with_copy > 0, compute == DType::kBF16);
          const StepPlan plan = plan_step(step, find_backend("cpu"), {});
          size_t kept = 0;
          for (const Category c : {Category::kParameters, Category::kGradients, Category::kOptimizer})
            kept += plan.layout->bytes(c);
          const double share = static_cast<double>(kept) / formula(stage, averages, with_copy, plain);
          EXPECT_LE(share, 1.02) << "ZeRO " << stage << " rank " << rank << " " << to_string(compute)
                                 << averages;
          EXPECT_GE(share, 0.98) << "ZeRO " << stage << " rank " << rank << " " << to_string(compute)
                                 << averages;
        }
}

// With adapters most parameters are frozen: ZeRO 3 shares these out too.
TEST(CollectiveCounts, Zero3SharesOutFrozenParameters) {
  StepConfig step = step_of({4, 1, 1}, 3);
  widen(step);
  step.lora = {.rank = 4, .alpha = 8};
  train_parameters(step);
  double all = 0;
  for (const ParamSpec& spec : step_params(step.model, step.lora))
    all += 4 * static_cast<double>(spec.shape.elems());
  for (int rank = 0; rank < 4; ++rank) {
    step.distribution.mesh.rank = rank;
    const StepPlan plan = plan_step(step, find_backend("cpu"), {});
    EXPECT_LE(static_cast<double>(plan.layout->bytes(Category::kParameters)), 1.02 * all / 4) << rank;
  }
}

}  // namespace
}  // namespace vitrail
