// Whether an engine fits into memory, the largest batch that does, and what to try where it does not.
// Allocates nothing.
#pragma once

#include "api/engine.h"
#include "runtime/rank_context.h"

namespace vitrail {

// Returns the plan that needs the most memory of several programs with so many images, one of which runs at a
// time.
ExecutionPlan largest_plan(const VitConfig& config, const std::vector<EngineOptions>& programs, int64_t batch,
                           const DeviceInfo& device);
// Returns the largest batch, of all ranks, with which each of these programs fits into `bytes`; 0: none does.
int64_t fitting_batch(const VitConfig& config, const std::vector<EngineOptions>& programs,
                      const DeviceInfo& device, size_t bytes);

// Throws Error(kMemory) with what is needed and what would fit, before anything is allocated. `needed_bytes`
// is the engine's own memory, `checked` that of the reference parameters of a checked run.
void require_fit(const ExecutionPlan& plan, size_t needed_bytes, size_t checked, const RankContext& rank,
                 const VitConfig& config, const EngineOptions& options);

}  // namespace vitrail
