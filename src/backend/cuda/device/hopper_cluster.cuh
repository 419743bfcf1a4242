// Defines what the blocks of a cluster do together: they send each other what both read, and wait for each
// other. A cluster of one is a block alone. Knows no op.
#pragma once

#include "backend/cuda/device/hopper.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

namespace vitrail::cuda {

template <int kBlocks>
struct Cluster {
  static_assert(kBlocks == 1 || kBlocks == 2);

  // The number of this block within its cluster.
  static __device__ __forceinline__ int rank() {
    if constexpr (kBlocks == 1) return 0;
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return static_cast<int>(rank);
  }

  // All threads of the cluster meet.
  static __device__ __forceinline__ void sync() {
    if constexpr (kBlocks == 1)
      __syncthreads();
    else
      asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
  }

  // Loads a box into every block of the cluster, at the same place of each, whose barriers all count it.
  static __device__ __forceinline__ void load(uint32_t to, const CUtensorMap& map, int column, int row,
                                              uint32_t barrier) {
    if constexpr (kBlocks == 1) return tma_load(to, map, column, row, barrier);
    constexpr uint16_t kAll = (1 << kBlocks) - 1;
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(column), "r"(row), "h"(kAll)
        : "memory");
  }

  // Arrives at the barrier that lies at this place in every block of the cluster; all lanes call it. It must
  // not release at the cluster's scope: that would wait for all the warp's writes.
  static __device__ __forceinline__ void arrive(uint32_t barrier, int lane) {
    if (lane >= kBlocks) return;
    if constexpr (kBlocks == 1) return barrier_arrive(barrier);
    asm volatile(
        "{\n .reg .b32 there;\n mapa.shared::cluster.u32 there, %0, %1;\n"
        " mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
        "r"(lane)
        : "memory");
  }
};

}  // namespace vitrail::cuda

#endif
