// The order of the passes, known here alone: what the engine, the trainer, its evaluations and its teacher
// run, and what `plan --dump-after` prints.
#pragma once

#include <functional>
#include <span>

#include "graph/rewrite_traits.h"
#include "ops/linear.h"
#include "passes/differentiate.h"
#include "passes/precision.h"
#include "passes/recompute.h"

namespace vitrail {

struct Rewrites {
  Arithmetic arithmetic = Arithmetic::kExact;  // of the blocks' products
  PrecisionOptions precision = {};
  RecomputeOptions recompute = {};  // of training
  bool join = true;                 // residuals with the gradients of norms
  bool fuse = true;
  RewriteTraits traits = {};  // of the backend that will run it
};

// Is shown the program as it was recorded ("record") and as each pass leaves it, by the pass' name.
using AfterPass = std::function<void(std::string_view pass, const Program& program)>;

Program inference_program(Program recorded, const Rewrites& rewrites, const AfterPass& after = {});
// Forward, backward and the gradient sums of a micro-batch.
PreciseProgram micro_program(Program recorded, const DifferentiateOptions& descent, const Rewrites& rewrites,
                             const AfterPass& after = {});
// What changes persistent values alone: an optimizer's update, copies of weights.
Program update_program(Program recorded, const Rewrites& rewrites);

// The names that `after` is given, in order. Every pass is named, also where it has nothing to do.
std::span<const std::string_view> inference_passes();
std::span<const std::string_view> micro_passes();

}  // namespace vitrail
