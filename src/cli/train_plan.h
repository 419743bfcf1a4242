// Options of `plan` and `bench train` that describe a training run: flags, settings, and the plan made from
// them.
#pragma once

#include <vector>

#include "cli/options.h"
#include "launch/rank_session.h"
#include "measure/rank_steps.h"
#include "train/deepspeed/deepspeed.h"
#include "train/run_plan.h"

namespace vitrail::cli {

// Flags of `plan` that stand for settings of a training config: --optimizer, --recompute.
std::vector<OptionSpec> train_plan_options();

// Every setting of a training config that the command does not declare yet.
void add_train_settings(CommandSpec& command);

// Returns whether the options request training: --train, or any setting that only a training config has.
bool asks_for_training(const Options& options);

// Holds what the options ask for, for the ranks that plan it themselves.
struct PlannedRun {
  TrainConfig config;
  std::optional<int64_t> classes;
  DeepSpeedReading deepspeed = {};  // where --deepspeed is given
};
PlannedRun run_to_plan(const Options& options);
RunPlan planned_run(const PlannedRun& run, const Options& options, const DeviceInfo& device);
RunPlan planned_run(const Options& options, const DeviceInfo& device);
// Returns what the ranks of a world are to measure of it.
RankStepsRequest steps_request(const Options& options, const PlannedRun& run, const World& world,
                               RankSession& session);

}  // namespace vitrail::cli
