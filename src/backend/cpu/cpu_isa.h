// Which instruction sets this processor and operating system can run, and the kernels of each.
// Used by the CPU backend's kernel choice, by tests that force a lower level, and by `doctor`.
#pragma once

#include <span>
#include <vector>

#include "backend/cpu/isa/table.h"

namespace vitrail {

enum class IsaLevel { kBaseline, kAvx2, kAvx512 };

const char* to_string(IsaLevel level);

// Lowest first; the baseline is always there.
std::vector<IsaLevel> available_isa_levels();
IsaLevel best_isa();

// Refuses (kind device) a level this processor lacks.
const IsaKernels& isa_kernels(IsaLevel level);

}  // namespace vitrail
