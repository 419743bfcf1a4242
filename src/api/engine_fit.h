// Whether an engine fits into the memory that is free, and what to try where it does not. It must allocate
// nothing.
#pragma once

#include "api/engine.h"
#include "runtime/rank_context.h"

namespace vitrail {

// Error(kMemory) with what would be needed and what would fit, before anything is allocated. `needed_bytes`
// are the engine's own, `checked` those of a check's parameters.
void require_fit(const ExecutionPlan& plan, size_t needed_bytes, size_t checked, const RankContext& rank,
                 const VitConfig& config, const EngineOptions& options);

}  // namespace vitrail
