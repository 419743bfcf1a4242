// The report.html of a run or an evaluation, made from its results: curves, confusion, images, memory,
// config.
#pragma once

#include "train/run_setup.h"
#include "train/teacher.h"
#include "train/trainer.h"

namespace vitrail {

struct RunReportContent {
  const TrainPlace& place;
  const RunSetup& setup;
  const StepPlan& plan;
  const Teacher* teacher;  // null: none
  const TrainOutcome& outcome;
  int64_t best_step;
  const RankContext& rank;
  std::string update_seconds;  // predicted against measured; empty: nothing was predicted
};
void write_run_report(const RunReportContent& content);

// Adds the sections that an evaluation alone can fill: confusion or label scores, best and worst images.
struct Report;
void add_eval_sections(Report& report, const EvalResult& result, const Dataset& dataset);

}  // namespace vitrail
