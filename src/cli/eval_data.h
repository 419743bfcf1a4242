// Which images `eval` measures a model on: those named by --data, or a run's own validation part; and how
// many of them the run has learned from.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/console.h"
#include "cli/options.h"
#include "data/overlap.h"

namespace vitrail::cli {

struct EvalData {
  std::unique_ptr<Dataset> set;
  std::string name, part;
  std::optional<Overlap> seen{};  // in training, where the model is a run's and its data is at hand
};

// A run's own data without --part is its validation part; what of other data was learned from is said.
EvalData open_eval_data(const Options& options, Console& console);

}  // namespace vitrail::cli
