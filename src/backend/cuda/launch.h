// Declares what the launch_*.cpp files share: they read a node, its op and descriptions, and write down the
// calls of the plugin that a launch makes. The choice (declines) is defined beside each and uses no device.
#pragma once

#include "backend/cuda/bound_call.h"

namespace vitrail::cuda {

// The op of a node; the kernel list ensures its type.
template <typename T>
const T& op_of(const NodeView& node) {
  return dynamic_cast<const T&>(node.op);
}

// The number of elements of the last dim, and the number of such rows.
int64_t row_length(const TensorDesc& desc);
int64_t row_count(const TensorDesc& desc);

// The number of multiprocessors; that of a large GPU where a plan does not name it.
inline int64_t processors_of(const DeviceInfo& device) {
  return device.processors > 0 ? device.processors : 132;
}

// Accepts f32, bf16 and f16 in any mixture, and 64-bit integers; declines f64 and packed operands.
std::string declines_unless_plain(const NodeView& node, const DeviceInfo& device);

using PrepareNode = Prepared (*)(const NodeView&, const DeviceInfo&);
Kernel cuda_kernel(const char* name, PrepareNode prepare, Declines declines = declines_unless_plain);

// The key of a GEMM that cuBLASLt computes, in a table of kernels; nullopt for any other node.
std::optional<TuneKey> gemm_key(const NodeView& node, const DeviceInfo& device);

// Returns why a GPU has no GEMMs of this arithmetic, whatever their sizes; empty: it may have some.
std::string unsupported_arithmetic(Arithmetic arithmetic, const DeviceInfo& device);

// The GEMM kernels of launch_hopper.cpp and launch_hopper_small.cpp, two of gemm_kernels().
Kernel hopper_gemm_kernel();
Kernel hopper_small_kernel();

// The kernel lists, one for each file launch_*.cpp.
std::vector<OpKernels> gemm_kernels();
std::vector<OpKernels> fp8_kernels();
std::vector<OpKernels> attention_kernels();
std::vector<OpKernels> norm_kernels();
std::vector<OpKernels> row_kernels();
std::vector<OpKernels> token_kernels();
std::vector<OpKernels> image_kernels();
std::vector<OpKernels> loss_kernels();
std::vector<OpKernels> sum_kernels();
std::vector<OpKernels> update_kernels();
std::vector<OpKernels> move_kernels();

}  // namespace vitrail::cuda
