// Whether an engine fits into the free memory, and what to try where it does not. Allocates nothing.
#pragma once

#include "api/engine.h"
#include "runtime/rank_context.h"

namespace vitrail {

// Throws Error(kMemory) with what is needed and what would fit, before anything is allocated. `needed_bytes`
// is the engine's own memory, `checked` that of the reference parameters of a checked run.
void require_fit(const ExecutionPlan& plan, size_t needed_bytes, size_t checked, const RankContext& rank,
                 const VitConfig& config, const EngineOptions& options);

}  // namespace vitrail
