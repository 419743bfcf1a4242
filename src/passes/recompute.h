// Activation checkpointing: what a segment of the forward pass computes is computed again when the backward
// pass needs it, instead of being kept. Clones keep their node's name and op, so they give the same bits,
// dropout masks included. Runs after differentiate and precision.
#pragma once

#include "base/enum_names.h"
#include "graph/program.h"

namespace vitrail {

enum class Recompute { kNone, kMlp, kBlock };
template <>
struct EnumNames<Recompute> {
  static constexpr const char* names[] = {"none", "mlp", "block"};
};

struct RecomputeOptions {
  Recompute level = Recompute::kNone;
  int64_t every = 1;  // blocks per segment of kBlock
};

Program recompute(Program program, const RecomputeOptions& options);

}  // namespace vitrail
