// What kernels.cpp puts into the table of a level with dot instructions; vnni.cpp and amx.cpp each define it,
// and a level is built with one of them. Constants, since a plan may ask for the table on a processor that
// cannot run the level.
#pragma once

#include "backend/cpu/isa/table.h"

namespace vitrail::cpu::VT_ISA {

extern const LowpKernels kBf16Gemms, kInt8Gemms, kSplitGemms;
extern const Bf16TensorKernels kBf16TensorGemms;

}  // namespace vitrail::cpu::VT_ISA
