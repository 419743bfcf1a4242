// Which instruction sets this processor and operating system can run, and the vector functions of each. Knows
// nothing of ops.
#pragma once

#include <span>
#include <vector>

#include "backend/cpu/isa/table.h"

namespace vitrail {

// kVnni and kAmx are kAvx512 with dot-product instructions for bf16 and int8, by vectors and by tiles.
enum class IsaLevel { kBaseline, kAvx2, kAvx512, kVnni, kAmx };

const char* to_string(IsaLevel level);

// Every level this build has, lowest first.
std::vector<IsaLevel> all_isa_levels();
// Those this processor can run. Lowest first; the baseline is always there.
std::vector<IsaLevel> available_isa_levels();
IsaLevel best_isa();

}  // namespace vitrail

namespace vitrail::cpu {

// Refuses (kind device) a level this processor lacks.
const IsaKernels& isa_kernels(IsaLevel level);
// Of any level, for its sizes alone: planning for a processor that is not here. Its kernels must not run.
const IsaKernels& isa_sizes(IsaLevel level);

}  // namespace vitrail::cpu
