// The table of an instruction set with f32 kernels of its own. Compiled without that instruction set: see
// shape.h.
#include "backend/cpu/isa/table.h"

#include "backend/cpu/isa/kernels.h"

#define VT_ISA_TEXT_OF(level) #level
#define VT_ISA_TEXT(level) VT_ISA_TEXT_OF(level)

namespace vitrail::cpu::VT_ISA {

const IsaKernels& kernels() {
  static const IsaKernels table = {{VT_ISA_TEXT(VT_ISA), kLanes, kMr, kNr},
                                   kGemm,
                                   kPanels,
                                   kRowGemms,
                                   kAttention,
                                   kAttentionGrad,
                                   kNorm,
                                   kElementwise,
                                   kReduce,
                                   kUpdate,
                                   kConvert,
                                   kSpin,
                                   kBf16Gemms,
                                   kInt8Gemms};
  return table;
}

}  // namespace vitrail::cpu::VT_ISA
