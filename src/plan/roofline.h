// A roofline estimate: the least time a program takes on a device of known speed, each node by the slower of
// its arithmetic and its memory traffic.
#pragma once

#include <map>
#include <set>
#include <string>

#include "graph/program.h"

namespace vitrail {

struct Roofline {
  std::map<std::string, double> flops;  // per second, by GEMM type; f32 at least
  double bytes = 0;                     // per second, read and written both counted
};

// Returns the type of a node's arithmetic: the one it sets, or the narrowest float type of its inputs; f32
// where there is none.
std::string type_of(const Program& program, const Node& node);
// Returns the type of the node with the most FLOPs.
std::string gemm_type(const Program& program);

// Estimates the seconds of one run, or of one node; a type of unknown speed is taken at the speed of f32.
double estimate_seconds(const Program& program, const Roofline& device);
double estimate_seconds(const Program& program, const Node& node, const Roofline& device);
// Returns the types of unknown speed.
std::set<std::string> unknown_types(const Program& program, const Roofline& device);
// Returns "; bf16 at the rate of f32: the device file has none of its own", or nothing.
std::string unknown_text(const std::set<std::string>& types);

}  // namespace vitrail
