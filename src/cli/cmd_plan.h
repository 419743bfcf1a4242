// What the two halves of `plan` share: the inference half in cmd_plan.cpp, the training half in
// cmd_plan_train.cpp.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "cli/options.h"

namespace vitrail::cli {

// Categories with their bytes, shares and bars, then the peak.
std::string memory_table(const std::vector<std::pair<std::string, size_t>>& rows, size_t peak_bytes);

// Memory of a GPU that no plan can hold.
std::string foreign_text(size_t bytes);

void run_train_plan(const Options& options, Console& console);

}  // namespace vitrail::cli
