// The kernels that the folders of the CPU backend offer to its kernel list: single kernels for ops that
// several folders serve, and lists for the other ops. Each folder's launches read ops and views, and pass raw
// pointers to the folder's drivers.
#pragma once

#include "backend/cpu/context.h"
#include "ops/linear.h"

namespace vitrail::cpu {

std::string declines_unless_f32(const NodeView& node, const DeviceInfo& device);
inline constexpr const char* kNoRowSums = "makes no sums over the rows it writes";

// Reads what a launch needs of a node, once: its op and shapes. A launch reads addresses alone.
using PrepareNode = Prepared (*)(const NodeView&, const DeviceInfo&);
inline Kernel kernel(const char* name, PrepareNode prepare, Declines declines = declines_unless_f32) {
  return {.name = name, .declines = declines, .prepare = prepare};
}
inline Kernel rows_kernel(PrepareNode prepare, Declines declines = declines_unless_f32) {
  return kernel("vector rows", prepare, declines);
}

// GEMMs with packed weights and their neighbours in a fused node: a layernorm before; bias, gelu, scale and
// residual after, in that order. They serve linear, patch_embed and fused nodes. The other kernels take a
// plain weight, which is packed into scratch on every call, or which oneDNN reads on our tiles.
Kernel packed_gemm();
Kernel packing_gemm();
Kernel onednn_gemm();
Kernel pack_weight();
// The gradient for a linear's input, alone or fused with the gradient of the gelu before it.
Kernel input_grad_gemm();
Kernel gelu_grad_gemm();
// The key of an f32 linear, alone or in a fused node, in a table of kernels; nullopt for other nodes.
std::optional<TuneKey> gemm_key(const NodeView& node, const DeviceInfo& device);

// GEMMs in bf16 or int8 (LinearOp's arithmetic), or in f32 by bf16 parts, with packed weights and the same
// fused neighbours.
Kernel int8_gemm();
Kernel bf16_gemm();
Kernel split_gemm();
Kernel pack_lowp_weight();
// GEMMs of bf16 tensors (linear, alone or with bias and residual; linear_dx; linear_dw, alone or with the
// accumulate that follows) where the instruction set has bf16 dot products.
Kernel bf16_tensor_gemm();
Kernel bf16_tensor_input_grad();
Kernel bf16_tensor_weight_grad();
// Runs any op on 16-bit floats by its f32 kernel.
Kernel widened();
// The kernels that compute on f32 tensors in place, fastest first: widened() chooses from them.
const std::vector<OpKernels>& f32_kernels();

// Attention with the first token as the only query, fused with the GEMM it reads.
Kernel first_token_attention();
// The gradients of parameters (linear_dw, patch_embed_dw, sum_rows, scale_dw, sum_tokens), alone or fused
// with the accumulate that follows.
Kernel chunked_sum();

std::vector<OpKernels> attention_kernels();
std::vector<OpKernels> norm_kernels();
std::vector<OpKernels> elementwise_kernels();
std::vector<OpKernels> token_kernels();
std::vector<OpKernels> reduce_kernels();
std::vector<OpKernels> update_kernels();
std::vector<OpKernels> convert_kernels();

}  // namespace vitrail::cpu
