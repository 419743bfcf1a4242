// The seconds of a node by the curves of its own type, another's or the roofline; devices and kernels as
// text.
#include "plan/node_times.h"

#include <gtest/gtest.h>

#include "backend/cpu/kernels.h"
#include "backend/ref/kernels.h"
#include "base/error.h"
#include "graph/builder.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/linear.h"
#include "plan/devices.h"

namespace vitrail {
namespace {

ExecutionPlan planned_gemm(DType dtype) {
  Builder b;
  const ValueId x = b.input("x", {dtype, {{'B', 64}, {'D', 256}}});
  const ValueId w = b.parameter("w", {dtype, {{'F', 128}, {'D', 256}}});
  b.output("y", b.add<LinearOp>({x, w}, "y"));
  return plan_execution(b.finish(), ref_backend(), cpu_device(1));
}

DeviceFile gpu_of_two_types() {
  DeviceFile file;
  file.kind = "cuda", file.name = "G", file.source = "here";
  file.memory_bytes = uint64_t{80} << 30, file.foreign_bytes = uint64_t{1} << 30;
  file.spec =
      GpuSpec{.compute = 90, .processors = 100, .copy_gbps = 3000, .tflops = {{"f32", 0.5}, {"bf16", 2}}};
  return file;
}

void add_curve(DeviceFile& file, const ExecutionPlan& plan, const std::string& type, double seconds) {
  CostCurve curve = curve_of(plan, 0);
  curve.type = type;
  file.curves.add(curve, {size_of(plan, 0), seconds});
}

TEST(NodeSeconds, ATypeWithCurvesGoesByItsOwnAndF16WithoutThemByThoseOfBf16) {
  const ExecutionPlan plan = planned_gemm(DType::kF16);
  DeviceFile file = gpu_of_two_types();
  add_curve(file, plan, "bf16", 5e-3);
  EXPECT_NEAR(node_seconds(plan, file)[0], 5e-3, 1e-6);
  add_curve(file, plan, "f16", 1e-3);
  EXPECT_NEAR(node_seconds(plan, file)[0], 1e-3, 1e-6);
}

// 2 * 64 * 128 * 256 FLOPs; memory is quicker by far.
TEST(NodeSeconds, WithoutCurvesATypeOfUnknownRateTakesThatOfF32) {
  const double flops = 2.0 * 64 * 128 * 256;
  const DeviceFile file = gpu_of_two_types();
  EXPECT_DOUBLE_EQ(run_seconds(planned_gemm(DType::kF32), file), flops / 0.5e12);
  EXPECT_DOUBLE_EQ(run_seconds(planned_gemm(DType::kBF16), file), flops / 2e12);
  EXPECT_DOUBLE_EQ(run_seconds(planned_gemm(DType::kF16), file), flops / 0.5e12);
}

// The images of a run are copied whatever its nodes do.
TEST(NodeSeconds, WhatARunTakesBesideItsNodesCountsWithTheFirst) {
  const ExecutionPlan plan = planned_gemm(DType::kF32);
  const NodeSize size = size_of_run(plan);
  EXPECT_EQ(size.tied(), (std::array<double, 4>{0, 2 * 4 * 64 * 256, 64 * 256, 1}));
  DeviceFile file;
  file.spec = CpuSpec{.isa = "plain",
                      .cores = 1,
                      .rates = {{.threads = 1, .fma_gflops = 50, .copy_gbps = 10}},
                      .gemms = {{.m = 64, .n = 64, .k = 64, .threads = 1, .gflops = 25}}};
  file.curves.add(curve_of(plan, 0), {size_of(plan, 0), 5e-3});
  EXPECT_NEAR(run_seconds(plan, file), 5e-3, 1e-9) << "a file that knows nothing of it";
  file.curves.add(curve_of_run(plan), {size, 2e-3});
  EXPECT_NEAR(node_seconds(plan, file)[0], 7e-3, 1e-9);
}

TEST(KernelName, IsThatOfEveryMember) {
  Builder b;
  const ValueId x = b.input("x", {DType::kF32, {{'B', 3}, {'D', 37}}});
  const ValueId w = b.parameter("w", {DType::kF32, {{'F', 5}, {'D', 37}}});
  const OpPtr op = std::make_shared<FusedOp>(std::vector<FusedOp::Member>{
      {std::make_shared<LinearOp>(), {0, 1}}, {std::make_shared<TanhOp>(), {made_by(0)}}});
  b.output("y", b.add(op, {x, w}, "y"));
  const ExecutionPlan plan = plan_execution(b.finish(), ref_backend(), cpu_device(1));
  const NodeChoice& choice = plan.choices[0];
  ASSERT_EQ(choice.launches.size(), 2u);
  EXPECT_EQ(kernel_name(choice), std::string(choice.launches[0].kernel->name) + "+" +
                                     std::string(choice.launches[1].kernel->name));
}

TEST(DeviceText, SaysBackendInstructionsAndThreads) {
  ExecutionPlan plan = planned_gemm(DType::kF32);
  EXPECT_EQ(device_text(plan), "ref (plain, 1 thread)");
  plan.backend = &cpu_backend();
  plan.device = cpu_device(2);
  EXPECT_EQ(device_text(plan), "cpu (" + isa_name(plan.device.isa) + ", 2 threads)");
  plan.device = gpu_of_two_types().info(1);
  EXPECT_EQ(device_text(plan), "cuda (G)");
}

TEST(DeviceText, OfAFileHoldsEveryRate) {
  DeviceFile cpu;
  cpu.name = "desk", cpu.memory_bytes = uint64_t{16} << 30;
  cpu.spec = CpuSpec{.isa = "avx2",
                     .cores = 8,
                     .rates = {{.threads = 4, .fma_gflops = 360, .copy_gbps = 30}},
                     .gemms = {{.m = 5, .n = 6, .k = 7, .threads = 4, .gflops = 90}}};
  const std::string says = to_text(cpu), of_gpu = to_text(gpu_of_two_types());
  for (const char* piece : {"desk", "avx2", "16.0 GiB", "none: times are at best", "multiply-adds",
                            "360.0 GFLOP/s", "30.0 GB/s", "5x6x7", "90.0 GFLOP/s", "25.00 %"})
    EXPECT_NE(says.find(piece), std::string::npos) << piece << "\n" << says;
  for (const char* piece :
       {"9.0", "80.0 GiB", "1.00 GiB of the driver and its libraries", "3000 GB/s", "GEMM in", "2.0 TFLOP/s"})
    EXPECT_NE(of_gpu.find(piece), std::string::npos) << piece << "\n" << of_gpu;
}

}  // namespace
}  // namespace vitrail
