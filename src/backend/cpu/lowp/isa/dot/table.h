// The tables of low-precision GEMMs of an instruction set with dot products; vnni.cpp and amx.cpp each define
// them, and an instruction set is built with one of the two. They are constants, since a plan may read the
// table on a processor that cannot run the instruction set.
#pragma once

#include "backend/cpu/isa/table.h"

namespace vitrail::cpu::VT_ISA {

extern const LowpKernels kBf16Gemms, kInt8Gemms, kSplitGemms;
extern const Bf16TensorKernels kBf16TensorGemms;

}  // namespace vitrail::cpu::VT_ISA
