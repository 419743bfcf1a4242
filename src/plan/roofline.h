// How long a program takes at least on a device of known speed: each node by the slower of its arithmetic and
// its memory traffic.
#pragma once

#include <map>
#include <set>
#include <string>

#include "graph/program.h"

namespace vitrail {

struct Roofline {
  std::map<std::string, double> flops;  // a second, by the type products are computed in; f32 at least
  double bytes = 0;                     // a second, read and written both counted
};

// The type of the node that computes most.
std::string product_type(const Program& program);

// Seconds of one run; a type whose speed is not known takes that of f32.
double estimate_seconds(const Program& program, const Roofline& device);
// Those types.
std::set<std::string> unknown_types(const Program& program, const Roofline& device);
// "; bf16 at the rate of f32: the device file has none of its own", or nothing.
std::string unknown_text(const std::set<std::string>& types);

}  // namespace vitrail
