// The programs of a training run as text: the micro program as a pass leaves it, and every other program as
// it runs. Knows no option.
#pragma once

#include <string>
#include <vector>

#include "train/run_plan.h"

namespace vitrail {

// Names what dump_program prints: the passes of the micro program, then the other programs.
std::vector<std::string> dumps_of_training();
// Returns one of them, one line a node. A run that has no such program answers a line that begins with
// "none: " and says why; one without a last micro-batch of its own, the micro program, which runs instead.
std::string dump_program(const RunPlan& plan, const std::string& after);

}  // namespace vitrail
