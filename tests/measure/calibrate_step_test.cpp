// Short runs as points of a device file's curves: each node has one, and together they take what the run
// took.
#include <gtest/gtest.h>

#include <set>

#include "api/engine.h"
#include "cuda_test.h"
#include "measure/calibrate_steps.h"
#include "measure/device_check.h"
#include "models/zoo.h"
#include "plan/devices.h"
#include "plan/node_times.h"

namespace vitrail {
namespace {

const CalibrationStep kStep{"vit_tiny_patch16_224", 32, 2, 3, false, "f32"};

double point_of(const CostCurves& curves, const CostCurve& where, const NodeSize& size) {
  for (const CostCurve& curve : curves.curves())
    if (!(curve < where) && !(where < curve))
      for (const CostPoint& point : curve.points)
        if (point.size == size) return point.seconds;
  ADD_FAILURE() << "no point of " << where.kind;
  return 0;
}

TEST(CalibrationStep, NodesAddUpToTheRun) {
  const DeviceInfo cpu = device_here("cpu", 1, "");
  CostCurves curves;
  const StepMeasurement measured = measure_step(kStep, cpu, 0.02, &curves);  // of two runs medians add up
  EXPECT_EQ(measured.predicted, 0) << "by no file";
  VitConfig config = find_architecture(kStep.arch).config;
  config.image_height = config.image_width = kStep.image;
  config.depth = kStep.depth;
  const ExecutionPlan plan = plan_inference(config, {.batch = kStep.batch}, cpu);
  double sum = point_of(curves, curve_of_run(plan), size_of_run(plan));
  EXPECT_GE(sum, 1e-6) << "the copy of the images";
  for (size_t i = 0; i < plan.program.nodes.size(); ++i)
    if (plan.program.nodes[i].op->is_launched()) sum += point_of(curves, curve_of(plan, i), size_of(plan, i));
  // Medians of nodes need not add up to that of the run, and are scaled to it: nothing but rounding is left.
  EXPECT_NEAR(sum, measured.seconds, 1e-9 * measured.seconds + 1e-9);
}

class CudaCalibrationStep : public CudaTest {};

// Nodes that nobody timed would all get the same share of the run.
TEST_F(CudaCalibrationStep, NodesHaveTimesOfTheirOwn) {
  const DeviceInfo gpu = cuda_device();
  for (const bool training : {false, true}) {
    CalibrationStep step = kStep;
    step.image = 224, step.batch = 64, step.training = training;
    CostCurves curves;
    const double whole = measure_step(step, gpu, 0.05, &curves).seconds;
    std::set<double> times;
    for (const CostCurve& curve : curves.curves())
      for (const CostPoint& point : curve.points) times.insert(point.seconds);
    EXPECT_GT(times.size(), 5u) << step.text();
    EXPECT_LT(*times.rbegin(), whole) << step.text();
    EXPECT_GT(*times.rbegin(), 2 * *times.begin()) << "a GEMM against a sum of rows: " << step.text();
  }
}

// The nodes of a step are of its type, whatever it does.
TEST(CalibrationStep, ComputesInItsType) {
  const DeviceInfo cpu = device_here("cpu", 1, "");
  for (const bool training : {false, true})
    for (const char* dtype : {"f32", "bf16"}) {
      CalibrationStep step = kStep;
      step.training = training, step.dtype = dtype, step.batch = 1;
      CostCurves curves;
      measure_step(step, cpu, 0, &curves);
      std::set<std::string> of_gemms;
      for (const CostCurve& curve : curves.curves())
        if (curve.kind == "run") of_gemms.insert(curve.type);
      EXPECT_EQ(of_gemms, std::set<std::string>{dtype}) << step.text();
    }
}

// The images of every step are whole patches of its model, in both lists, and no step is there twice.
TEST(CalibrationStep, EveryOneCanBeRun) {
  DeviceInfo gpu;
  gpu.shares_host_memory = false;
  for (const DeviceInfo& device : {device_here("cpu", 1, ""), gpu}) {
    std::set<std::string> texts;
    for (const CalibrationStep& step : calibration_steps(device, {"f32", "int8"}, false)) {
      VitConfig config = find_architecture(step.arch).config;
      config.image_height = config.image_width = step.image;
      config.depth = step.depth;
      EXPECT_NO_THROW(validate(config)) << step.text();
      EXPECT_TRUE(patches_cover(config)) << step.text();
      EXPECT_GE(step.depth, 2) << "the last block alone is no block: " << step.text();
      EXPECT_FALSE(step.training && step.dtype == "int8") << step.text();
      EXPECT_TRUE(texts.insert(step.text()).second) << step.text();
    }
  }
}

// What a run takes beside its nodes is not shared out: the classifier of a short network of large images
// stays as small as any other. Another program may have the processor meanwhile, so the least of several
// counts.
TEST(CalibrationStep, LargeImagesDoNotMakeSmallNodesLonger) {
  const DeviceInfo cpu = device_here("cpu", 1, "");
  double head[2] = {1e9, 1e9};
  const int64_t images[] = {32, 512};
  for (size_t i = 0; i < 10; ++i) {
    CalibrationStep step = kStep;
    step.image = images[i % 2], step.batch = 1;
    CostCurves curves;
    measure_step(step, cpu, 0, &curves);
    VitConfig config = find_architecture(step.arch).config;
    config.image_height = config.image_width = step.image;
    config.depth = step.depth;
    const ExecutionPlan plan = plan_inference(config, {.batch = step.batch}, cpu);
    const size_t last = plan.program.nodes.size() - 1;
    head[i % 2] = std::min(head[i % 2], point_of(curves, curve_of(plan, last), size_of(plan, last)));
  }
  EXPECT_LT(head[1], 10 * head[0]);
}

// With the curves of the run itself a file is not far off.
TEST(CalibrationStep, AFilePredictsWhatItWasMadeOf) {
  const DeviceInfo cpu = device_here("cpu", 1, "");
  DeviceFile file;
  file.name = "here", file.memory_bytes = 1 << 30;
  file.spec = CpuSpec{.isa = isa_name(cpu.isa),
                      .cores = 1,
                      .rates = {{.threads = 1, .fma_gflops = 50, .copy_gbps = 10}},
                      .gemms = {{.m = 64, .n = 64, .k = 64, .threads = 1, .gflops = 25}}};
  CalibrationStep training = kStep;
  training.training = true;
  const double seconds = measure_step(training, cpu, 0, &file.curves).seconds;
  const double predicted = measure_step(training, cpu, 0, nullptr, &file).predicted;
  EXPECT_GT(predicted, 0.5 * seconds);
  EXPECT_LT(predicted, 2 * seconds);
}

}  // namespace
}  // namespace vitrail
