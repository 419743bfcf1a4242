// The table of an instruction set with dot products: the f32 kernels of another one, with low-precision GEMMs
// of its own. Compiled without the instruction set, as cpu/isa/table.cpp is.
#include "backend/cpu/isa/table.h"

#include "backend/cpu/isa/kernels.h"

#define VT_ISA_TEXT_OF(level) #level
#define VT_ISA_TEXT(level) VT_ISA_TEXT_OF(level)

namespace vitrail::cpu::VT_ISA {

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
