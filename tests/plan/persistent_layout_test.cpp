#include "plan/persistent_layout.h"

#include <gtest/gtest.h>

#include "backend/cpu/kernels.h"
#include "backend/ref/kernels.h"
#include "graph/builder.h"
#include "ops/bias.h"
#include "ops/persistent.h"
#include "plan/kernel_choice.h"

namespace vitrail {
namespace {

const Dim kFive('D', 5);
const TensorDesc kRow{DType::kF32, {kFive}};

Value persistent(const std::string& name, TensorDesc desc = kRow, Category category = Category::kParameters) {
  return {name, std::move(desc),
          category == Category::kParameters ? ValueKind::kParameter : ValueKind::kState, category};
}

TEST(PersistentLayout, PlacesEachNameOnceInItsCategory) {
  PersistentLayout layout;
  EXPECT_EQ(layout.place(persistent("a")).offset, 0u);
  EXPECT_EQ(layout.place(persistent("b")).offset, 64u);
  EXPECT_EQ(layout.place(persistent("m", kRow, Category::kOptimizer)).offset, 0u);
  EXPECT_EQ(layout.place(persistent("b")).offset, 64u);
  EXPECT_EQ(layout.values().size(), 3u);
  EXPECT_EQ(layout.bytes(Category::kParameters), 128u);
  EXPECT_EQ(layout.bytes(Category::kOptimizer), 64u);
  EXPECT_EQ(layout.bytes(), 192u);
  EXPECT_TRUE(layout.has("m"));
  EXPECT_FALSE(layout.has("v"));
  EXPECT_THROW(layout.at("v"), Error);
}

TEST(PersistentLayout, TheHostsBytesArePageLockedOnesToo) {
  PersistentLayout layout;
  layout.place(persistent("a"));
  layout.place(persistent("b"), Home::kHost);
  layout.place(persistent("c"), Home::kLocked);
  layout.place(persistent("d"), Home::kLocked);
  EXPECT_EQ(layout.bytes(Category::kParameters), 64u);
  EXPECT_EQ(layout.host_bytes(Category::kParameters), 192u);
  EXPECT_EQ(layout.host_bytes(), 192u);
  EXPECT_EQ(layout.host_bytes(Category::kOptimizer), 0u);
}

TEST(PersistentLayout, ANameMeansOneThing) {
  PersistentLayout layout;
  layout.place(persistent("a"));
  EXPECT_THROW(layout.place(persistent("a", {DType::kF32, {{'D', 6}}})), Error);
  EXPECT_THROW(layout.place(persistent("a", {DType::kBF16, {kFive}})), Error);
  EXPECT_THROW(layout.place(persistent("a", kRow, Category::kOptimizer)), Error);
  EXPECT_THROW(layout.place({"x", kRow, ValueKind::kInput}), Error);
  EXPECT_EQ(layout.values().size(), 1u);
}

TEST(PersistentLayout, WhatLiesInAnotherTakesNoBytesOfItsOwn) {
  PersistentLayout layout;
  layout.place(persistent("first", kRow, Category::kGradients));
  layout.place(persistent("bucket", {DType::kF32, {{'W', 32}}}, Category::kGradients));
  Value inner = persistent("grad/w", kRow, Category::kGradients);
  inner.container = "bucket";
  inner.container_offset = 16;
  const PersistentValue placed = layout.place(inner);
  EXPECT_EQ(placed.offset, 64u + 16 * sizeof(float));
  EXPECT_TRUE(placed.contained);
  EXPECT_TRUE(layout.at("bucket").is_container);
  EXPECT_FALSE(layout.at("bucket").contained);
  EXPECT_EQ(layout.bytes(), 64u + 128u);
  inner.name = "grad/past";
  inner.container_offset = 28;
  EXPECT_THROW(layout.place(inner), Error) << "5 of the last 4 elements";
  inner.container = "nowhere";
  EXPECT_THROW(layout.place(inner), Error);
  EXPECT_FALSE(layout.has("grad/past")) << "what was refused has no place";
}

// One program adds a bias, the other adds to a sum of its own and to the same bias.
Program reader(int64_t batch) {
  Builder b;
  const ValueId x = b.input("x", {DType::kF32, {{'B', batch}, kFive}});
  b.output("y", b.add<BiasOp>({x, b.parameter("bias", kRow)}, "bias"));
  return b.finish();
}
Program writer() {
  Builder b;
  const ValueId bias = b.parameter("bias", kRow), sum = b.state("sum", kRow, Category::kGradients);
  b.add_all<AccumulateOp>({sum, bias}, "sum");
  b.add_all<AccumulateOp>({bias, sum}, "bias");
  return b.finish();
}

TEST(PersistentLayout, ProgramsShareWhatTheyNameAlike) {
  const auto layout = std::make_shared<PersistentLayout>();
  const PlanOptions options{.pack = false, .layout = layout};
  const ExecutionPlan small = plan_execution(reader(1), ref_backend(), cpu_device(1), options),
                      large = plan_execution(reader(9), ref_backend(), cpu_device(1), options),
                      update = plan_execution(writer(), ref_backend(), cpu_device(1), options);
  EXPECT_EQ(layout->values().size(), 2u);
  EXPECT_EQ(layout->bytes(), 128u);
  EXPECT_EQ(update.memory.persistent_bytes, layout->bytes());
  EXPECT_EQ(small.memory.persistent.get(), large.memory.persistent.get());
  EXPECT_LT(small.memory.transient_bytes, large.memory.transient_bytes);
  EXPECT_EQ(update.memory.transient_bytes, 0u) << "it writes nothing but what persists";
}

TEST(PersistentLayout, AProgramOfItsOwnGetsALayoutOfItsOwn) {
  const ExecutionPlan a = plan_execution(reader(1), ref_backend(), cpu_device(1)),
                      b = plan_execution(reader(1), ref_backend(), cpu_device(1));
  EXPECT_NE(a.memory.persistent.get(), b.memory.persistent.get());
}

TEST(PersistentLayout, WhatNobodyReadsHasNoPlace) {
  Builder b;
  b.parameter("unused", kRow);
  b.output("y", b.add<BiasOp>({b.input("x", kRow), b.parameter("bias", kRow)}, "bias"));
  const ExecutionPlan plan = plan_execution(b.finish(), ref_backend(), cpu_device(1));
  EXPECT_FALSE(plan.memory.persistent->has("unused"));
}

}  // namespace
}  // namespace vitrail
