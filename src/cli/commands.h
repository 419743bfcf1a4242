// The commands of the program: each is a file of its own that declares its options and runs. The table in
// run.cpp lists them once, in the order of the overview.
#pragma once

#include <vector>

#include "cli/console.h"
#include "cli/options.h"

namespace vitrail::cli {

struct Command {
  CommandSpec spec;
  // Runs the command. Throws Error on failure; a check that failed is an Error(kCheck).
  void (*run)(const Options& options, Console& console);
};

Command bench_calibrate_command();
Command bench_dist_command();
Command bench_infer_command();
Command bench_stream_command();
Command bench_train_command();
Command bench_tune_command();
Command convert_command();
Command data_check_command();
Command data_pack_command();
Command data_show_command();
Command data_stats_command();
Command doctor_command();
Command eval_command();
Command explain_command();
Command inspect_command();
Command launch_command();
Command plan_command();
Command predict_command();
Command profile_command();
Command scale_command();
Command train_command();
Command verify_command();

const std::vector<Command>& commands();

}  // namespace vitrail::cli
