// Adds the backward half of a step: from the gradient of the loss back to a sum for every trained parameter
// (state "grad/<name>"). Each op records its own gradient; nothing is recorded for what no trained parameter
// reaches or needs. The first pass.
#pragma once

#include <functional>
#include <string>

#include "graph/grad.h"

namespace vitrail {

struct DifferentiateOptions {
  std::string loss = "loss";  // the output to descend
  ValueId seed = -1;          // its gradient: an input or a value computed before the loss
  std::function<bool(const std::string& parameter)> trained;  // null: all
};

Program differentiate(Program program, const DifferentiateOptions& options);

}  // namespace vitrail
