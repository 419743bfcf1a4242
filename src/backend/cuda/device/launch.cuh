// Launches that overlap (programmatic dependent launch): a kernel launched by launch_early() starts while the
// launch before it in the stream still runs, as soon as every block of that one has let the next one start or
// has ended. Until its own call of await_launches() a kernel may prepare itself, and read what no launch that
// may still run writes. Launches of other kinds, of libraries above all, keep their order.
#pragma once

#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

__device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// Waits for the launches before this one, and lets the next one start. Every thread of a kernel launched by
// launch_early() calls it before it reads or writes what other launches read or write. A kernel that reads
// parameters before, since the program changes none, may let the next one start first.
__device__ __forceinline__ void await_launches() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  let_next_start();
}

struct Blocks {
  dim3 grid, block;
  size_t shared = 0;
  unsigned cluster = 1;  // blocks of a cluster, neighbours in x
};

template <typename... Params, typename... Args>
void launch_early(Session& session, const char* name, void (*kernel)(Params...), const Blocks& blocks,
                  const Args&... args) {
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (session.overlaps) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (blocks.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {blocks.cluster, 1, 1};
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks.grid, config.blockDim = blocks.block, config.dynamicSmemBytes = blocks.shared;
  config.stream = session.stream, config.attrs = attributes, config.numAttrs = count;
  check(cudaLaunchKernelEx(&config, kernel, Params(args)...), name);
}

}  // namespace vitrail::cuda
