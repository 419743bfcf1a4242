// `plan --dump-after` of training: each name prints the program that runs, all that run have a name, and a
// run without one says so.
#include "measure/step_programs.h"

#include <gtest/gtest.h>

#include <set>

#include "api/settings.h"
#include "backend/registry.h"
#include "passes/pipeline.h"
#include "plan/target.h"
#include "source_root.h"
#include "train/teacher.h"

namespace vitrail {
namespace {

const std::string kTaught = VT_SOURCE_DIR "/tests/golden/models/timm_hub";

RunPlan plan_of_programs(const std::string& more, const char* device = "h200") {
  const DeviceInfo info =
      file_target(read_device_file(std::string(VT_SOURCE_DIR "/configs/devices/") + device + ".json"), 0, "")
          .device;
  const std::string config =
      R"({"model": {"image_height": 16, "image_width": 16, "patch": 8, "width": 32, "depth": 4, "heads": 2,
                    "mlp": 64},
          "data": {"train": "synthetic:3x16x16x4x64", "val": "synthetic:3x16x16x4x16"},
          "train": {"batch": 16, "micro_batch": 4, "steps": 8, "dtype": "bf16"})" +
      more + "}";
  return {training_config(config), std::nullopt, find_backend(info.backend), info};
}

// A run whose student and teacher are one small model; the data's classes are named after its.
RunPlan taught_plan() {
  const DeviceInfo info =
      file_target(read_device_file(VT_SOURCE_DIR "/configs/devices/xeon-amx-16.json"), 0, "").device;
  TrainConfig config = training_config(
      R"({"data": {"train": "synthetic:3x16x16x5x64"}, "train": {"batch": 16, "micro_batch": 4, "eval_batch": 8, "steps": 8}})");
  config.model.init = config.distill.teacher = kTaught;
  config.distill.kind = DistillKind::kSoft;
  config.data.class_names = {"anemone", "bell tower", "crab", "dune", "elm"};
  return {config, std::nullopt, find_backend(info.backend), info};
}

std::string buckets(const StepPlan& step, std::optional<ExecutionPlan> OffloadPlan::Bucket::*program) {
  std::string text;
  const auto& all = step.offload->buckets;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].*program)
      text += "bucket " + std::to_string(i + 1) + " of " + std::to_string(all.size()) + "\n" +
              to_string((all[i].*program)->program);
  return text;
}

// Programs of the step that no name prints.
std::vector<std::string> unprinted(const RunPlan& plan) {
  std::string all;
  for (const std::string& name : dumps_of_training()) all += dump_program(plan, name);
  std::vector<std::string> missing;
  std::vector<const ExecutionPlan*> programs = plan.step().programs();
  if (plan.step().offload)
    for (const ExecutionPlan* program : plan.step().offload->host_programs()) programs.push_back(program);
  for (const ExecutionPlan* program : programs)
    if (all.find(to_string(program->program)) == all.npos) missing.push_back(to_string(program->program));
  return missing;
}

const std::set<std::string> kOffloadNames = {"offload_update", "offload_refresh", "offload_average",
                                             "offload_gather"};

TEST(StepPrograms, ANameForEach) {
  const std::vector<std::string> names = dumps_of_training();
  const auto passes = micro_passes();
  EXPECT_EQ(std::vector<std::string>(names.begin() + static_cast<long>(passes.size()), names.end()),
            (std::vector<std::string>{"last_micro", "update", "refresh", "evaluation", "average_evaluation",
                                      "teacher", "offload_update", "offload_refresh", "offload_average",
                                      "offload_gather"}));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size()) << "a pass has a name";
  for (const char* more : {"", R"(, "optim": {"ema_decay": 0.9})", R"(, "mesh": {"dp": 2})",
                           R"(, "mesh": {"dp": 2, "zero": 3, "offload": "parameters"})",
                           R"(, "mesh": {"offload": "optimizer"}, "optim": {"ema_decay": 0.9})"})
    EXPECT_EQ(unprinted(plan_of_programs(more)), std::vector<std::string>()) << more;
}

TEST(StepPrograms, ArePrintedAsTheyRun) {
  const RunPlan plan = plan_of_programs(R"(, "optim": {"ema_decay": 0.9}, "mesh": {"dp": 2})");
  const StepPlan& step = plan.step();
  EXPECT_EQ(dump_program(plan, "record").find("linear_dw"), std::string::npos);
  EXPECT_EQ(dump_program(plan, std::string(micro_passes().back())), to_string(step.micro.program));
  EXPECT_EQ(dump_program(plan, "last_micro"), to_string(step.last_micro->program));
  EXPECT_EQ(dump_program(plan, "update"), to_string(step.update.program));
  EXPECT_EQ(dump_program(plan, "refresh"), to_string(step.refresh->program));
  EXPECT_EQ(dump_program(plan, "evaluation"), to_string(step.eval.program));
  EXPECT_EQ(dump_program(plan, "average_evaluation"), to_string(step.eval_average->program));
  EXPECT_EQ(dump_program(plan, "nothing"), "");
}

TEST(StepPrograms, OfAnOffloadByItsBuckets) {
  const RunPlan plan = plan_of_programs(
      R"(, "optim": {"ema_decay": 0.9}, "mesh": {"dp": 2, "zero": 1, "offload": "optimizer"})");
  const StepPlan& step = plan.step();
  ASSERT_GT(step.offload->buckets.size(), 1u);
  EXPECT_EQ(dump_program(plan, "offload_update"), buckets(step, &OffloadPlan::Bucket::update));
  EXPECT_EQ(dump_program(plan, "offload_refresh"), buckets(step, &OffloadPlan::Bucket::refresh));
  EXPECT_EQ(dump_program(plan, "offload_average"), buckets(step, &OffloadPlan::Bucket::average));
  EXPECT_EQ(dump_program(plan, "offload_gather"), to_string(step.offload->gather->program));
  EXPECT_EQ(dump_program(plan, "refresh"), "none: the host fills the copies (offload_refresh)\n");
  EXPECT_EQ(dump_program(plan, "average_evaluation"),
            "none: the host fills the copies with the averages (offload_average), and evaluation runs\n");
  const RunPlan alone = plan_of_programs(R"(, "mesh": {"offload": "optimizer"})");
  EXPECT_EQ(dump_program(alone, "offload_gather"), "none: ranks read no copies that others have updated\n");
  EXPECT_EQ(dump_program(alone, "offload_average"),
            "none: optim.ema_decay is 0, so that no weights are averaged\n");
}

TEST(StepPrograms, OfTheTeacher) {
  const RunPlan plan = taught_plan();
  const std::string text = dump_program(plan, "teacher");
  EXPECT_EQ(text, to_string(plan.teacher(4)->plan().program));
  EXPECT_EQ(text.find("input images f32[B4 "), 0u) << text;
  EXPECT_NE(text, dump_program(plan, "evaluation"));
}

TEST(StepPrograms, ARunWithoutOneSaysSo) {
  const RunPlan plan = plan_of_programs(R"(, "optim": {"ema_decay": 0})", "xeon-amx-16");
  EXPECT_EQ(dump_program(plan, "last_micro"), to_string(plan.step().micro.program));
  EXPECT_EQ(dump_program(plan, "average_evaluation"),
            "none: optim.ema_decay is 0, so that no weights are averaged\n");
  EXPECT_EQ(dump_program(plan, "teacher"), "none: distill.kind is none\n");
  for (const std::string& name : kOffloadNames)
    EXPECT_EQ(dump_program(plan, name),
              "none: mesh.offload is none, so that the device updates all by itself (update)\n");
  EXPECT_EQ(dump_program(taught_plan(), "refresh"),
            "none: every GEMM reads the masters: there are no copies in low precision\n");
}

}  // namespace
}  // namespace vitrail
