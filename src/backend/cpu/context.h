// Declares what the CPU drivers run on: a thread pool, the vector functions of an instruction set, the kinds
// of parallelism that are turned on, and scratch; and how a launch makes one.
#pragma once

#include <cstddef>
#include <span>

#include "backend/cpu/host/levels.h"
#include "backend/kernel.h"

namespace vitrail::cpu {

// The three kinds of CPU parallelism; a kind that is off runs on the calling thread.
struct CpuParallelism {
  bool heads = true;    // attention: threads over (image, head, query block)
  bool rows = true;     // GEMMs: threads over blocks of rows and columns
  bool softmax = true;  // row-wise ops: softmax, layernorm, elementwise
};

struct ScratchNeed {
  size_t shared_bytes = 0, worker_bytes = 0;
  size_t total(int threads) const { return shared_bytes + worker_bytes * static_cast<size_t>(threads); }
};

// The context of a driver. `scratch` is 64-byte aligned and at least
// <driver>_scratch(...).total(pool.threads()).
struct CpuContext {
  ThreadPool& pool;
  const IsaKernels& isa;
  CpuParallelism parallel;
  std::span<std::byte> scratch;
};

// The functions of the device's instruction set, for sizes only: this machine's processor may lack that
// instruction set.
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
