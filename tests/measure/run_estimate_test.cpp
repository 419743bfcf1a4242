// The time of an update: one definition, whether the public API or the program asks, with and without a
// pipeline.
#include "measure/run_estimate.h"

#include <gtest/gtest.h>

#include "api/settings.h"
#include "backend/registry.h"
#include "plan/node_times.h"
#include "source_root.h"
#include "vitrail/plan.h"

namespace vitrail {
namespace {

const std::string kDevice = VT_SOURCE_DIR "/configs/devices/xeon-amx-16.json";

std::string config_on(const std::string& mesh) {
  return R"({"model": {"image_height": 16, "image_width": 16, "patch": 8, "width": 32, "depth": 4, "heads": 2,
                       "mlp": 64},
             "data": {"train": "synthetic:3x16x16x4x64", "val": "synthetic:3x16x16x4x16"},
             "mesh": )" +
         mesh + R"(, "train": {"batch": 16, "micro_batch": 4, "steps": 8}})";
}

struct Asked {
  RunPlan plan;
  DeviceFile file;
  double estimate, api;
};

Asked ask(const std::string& mesh) {
  const PlanTarget target = file_target(read_device_file(kDevice), 0, "");
  RunPlan plan(training_config(config_on(mesh)), std::nullopt, find_backend(target.device.backend),
               target.device);
  const double estimate = estimate_run(plan, target).update_s;
  return {std::move(plan), *target.file, estimate, *plan_training(config_on(mesh), {}, kDevice).seconds};
}

TEST(UpdateSeconds, AreTheSameForTheApiAndTheProgram) {
  for (const char* mesh : {"{}", R"({"dp": 2})", R"({"pp": 2})", R"({"pp": 2, "dp": 2})"}) {
    const Asked asked = ask(mesh);
    EXPECT_GT(asked.api, 0) << mesh;
    EXPECT_DOUBLE_EQ(asked.api, asked.estimate) << mesh;
  }
}

TEST(UpdateSeconds, OfAPipelineHoldAllMicroBatchesOnceAndItsBubble) {
  const Asked asked = ask(R"({"pp": 2})");
  const StepPlan& step = asked.plan.step();
  ASSERT_TRUE(step.pipelined);
  ASSERT_EQ(asked.plan.setup().config.train.accumulation, 4);
  // Two stages wait for one of five turns each.
  EXPECT_NEAR(step.busy_share(), 4.0 / 5, 1e-12);
  const double runs = run_seconds(step.micro, asked.file) + run_seconds(step.update, asked.file);
  EXPECT_NEAR(asked.api, runs * 5 / 4, 1e-9 * runs);
}

TEST(UpdateSeconds, WithoutAPipelineCountEveryMicroBatch) {
  const Asked asked = ask("{}");
  const StepPlan& step = asked.plan.step();
  EXPECT_EQ(step.busy_share(), 1);
  EXPECT_DOUBLE_EQ(asked.api, 4 * run_seconds(step.micro, asked.file) + run_seconds(step.update, asked.file));
}

}  // namespace
}  // namespace vitrail
