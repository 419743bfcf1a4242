// How long a program takes at least on a device of known speed: each node by the slower of its arithmetic and
// its memory traffic. Used by plan.
#pragma once

#include "graph/program.h"

namespace vitrail::cli {

struct Roofline {
  double f32_flops = 0, bf16_flops = 0, f16_flops = 0;  // a second
  double bytes = 0;                                     // a second, read and written both counted

  double flops(DType dtype) const;
};

// What a node multiplies in: the narrowest float type of its inputs; f32 for one that has none.
DType narrowest_float(const Program& program, const Node& node);

// Seconds of one run.
double estimate_seconds(const Program& program, const Roofline& device);

}  // namespace vitrail::cli
