#include "backend/cpu/isa/kernels.h"

#include "backend/cpu/isa/micro.h"

#define VT_ISA_TEXT_OF(level) #level
#define VT_ISA_TEXT(level) VT_ISA_TEXT_OF(level)

namespace vitrail::VT_ISA {

const IsaKernels& kernels() {
  static constexpr IsaKernels kTable = {
      .name = VT_ISA_TEXT(VT_ISA),
      .lanes = kLanes,
      .mr = kMr,
      .nr = kNr,
      .packed_elems = packed_elems,
      .pack_weights = pack_weights,
      .gemm_scratch_elems = gemm_scratch_elems,
      .gemm_tile = gemm_tile,
      .finish_tile = finish_tile,
      .attention_scratch_elems = attention_scratch_elems,
      .attention_tile = attention_tile,
      .layernorm_rows = layernorm_rows,
      .softmax_rows = softmax_rows,
      .activate = activate,
      .add = add,
      .add_row = add_row,
      .scale_row = scale_row,
      .mean_rows = mean_rows,
      .spin_flops = 2 * kSpinChains * kLanes,
      .spin = spin,
  };
  return kTable;
}

}  // namespace vitrail::VT_ISA
