// The order of the passes, known here alone, for inference, training steps, evaluations and the teacher of a
// distillation; `plan --dump-after` prints the program after each.
#pragma once

#include <functional>
#include <span>

#include "graph/rewrite_traits.h"
#include "ops/linear.h"
#include "passes/flat_groups.h"
#include "passes/offload.h"
#include "passes/passes.h"
#include "passes/precision.h"
#include "passes/stages.h"

namespace vitrail {

struct Rewrites {
  Arithmetic arithmetic = Arithmetic::kExact;  // of the GEMMs in the blocks
  PrecisionOptions precision = {};
  Distribution distribution = {};  // over the ranks of a mesh
  StageOptions stages = {};        // where the mesh has several
  size_t bucket_bytes = 0;         // of the gradients that ranks exchange at once
  int zero = 0;                    // ZeRO's stage: what the dp ranks share out
  bool whole_sums = false;  // ZeRO 2 and 3 sum gradients over ranks once an update, not every micro-step
  bool averages = false;    // whether a moving average of the parameters is kept
  bool offload = false;     // masters lie on the host; programs of the device read copies alone
  bool parameters_on_host = false;  // with an offload and ZeRO 3: these copies, too
  RecomputeOptions recompute = {};  // training only
  bool join = true;                 // joins residuals with the gradients of norms
  bool fuse = true;
  RewriteTraits traits = {};   // of the backend that runs it
  KernelRule has_kernel = {};  // of its device; unset: nothing is rewritten that would need to know
};

// The passes that others look for.
inline constexpr std::string_view kPrecisionPass = "precision", kDistributePass = "distribute";

// A callback that receives the program as recorded ("record") and after each pass, with the pass's name.
using AfterPass = std::function<void(std::string_view pass, const Program& program)>;

// `zero` says what of the parameters lies on other ranks.
Program inference_program(Program recorded, const Rewrites& rewrites, const AfterPass& after = {},
                          const ZeroPlan& zero = {});
// Forward, backward and gradient sums of a micro-batch, the low-precision copies of weights that it reads,
// and the buckets in which its sums lie; none where there is one rank.
struct MicroProgram {
  Program program;
  std::vector<LowCopy> copies;
  std::vector<Bucket> buckets;
  ZeroPlan zero;
  std::vector<int> begins = {};  // where the stages of a pipeline were cut; the evaluation is cut alike
};
MicroProgram micro_program(Program recorded, const DifferentiateOptions& descent, const Rewrites& rewrites,
                           const AfterPass& after = {});
// Makes a program that only changes persistent values: an optimizer's update, copies of weights.
Program update_program(Program recorded, const Rewrites& rewrites, const std::vector<Bucket>& buckets = {},
                       const ZeroPlan& zero = {});
// Makes the same in the parts of an update whose state lies on the host.
UpdateParts update_parts(const Program& recorded, const Rewrites& rewrites,
                         const std::vector<Bucket>& buckets = {}, const ZeroPlan& zero = {});
// Makes the last micro program of an update, in which ranks sum their gradients. With ZeRO 2 and 3 every one
// does, unless whole sums are kept. Of a pipeline's stage: the program of all its micro-batches.
Program last_micro_program(const MicroProgram& micro, const Rewrites& rewrites);

// The names that `after` receives, in order. Every pass is named, also where it has nothing to do.
std::span<const std::string_view> inference_passes();
std::span<const std::string_view> micro_passes();

}  // namespace vitrail
