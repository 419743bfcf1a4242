// Whole runs through the stages of a pipeline: losses, evaluations, checkpoints that other meshes go on from,
// the memory that schedules keep, and what is refused.
#include <gtest/gtest.h>

#include "backend/cpu/kernels.h"
#include "mesh_run.h"
#include "ranks/shared_run.h"
#include "train/run_setup.h"

namespace vitrail::testing {
namespace {

TrainConfig deep_config(int64_t steps, int64_t accumulation) {
  TrainConfig config = shared_config(steps);
  set_model(config, "depth", [](VitConfig& m) { m.depth = 4; });
  config.train.accumulation = accumulation;
  return config;
}

TEST(PipelineRanks, LossesAndEvaluationsAreThoseOfOneRank) {
  const WorkFolder folder;
  TrainConfig config = deep_config(4, 4);
  const Ran one = train(config, folder / "one");
  for (const PipelineSchedule schedule :
       {PipelineSchedule::kGpipe, PipelineSchedule::k1F1B, PipelineSchedule::kInterleaved}) {
    SCOPED_TRACE(enum_name(schedule));
    config.mesh.pp = schedule == PipelineSchedule::kInterleaved ? 2 : 4;
    config.mesh.virtual_stages = schedule == PipelineSchedule::kInterleaved ? 2 : 1;
    config.mesh.schedule = schedule;
    const Ran many = train(config, folder / enum_name(schedule), {.ranks = static_cast<int>(config.mesh.pp)});
    expect_same_run(many, one);
    EXPECT_TRUE(many.outcome.finished);
  }
}

// Gradients are added up in one order: the stages of f32 give the bits of one rank.
TEST(PipelineRanks, TheModelIsTheOneOfOneRank) {
  const WorkFolder folder;
  TrainConfig config = deep_config(3, 4);
  config.optim.clip_norm = 0;  // the norm is summed over stages in another order
  train(config, folder / "one");
  config.mesh.pp = 4;
  train(config, folder / "many", {.ranks = 4});
  const Tensors one = state_of(folder / "one"), many = state_of(folder / "many");
  ASSERT_EQ(one.size(), many.size());
  for (const auto& [name, values] : one) EXPECT_EQ(values, many.at(name)) << name;
}

TEST(PipelineRanks, GoesOnAsDataAndTensorParallel) {
  const WorkFolder folder;
  const TrainConfig config = deep_config(6, 2);
  const Ran whole = train(config, folder / "whole");
  struct Leg {
    int64_t until, dp, tp, pp;
  };
  std::vector<double> losses;
  ResumeMode resume = ResumeMode::kFresh;
  for (const Leg& leg : {Leg{1, 1, 1, 4}, Leg{3, 4, 1, 1}, Leg{0, 1, 2, 2}}) {
    TrainConfig now = config;
    now.mesh.dp = leg.dp, now.mesh.tp = leg.tp, now.mesh.pp = leg.pp;
    const Ran part = train(now, folder / "parts", {.resume = resume, .stop_after = leg.until, .ranks = 4});
    for (const double loss : part.losses()) losses.push_back(loss);
    resume = ResumeMode::kStrict;
  }
  expect_near(losses, whole.losses(), 1e-5);
}

TEST(PipelineRanks, LowPrecisionFollowsOneRank) {
  const WorkFolder folder;
  TrainConfig config = deep_config(3, 4);
  config.train.dtype = ComputeType::kBF16;
  const Ran one = train(config, folder / "one");
  config.mesh.pp = 2;
  for (const int64_t zero : {0, 1}) {
    config.mesh.zero = zero;
    expect_near(train(config, folder / std::to_string(zero), {.ranks = 4}).losses(), one.losses(), 2e-3);
  }
}

StepPlan stage_plan(PipelineSchedule schedule, int stages, int stage, int64_t micros) {
  StepConfig step = usual_step(DType::kF32);
  step.model.depth = 12;
  step.micro_batch = 4;
  train_parameters(step);
  step.stages.schedule = schedule, step.stages.micros = micros;
  step.distribution.mesh = {{1, 1, 1, stages}, stage};
  return plan_step(step, cpu_backend(), cpu_device(1));
}

// What a stage keeps of micro-batches in flight: the bytes that forward leaves for backward.
size_t saved_bytes(const StepPlan& plan) {
  return plan.micro.memory.alive[static_cast<size_t>(Category::kSaved)];
}

TEST(PipelineRanks, OneForwardOneBackwardKeepsAsManyMicroBatchesAsStages) {
  constexpr int kStages = 4;
  for (int stage = 0; stage < kStages; ++stage) {
    SCOPED_TRACE(stage);
    const auto transient = [&](PipelineSchedule schedule, int64_t micros) {
      return stage_plan(schedule, kStages, stage, micros).micro.memory.lower_bound_bytes;
    };
    // More micro-batches than stages cost nothing more; with GPipe each costs.
    EXPECT_EQ(transient(PipelineSchedule::k1F1B, 8), transient(PipelineSchedule::k1F1B, 16));
    const size_t eight = saved_bytes(stage_plan(PipelineSchedule::kGpipe, kStages, stage, 8)),
                 sixteen = saved_bytes(stage_plan(PipelineSchedule::kGpipe, kStages, stage, 16));
    EXPECT_GT(sixteen, eight * 19 / 10);
    const size_t one = (sixteen - eight) / 8;
    EXPECT_LE(saved_bytes(stage_plan(PipelineSchedule::k1F1B, kStages, stage, 16)),
              one * static_cast<size_t>(kStages - stage) + one / 10);
  }
}

TEST(PipelineRanks, AStageHoldsItsBlocksAlone) {
  std::set<std::string> all;
  for (int stage = 0; stage < 3; ++stage) {
    const StepPlan plan = stage_plan(PipelineSchedule::k1F1B, 3, stage, 4);
    for (const PersistentValue& value : plan.layout->values()) {
      if (value.kind == ValueKind::kParameter) {
        EXPECT_TRUE(all.insert(value.name).second) << value.name;
      }
      for (int block = 0; block < 12; ++block)
        if (value.name.find(strf("blocks.%d.", block)) != std::string::npos) {
          EXPECT_EQ(block / 4, stage) << value.name;
        }
    }
  }
  EXPECT_TRUE(all.contains("head.weight") && all.contains("pos_embed"));
}

struct Refusal {
  const char* words;
  void (*change)(TrainConfig&);
  const char* remedy = "";
};

TEST(PipelineRanks, RefusesWhatDoesNotFit) {
  const Refusal refusals[] = {
      {"8 stages (mesh.pp x mesh.virtual_stages) for 4 blocks", [](TrainConfig& c) { c.mesh.pp = 8; },
       "mesh.pp=4 with mesh.virtual_stages=1"},
      {"mesh.schedule=interleaved several", [](TrainConfig& c) { c.mesh.pp = c.mesh.virtual_stages = 2; }},
      {"mesh.pp is 1", [](TrainConfig& c) { c.mesh.stages = {"blocks.1"}; }},
      {"mesh.stages names 2 blocks; expected 1",
       [](TrainConfig& c) {
         c.mesh.pp = 2, c.mesh.stages = {"blocks.1", "blocks.2"};
       }},
      {"mesh.stages names \"encoder\"", [](TrainConfig& c) { c.mesh.pp = 2, c.mesh.stages = {"encoder"}; },
       "mesh.stages=blocks.2:"},
      {"mesh.zero is 2", [](TrainConfig& c) { c.mesh.pp = 2, c.mesh.zero = 2; }},
      {"a teacher does not run",
       [](TrainConfig& c) { c.mesh.pp = 2, c.distill.kind = DistillKind::kSoft, c.distill.teacher = "x"; }},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.words);
    TrainConfig config = deep_config(2, 4);
    refusal.change(config);
    const auto ranks = static_cast<int>(config.mesh.pp);
    try {
      set_up(config, cpu_device(1), {0, ranks, ranks});
      FAIL() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
      EXPECT_NE(std::string(error.what()).find(refusal.words), std::string::npos) << error.what();
      EXPECT_NE(error.hint().find(refusal.remedy), std::string::npos) << error.what();
    }
  }
}

TEST(PipelineRanks, EveryVirtualStageHasBlocksOfItsOwn) {
  MeshConfig mesh;
  mesh.pp = mesh.virtual_stages = 2, mesh.schedule = PipelineSchedule::kInterleaved;
  mesh.stages = {"blocks.1,blocks.2,blocks.3"};
  EXPECT_EQ(stages_of(mesh, 4, 4).begins, (std::vector<int>{1, 2, 3}));
  mesh.stages.clear();
  EXPECT_NO_THROW(stages_of(mesh, 4, 4));
  EXPECT_THROW(stages_of(mesh, 4, 3), Error) << "4 stages of 3 blocks";
}

TEST(PipelineRanks, FewMicroBatchesAreToldWithTheBubble) {
  TrainConfig config = deep_config(2, 2);
  config.mesh.pp = 4;
  const RunSetup setup = set_up(config, cpu_device(1), {0, 4, 4});
  EXPECT_TRUE(std::any_of(setup.notes.begin(), setup.notes.end(), [](const std::string& note) {
    return note.find("4 stages has 2 micro-batches") != std::string::npos &&
           note.find("60 %") != std::string::npos;
  }));
}

}  // namespace
}  // namespace vitrail::testing
