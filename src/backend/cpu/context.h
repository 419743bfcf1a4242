// From the backend-neutral context of a kernel call to what the CPU drivers run on.
#pragma once

#include "backend/cpu/cpu_isa.h"
#include "backend/cpu/gemm.h"
#include "backend/kernel.h"

namespace vitrail::cpu {

// For sizes: the device may be one this machine lacks.
inline const IsaKernels& isa_of(const DeviceInfo& device) {
  return isa_sizes(static_cast<IsaLevel>(device.isa));
}

inline CpuContext context_of(const KernelArgs& args) {
  const DeviceInfo& device = args.context.device;
  return {.pool = args.context.pool,
          .isa = isa_kernels(static_cast<IsaLevel>(device.isa)),
          .parallel = {.heads = device.parallel_heads,
                       .rows = device.parallel_rows,
                       .softmax = device.parallel_softmax},
          .scratch = args.scratch};
}

}  // namespace vitrail::cpu
