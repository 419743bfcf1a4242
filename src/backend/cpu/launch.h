// The CPU kernels as the kernel table takes them: from (op, views, scratch, lane) to the raw drivers of
// gemm.h. One function each for accepting, scratch and running; kernels.cpp puts them in order.
#pragma once

#include "backend/kernel.h"

namespace vitrail::cpu {

std::string declines_unless_f32(const NodeView& node, const DeviceInfo& device);

// A product with packed weights and what may stand around it in a fused node: a layernorm before; bias, gelu,
// scale, residual after, in that order. Serves linear, patch_embed and fused nodes.
std::string declines_linear(const NodeView& node, const DeviceInfo& device);
size_t linear_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_linear(const KernelArgs& args);
Packing weight_packing(const NodeView& node, const DeviceInfo& device);
std::string declines_pack(const NodeView& node, const DeviceInfo& device);
void run_pack(const KernelArgs& args);

std::string declines_blas(const NodeView& node, const DeviceInfo& device);
size_t blas_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_blas_linear(const KernelArgs& args);

size_t attention_scratch_bytes(const NodeView& node, const DeviceInfo& device);
void run_attention(const KernelArgs& args);

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

}  // namespace vitrail::cpu
