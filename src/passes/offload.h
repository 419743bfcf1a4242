// Offload: the parts of an update that run on the host, where masters, moments and averages lie. A device
// computes with working copies of the parameters ("NAME@bf16", or "NAME@f32" of what stays in full
// precision), so that every parameter has one place, on the host. Knows no device and no memory.
#pragma once

#include <vector>

#include "graph/program.h"
#include "passes/precision.h"

namespace vitrail {

// Lets a program read copies of its parameters and none of them itself; adds the new ones to
// `copies`. Runs after precision.
Program read_copies(Program program, std::vector<LowCopy>& copies);

// A program that only changes persistent values, in the order of its parts.
struct UpdateParts {
  Program
      control;   // the norm of all gradients and the step's control, on the device; empty where there is none
  Program host;  // what changes masters, moments, averages and copies
  Program gather;  // what ranks exchange of the copies afterwards, on the device; may be empty
};
// Throws Error(kConfig) for an optimizer whose ranks exchange values in the middle of an update.
UpdateParts split_update(const Program& update);

// Returns a program of some nodes of another, with the values that they use.
Program program_of(const Program& source, const std::vector<Node>& nodes);

}  // namespace vitrail
