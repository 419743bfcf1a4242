// The sums of kernel choice: scratch of members, packed parameters, declared roundings.
#include "plan/kernel_choice.h"

#include <gtest/gtest.h>

#include "backend/cuda/kernels.h"
#include "ops/attention.h"
#include "plan/node_times.h"

#include "backend/cpu/kernels.h"
#include "backend/ref/kernels.h"
#include "graph/builder.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/linear.h"

namespace vitrail {
namespace {

const Dim kRows('B', 3), kIn('D', 37), kOut('F', 5);

// A GEMM and an op that no kernel fuses with it, as one node: [3 5] f32, which is 60 bytes, lies between
// them.
Program joined_by_hand() {
  Builder b;
  const ValueId x = b.input("x", {DType::kF32, {kRows, kIn}});
  const ValueId w = b.parameter("w", {DType::kF32, {kOut, kIn}});
  const OpPtr op =
      std::make_shared<FusedOp>(std::vector<FusedOp::Member>{{std::make_shared<LinearOp>(), {0, 1}},
                                                             {std::make_shared<TanhOp>(), {made_by(0)}},
                                                             {std::make_shared<TanhOp>(), {made_by(1)}}});
  b.output("y", b.add(op, {x, w}, "y"));
  return b.finish();
}

TEST(KernelChoice, MembersShareTheScratchOfTheWidest) {
  for (const char* backend : {"cpu", "ref"}) {
    const ExecutionPlan plan = plan_execution(joined_by_hand(), find_backend(backend), cpu_device(1));
    const NodeChoice& choice = plan.choices[0];
    ASSERT_TRUE(choice.by_members) << backend;
    ASSERT_EQ(choice.launches.size(), 3u);
    EXPECT_EQ(choice.members_bytes, 2 * 64u) << "two results between three members, in whole lines";
    size_t widest = 0;
    for (const Launch& launch : choice.launches) widest = std::max(widest, launch.prepared.scratch_bytes);
    EXPECT_EQ(choice.scratch_bytes, 2 * 64u + widest);
    EXPECT_EQ(plan.memory.scratch[0].bytes, choice.scratch_bytes);
  }
}

TEST(KernelChoice, TheGemmIsTheMemberThatNeedsScratch) {
  const ExecutionPlan plan = plan_execution(joined_by_hand(), cpu_backend(), cpu_device(1), {.pack = false});
  EXPECT_GT(plan.choices[0].launches[0].prepared.scratch_bytes,
            plan.choices[0].launches[2].prepared.scratch_bytes);
}

// Two kernels might require two storage orders of it.
TEST(KernelChoice, AParameterThatTwoNodesReadStaysPlain) {
  for (const bool shared : {false, true}) {
    Builder b;
    const ValueId x = b.input("x", {DType::kF32, {{'B', 64}, {'D', 64}}});
    const TensorDesc weight{DType::kF32, {{'F', 64}, {'D', 64}}};
    const ValueId w = b.parameter("w", weight);
    b.output("one", b.add<LinearOp>({x, w}, "one"));
    const ValueId other = shared ? w : b.parameter("other", weight);
    b.output("two", b.add<LinearOp>({x, other}, "two"));
    const ExecutionPlan plan = plan_execution(b.finish(), cpu_backend(), cpu_device(1));
    EXPECT_EQ(plan.program.values[w].desc.packing.empty(), shared);
  }
}

TEST(KernelChoice, OnlyMembersAreRoundedWhereNothingElseIsDeclared) {
  const ExecutionPlan apart = plan_execution(joined_by_hand(), ref_backend(), cpu_device(1));
  const Rounding rounding = rounding_of(apart, 0);
  EXPECT_TRUE(rounding.members);
  EXPECT_FALSE(rounding.gemm || rounding.weights || rounding.residual || rounding.bias || rounding.gelu);
}

TEST(KernelChoice, OfAnOpByItselfItsKernelTells) {
  Builder b;
  const ValueId qkv = b.input("qkv", {DType::kBF16, {{'B', 2}, {'N', 50}, {'T', 3}, {'H', 2}, {'E', 16}}});
  const ValueId tanh = b.add<TanhOp>({b.add<AttentionOp>({qkv}, "attention")}, "tanh");
  b.output("y", tanh);
  const ExecutionPlan plan = plan_execution(b.finish(), cuda_backend(), planned_cuda_device("GPU", 90, 132));
  EXPECT_TRUE(rounding_of(plan, 0).weights);
  EXPECT_FALSE(rounding_of(plan, 1).weights);
  EXPECT_FALSE(rounding_of(plan, 0).members || rounding_of(plan, 1).members);
}

// The first member of a node that runs member by member rounds its softmax weights; the last rounds nothing.
TEST(KernelChoice, WhatAnyMemberRoundsIsRounded) {
  for (const bool first : {true, false}) {
    Builder b;
    const ValueId qkv = b.input("qkv", {DType::kBF16, {{'B', 2}, {'N', 50}, {'T', 3}, {'H', 2}, {'E', 16}}});
    std::vector<FusedOp::Member> members = {{std::make_shared<AttentionOp>(), {0}},
                                            {std::make_shared<TanhOp>(), {made_by(0)}}};
    if (!first)
      members = {{std::make_shared<TanhOp>(), {0}}, {std::make_shared<AttentionOp>(), {made_by(0)}}};
    b.output("y", b.add(std::make_shared<FusedOp>(members), {qkv}, "y"));
    const ExecutionPlan plan =
        plan_execution(b.finish(), cuda_backend(), planned_cuda_device("GPU", 90, 132));
    ASSERT_TRUE(plan.choices[0].by_members);
    EXPECT_TRUE(rounding_of(plan, 0).weights) << first;
    EXPECT_EQ(kernel_name(plan.choices[0]), first ? "short_heads+map" : "map+short_heads");
  }
}

}  // namespace
}  // namespace vitrail
