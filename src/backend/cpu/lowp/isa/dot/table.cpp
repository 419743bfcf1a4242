#include "backend/cpu/lowp/isa/dot/table.h"

#define VT_ISA_TEXT_OF(level) #level
#define VT_ISA_TEXT(level) VT_ISA_TEXT_OF(level)

namespace vitrail::cpu::VT_ISA {

// The f32 kernels of AVX-512, with this instruction set's own low-precision GEMMs. This file is compiled
// without the instruction set.
const IsaKernels& kernels() {
  static const IsaKernels table = [] {
    IsaKernels own = VT_F32_ISA::kernels();
    own.name = VT_ISA_TEXT(VT_ISA);
    own.bf16 = kBf16Gemms;
    own.int8 = kInt8Gemms;
    own.split = kSplitGemms;
    own.bf16_tensors = kBf16TensorGemms;
    return own;
  }();
  return table;
}

}  // namespace vitrail::cpu::VT_ISA
