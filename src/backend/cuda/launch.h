// What the files that launch this backend's kernels share: they read an op and its views, and hand plain
// structs to the plugin. Selection (declines, scratch) stands beside each launch and touches no device.
#pragma once

#include "backend/cuda/plugin.h"
#include "backend/kernel.h"

namespace vitrail::cuda {

// The session of a launch, its GPU now the calling thread's.
inline Session& session(void* stream) {
  auto& found = *static_cast<Session*>(stream);
  api().session.use(found);
  return found;
}
inline Session& session(const KernelArgs& args) {
  return session(args.context.stream);
}
inline Operand operand(const TensorView& view) {
  return {view.data(), view.dtype()};
}
// The op of a node, which the kernel list has made sure of.
template <typename T>
const T& op_of(const KernelArgs& args) {
  return dynamic_cast<const T&>(args.op);
}

// Elements of the last dim, and how many such rows there are.
int64_t row_length(const TensorDesc& desc);
int64_t row_count(const TensorDesc& desc);

// Multiprocessors; those of a large GPU where a plan does not name them.
inline int64_t processors_of(const DeviceInfo& device) {
  return device.processors > 0 ? device.processors : 132;
}

// f32, bf16 and f16 in any mixture, no packed operands; integers and f64 as operands of their own kinds.
std::string declines_unless_plain(const NodeView& node, const DeviceInfo& device);
size_t no_scratch(const NodeView& node, const DeviceInfo& device);

Kernel cuda_kernel(const char* name, void (*run)(const KernelArgs&),
                   std::string (*declines)(const NodeView&, const DeviceInfo&) = declines_unless_plain,
                   size_t (*scratch)(const NodeView&, const DeviceInfo&) = no_scratch);

// How tables know the GEMMs that cuBLASLt computes; nothing for any other node.
std::optional<TuneKey> gemm_key(const NodeView& node, const DeviceInfo& device);

// Why a GPU has no GEMMs so, whatever their sizes.
std::string lacks_arithmetic(Arithmetic arithmetic, const DeviceInfo& device);

// A GEMM by launch_hopper.cpp, one of gemm_kernels().
Kernel hopper_gemm_kernel();

// The kernel lists, one a file launch_*.cpp.
std::vector<OpKernels> gemm_kernels();
std::vector<OpKernels> fp8_kernels();
std::vector<OpKernels> attention_kernels();
std::vector<OpKernels> norm_kernels();
std::vector<OpKernels> row_kernels();
std::vector<OpKernels> token_kernels();
std::vector<OpKernels> image_kernels();
std::vector<OpKernels> loss_kernels();
std::vector<OpKernels> update_kernels();

}  // namespace vitrail::cuda
