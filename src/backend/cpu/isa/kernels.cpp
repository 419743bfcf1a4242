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
      .pack_matrix = pack_matrix,
      .gemm_scratch_elems = gemm_scratch_elems,
      .gemm_tile = gemm_tile,
      .finish_tile = finish_tile,
      .pack_strips = pack_strips,
      .pack_panels = pack_panels,
      .row_product_tile = row_product_tile,
      .panel_product = panel_product,
      .attention_scratch_elems = attention_scratch_elems,
      .attention_tile = attention_tile,
      .attention_grad_scratch_elems = attention_grad_scratch_elems,
      .attention_grad_tile = attention_grad_tile,
      .layernorm_rows = layernorm_rows,
      .softmax_rows = softmax_rows,
      .activate = activate,
      .add = add,
      .add_row = add_row,
      .scale_row = scale_row,
      .mean_rows = mean_rows,
      .layernorm_grad_rows = layernorm_grad_rows,
      .activate_grad = activate_grad,
      .tanh_grad = tanh_grad,
      .sum_rows = sum_rows,
      .multiply = multiply,
      .drop_elements = drop_elements,
      .square_sum = square_sum,
      .sgd_update = sgd_update,
      .adam_update = adam_update,
      .lion_update = lion_update,
      .lamb_moments = lamb_moments,
      .lamb_update = lamb_update,
      .move_towards = move_towards,
      .widen = widen,
      .narrow = narrow,
      .bf16 = {kMr, kNr, bf16::packed_bytes, bf16::pack, bf16::row_bytes, bf16::prepare_rows,
               bf16::tile_scratch_bytes, bf16::tile},
      .int8 = {kMr, kNr, int8::packed_bytes, int8::pack, int8::row_bytes, int8::prepare_rows,
               int8::tile_scratch_bytes, int8::tile},
      .spin_flops = 2 * kSpinChains * kLanes,
      .spin = spin,
  };
  return kTable;
}

}  // namespace vitrail::VT_ISA
