// A fused node for which the backend has no kernel runs member by member, in scratch of the node's own.
#include <gtest/gtest.h>

#include "backend/cpu/kernels.h"
#include "base/checked.h"
#include "graph/builder.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/linear.h"
#include "runtime/executor.h"
#include "runtime/transfer.h"

namespace vitrail {
namespace {

constexpr int64_t kGemmRows = 7, kInputs = 40, kOutputs = 50;

// tanh(x w^T), in one node or in two.
Program gemm_and_tanh(bool fused) {
  Builder b;
  const ValueId x = b.input("x", {DType::kF32, {{'B', kGemmRows}, {'D', kInputs}}});
  const ValueId w = b.input("w", {DType::kF32, {{'F', kOutputs}, {'D', kInputs}}});
  const auto linear = std::make_shared<LinearOp>();
  const auto tanh = std::make_shared<TanhOp>();
  if (fused) {
    const std::vector<FusedOp::Member> members = {{linear, {0, 1}}, {tanh, {made_by(0)}}};
    b.output("y", b.add<FusedOp>({x, w}, "both", members));
  } else {
    b.output("y", b.add(tanh, {b.add(linear, {x, w}, "product")}, "tanh"));
  }
  return b.finish();
}

std::vector<float> result_of(const ExecutionPlan& plan) {
  RankContext rank(plan.device);
  const PersistentStore nothing(plan, rank);
  Executor executor(plan, nothing, rank);
  for (const char* name : {"x", "w"}) {
    const TensorView input = executor.input(name);
    std::vector<float> values(static_cast<size_t>(input.desc().elems()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = 0.01f * static_cast<float>(i * 7 % 23) - 0.1f;
    write_floats(rank, input, values);
  }
  executor.run();
  std::vector<float> values(static_cast<size_t>(kGemmRows * kOutputs));
  read_floats(rank, executor.output("y"), values);
  return values;
}

TEST(FusedMembers, HaveScratchBesideTheirResults) {
  const auto planned = [](bool fused) {
    return plan_execution(gemm_and_tanh(fused), find_backend("cpu"), cpu_device(2), {.pack = false});
  };
  const ExecutionPlan plan = planned(true);
  ASSERT_EQ(plan.choices.size(), 1u);
  const NodeChoice& choice = plan.choices[0];
  ASSERT_TRUE(choice.by_members);
  ASSERT_EQ(choice.launches.size(), 2u);
  ASSERT_GT(choice.launches[0].prepared.scratch_bytes, choice.launches[1].prepared.scratch_bytes)
      << "the GEMM packs its weight";
  EXPECT_EQ(choice.members_bytes, round_up(size_t{kGemmRows * kOutputs * 4}, Buffer::kAlignment));
  EXPECT_EQ(choice.scratch_bytes, choice.members_bytes + choice.launches[0].prepared.scratch_bytes);
  EXPECT_EQ(result_of(plan), result_of(planned(false)));
}

}  // namespace
}  // namespace vitrail
