// Declarations shared by the two files of `plan`: inference in cmd_plan.cpp, training in cmd_plan_train.cpp.
#pragma once

#include <string>

#include "cli/console.h"
#include "cli/options.h"
#include "measure/fit_options.h"
#include "plan/target.h"

namespace vitrail::cli {

template <typename Plan>
void print_plan(const Plan& plan, Console& console) {
  console.print_json(to_json(plan));
  console.print(to_text(plan));
}

// Returns the target that --target, --device, --threads and --isa name.
PlanTarget read_plan_target(const Options& options);

// Returns what the command line itself speaks of; refers to the options.
IsGiven given_by_command(const Options& options);

void run_train_plan(const Options& options, Console& console);

}  // namespace vitrail::cli
