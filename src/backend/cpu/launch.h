// The CPU kernels as the kernel table takes them: from (op, views, scratch, context) to the raw drivers of
// gemm.h and grads.h. One function each for accepting, scratch and running; kernels.cpp puts them in order.
#pragma once

#include "backend/cpu/gemm.h"
#include "backend/cpu/gemm_library.h"
#include "backend/kernel.h"
#include "ops/linear.h"

namespace vitrail::cpu {

std::string declines_unless_f32(const NodeView& node, const DeviceInfo& device);

// A product with packed weights and what may stand around it in a fused node: a layernorm before; bias, gelu,
// scale, residual after, in that order. Serves linear, patch_embed and fused nodes.
std::string declines_linear(const NodeView& node, const DeviceInfo& device);
size_t linear_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_linear(const KernelArgs& args);
// The same with a plain weight, packed into scratch on every call.
std::string declines_plain_linear(const NodeView& node, const DeviceInfo& device);
size_t plain_linear_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_plain_linear(const KernelArgs& args);
PatchEmbedArgs patch_args(const Shape& x, const Shape& w);  // shapes alone

Packing weight_packing(const NodeView& node, const DeviceInfo& device);
std::string declines_pack(const NodeView& node, const DeviceInfo& device);
void run_pack(const KernelArgs& args);

// A product in bf16 or int8 (LinearOp's arithmetic), or kExact: in f32 by bf16 parts, with packed weights and
// the same neighbours.
template <Arithmetic kIn>
std::string declines_reduced(const NodeView& node, const DeviceInfo& device);
size_t reduced_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_reduced(const KernelArgs& args);
template <Arithmetic kIn>
Packing reduced_packing(const NodeView& node, const DeviceInfo& device);
std::string declines_reduced_pack(const NodeView& node, const DeviceInfo& device);
void run_reduced_pack(const KernelArgs& args);

// By what a table of kernels knows a linear in f32, alone or in a fused node; nothing for other nodes.
std::optional<TuneKey> product_key(const NodeView& node, const DeviceInfo& device);

// The same as with a plain weight, by a library on our tiles.
std::string declines_library(const NodeView& node, const DeviceInfo& device, const GemmLibrary& library);
size_t library_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_library_linear(const KernelArgs& args, const GemmLibrary& library);

size_t attention_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_attention(const KernelArgs& args);

// The attention of a first token with the product it reads: a fused node that ends in one.
std::string declines_first_attention(const NodeView& node, const DeviceInfo& device);
size_t first_attention_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_first_attention(const KernelArgs& args);

AttentionArgs attention_args(const Op& op, std::span<const TensorView> ins);  // all but the output

size_t attention_probs_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_attention_probs(const KernelArgs& args);

void run_layernorm(const KernelArgs& args);
void run_qk_norm(const KernelArgs& args);
void run_softmax(const KernelArgs& args);
void run_gelu(const KernelArgs& args);
void run_bias(const KernelArgs& args);
void run_scale(const KernelArgs& args);
void run_add(const KernelArgs& args);
void run_mean_tokens(const KernelArgs& args);

size_t linear_dx_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_linear_dx(const KernelArgs& args);  // also fused with the gelu_grad that follows
std::string declines_gelu_dx(const NodeView& node, const DeviceInfo& device);
std::string declines_attention_grad(const NodeView& node, const DeviceInfo& device);
size_t attention_grad_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_attention_grad(const KernelArgs& args);
size_t layernorm_grad_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_layernorm_grad(const KernelArgs& args);
size_t qk_norm_grad_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_qk_norm_grad(const KernelArgs& args);
void run_gelu_grad(const KernelArgs& args);
void run_tanh_grad(const KernelArgs& args);

// Gradients of parameters (linear_dw, patch_embed_dw, sum_rows, scale_dw, sum_tokens), alone or fused with
// the accumulate that follows.
std::string declines_sum(const NodeView& node, const DeviceInfo& device);
size_t sum_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_sum(const KernelArgs& args);

void run_concat_tokens(const KernelArgs& args);
void run_select_token(const KernelArgs& args);
void run_select_token_grad(const KernelArgs& args);
void run_drop_tokens(const KernelArgs& args);
void run_drop_tokens_grad(const KernelArgs& args);
void run_mean_tokens_grad(const KernelArgs& args);
void run_multiply(const KernelArgs& args);
std::string declines_scale_by(const NodeView& node, const DeviceInfo& device);
void run_scale_by(const KernelArgs& args);
std::string declines_dropout(const NodeView& node, const DeviceInfo& device);
void run_dropout(const KernelArgs& args);
void run_accumulate(const KernelArgs& args);
std::string declines_cast(const NodeView& node, const DeviceInfo& device);
void run_cast(const KernelArgs& args);
std::string declines_copy_into(const NodeView& node, const DeviceInfo& device);
void run_copy_into(const KernelArgs& args);

std::string declines_update(const NodeView& node, const DeviceInfo& device);
void run_sgd_update(const KernelArgs& args);
void run_adam_update(const KernelArgs& args);
void run_lion_update(const KernelArgs& args);
size_t lamb_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_lamb_update(const KernelArgs& args);
void run_ema_update(const KernelArgs& args);
std::string declines_square_sum(const NodeView& node, const DeviceInfo& device);
size_t square_sum_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_square_sum(const KernelArgs& args);

// Products of bf16 tensors (linear, alone or with bias and residual, linear_dx, linear_dw, alone or with the
// accumulate that follows) where the instruction set multiplies bf16 itself.
std::string declines_half_linear(const NodeView& node, const DeviceInfo& device);
size_t half_linear_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_half_linear(const KernelArgs& args);
std::string declines_half_linear_dx(const NodeView& node, const DeviceInfo& device);
size_t half_linear_dx_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_half_linear_dx(const KernelArgs& args);
std::string declines_half_linear_dw(const NodeView& node, const DeviceInfo& device);
size_t half_linear_dw_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_half_linear_dw(const KernelArgs& args);

// Any op on 16-bit floats by its f32 kernel.
std::string declines_half(const NodeView& node, const DeviceInfo& device);
size_t half_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_half(const KernelArgs& args);
// The kernels that compute on f32 as it is, fastest first: what run_half chooses from.
const std::vector<OpKernels>& f32_kernels();

}  // namespace vitrail::cpu
