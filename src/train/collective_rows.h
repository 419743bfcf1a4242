// The collectives of a planned step: how many of which kind, along which axes, and the bytes that a rank sends.
// Counted on the programs that run, so that nothing can be forgotten.
#pragma once

#include "train/step_plan.h"

namespace vitrail {

struct CollectiveRow {
  std::string kind, axes;
  int64_t count = 0;  // an update
  double bytes = 0;   // that one rank sends an update
};

// Of an update of `accumulation` micro-batches.
std::vector<CollectiveRow> collective_rows(const StepPlan& plan, int64_t accumulation);

}  // namespace vitrail
