// Adds the backward part of a step: from the gradient of the loss back to a gradient sum for every trained
// parameter (state "grad/<name>"). Each op records its own gradient; nothing is recorded for values that no
// trained parameter influences. It is the first pass.
#pragma once

#include <functional>
#include <string>

#include "graph/grad.h"

namespace vitrail {

struct DifferentiateOptions {
  std::string loss = "loss";  // the output to minimise
  ValueId seed = -1;          // the gradient of the loss: an input, or a value computed before it
  std::function<bool(const std::string& parameter)> trained;  // null: all
};

Program differentiate(Program program, const DifferentiateOptions& options);

}  // namespace vitrail
