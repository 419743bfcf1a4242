// Finds which instruction sets this processor and operating system can run, and the vector functions of each.
// Knows nothing of ops.
#pragma once

#include <span>
#include <vector>

#include "backend/cpu/isa/table.h"

namespace vitrail {

// kVnni and kAmx are kAvx512 with dot-product instructions for bf16 and int8: on vectors, and on AMX tiles.
enum class IsaLevel { kBaseline, kAvx2, kAvx512, kVnni, kAmx };

const char* to_string(IsaLevel level);

// Every instruction set that this build has, lowest first.
std::vector<IsaLevel> all_isa_levels();
// The instruction sets that this processor can run, lowest first; the baseline is always among them.
std::vector<IsaLevel> available_isa_levels();
IsaLevel best_isa();

}  // namespace vitrail

namespace vitrail::cpu {

// The functions of an instruction set; throws Error(kDevice) for one that this processor lacks.
const IsaKernels& isa_kernels(IsaLevel level);
// The functions of any instruction set, for its sizes alone, when planning for another processor. Its kernels
// must not be run.
const IsaKernels& isa_sizes(IsaLevel level);

}  // namespace vitrail::cpu
