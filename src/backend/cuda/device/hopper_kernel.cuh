// A GEMM of matrices of 16 or 8 bits with its epilogue, by the instructions of compute capability 9.0, in
// persistent blocks: one warp group prefetches tiles by TMA, two multiply them in turns. While one multiplies
// its tile, the other runs the epilogue of its last one on the sums in registers, including the erf form of
// the gelu, which cuBLASLt lacks. Two blocks may form a cluster: they compute tiles of the same columns, each
// loads half of what these need of b and sends it to both, and the L2 cache is read a third less.
#pragma once

#include <algorithm>

#include "backend/cuda/device/columns.cuh"
#include "backend/cuda/device/gemms.cuh"
#include "backend/cuda/device/hopper_cluster.cuh"
#include "backend/cuda/device/hopper_epilogue.cuh"
#include "backend/cuda/device/session.cuh"
#include "backend/cuda/device/tensor_maps.cuh"

namespace vitrail::cuda::hopper {

constexpr int kTileRows = kHopperTileRows, kTileColumns = kHopperTileColumns, kSlots = 4;
constexpr uint32_t kLineBytes = 128;  // of a row's terms in a slot
constexpr uint32_t kABytes = kTileRows * kLineBytes, kBBytes = kTileColumns * kLineBytes;
template <typename In>
constexpr int kTileDepth = kLineBytes / sizeof(In);
constexpr uint32_t kSlotBytes = kABytes + kBBytes;
constexpr int kGroupWarps = 4, kGroupThreads = 32 * kGroupWarps, kThreads = 3 * kGroupThreads;
constexpr int kMultiplyingWarps = 2 * kGroupWarps, kAllPages = kMultiplyingWarps * kPages;
constexpr uint32_t kPagesAt = kSlots * kSlotBytes, kRowsAt = kPagesAt + kAllPages * kPageBytes;
constexpr uint32_t kScalesAt = kRowsAt + kMultiplyingWarps * kRowsBytes;
constexpr uint32_t kBarriersAt = kScalesAt + kMultiplyingWarps * kScalesBytes;
constexpr uint32_t kSwizzleBytes = 1024;  // the alignment of the tiles
constexpr uint32_t kSharedBytes = kBarriersAt + (2 * kSlots + 2 + kAllPages) * 8 + kSwizzleBytes;

struct Maps {
  CUtensorMap a, b, d;
  CUtensorMap read;  // what the epilogue reads: a residual, the gelu's slope, or what it is taken at
  CUtensorMap kept;  // the second result
};
struct Work {
  int steps, across, stacks;  // steps of a tile, tiles in a row of tiles, stacks of a tile for each block
  EpilogueArgs epilogue;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

struct Places {
  char* start;
  uint32_t base;

  __device__ explicit Places(char* shared) {
    base = (shared_address(shared) + kSwizzleBytes - 1) / kSwizzleBytes * kSwizzleBytes;
    start = shared + (base - shared_address(shared));
  }
  __device__ uint32_t a(int slot) const { return base + slot * kSlotBytes; }
  __device__ uint32_t b(int slot) const { return a(slot) + kABytes; }
  __device__ uint32_t pages(int warp) const { return base + kPagesAt + warp * kPages * kPageBytes; }
  __device__ float* rows(int warp) const {
    return reinterpret_cast<float*>(start + kRowsAt + warp * kRowsBytes);
  }
  __device__ float* scales(int warp) const {
    return reinterpret_cast<float*>(start + kScalesAt + warp * kScalesBytes);
  }
  __device__ uint32_t full(int slot) const { return base + kBarriersAt + slot * 8; }
  __device__ uint32_t empty(int slot) const { return full(kSlots + slot); }
  __device__ uint32_t turn(int group) const { return full(2 * kSlots + group); }
  __device__ uint32_t read(int warp) const { return full(2 * kSlots + 2 + warp * kPages); }
};

struct Ring {
  int slot = 0;
  uint32_t parity = 0;
  __device__ void next() {
    if (++slot == kSlots) slot = 0, parity ^= 1;
  }
  __device__ void skip(int steps) {
    slot += steps % kSlots, parity ^= steps / kSlots % 2;
    if (slot >= kSlots) slot -= kSlots, parity ^= 1;
  }
};

// The stacks of tiles of a cluster, and the first row of this block's tile of one.
template <int kBlocks>
struct Stacks {
  static __device__ __forceinline__ int first() { return static_cast<int>(blockIdx.x) / kBlocks; }
  static __device__ __forceinline__ int stride() { return static_cast<int>(gridDim.x) / kBlocks; }
  static __device__ __forceinline__ int row(int stack, const Work& w) {
    return (stack / w.across * kBlocks + Cluster<kBlocks>::rank()) * kTileRows;
  }
};

// Loads this block's share of b for a slot, for all blocks: where b's rows run along k, all terms of some of
// the columns, in one TMA box; else some of the terms of all columns, in boxes of 64 columns.
template <typename In, bool kAlong, int kBlocks>
__device__ __forceinline__ void fetch_columns_of(const CUtensorMap& b, uint32_t to, int column, int k,
                                                 uint32_t full) {
  constexpr int kColumns = kTileColumns / kBlocks, kDepth = kTileDepth<In> / kBlocks;
  const int rank = Cluster<kBlocks>::rank();
  if constexpr (kAlong) {
    Cluster<kBlocks>::load(to + rank * kColumns * kLineBytes, b, k, column + rank * kColumns, full);
  } else {
#pragma unroll
    for (int c = 0; c < kTileColumns; c += 64)
      Cluster<kBlocks>::load(to + (c * kTileDepth<In> + rank * kDepth * 64) * 2, b, column + c,
                             k + rank * kDepth, full);
  }
}

// Keeps the ring of tiles in shared memory full; one thread runs it. A slot is filled when the warps of all
// blocks have left it.
template <typename In, bool kAlong, Epilogue kEpilogue, int kBlocks>
__device__ void fetch_tiles(const Maps& maps, const Work& w, const Places& at) {
  Ring ring;
  for (int i = Stacks<kBlocks>::first(); i < w.stacks; i += Stacks<kBlocks>::stride()) {
    const int row = Stacks<kBlocks>::row(i, w), column = i % w.across * kTileColumns;
    if constexpr (kReads<kEpilogue>)
      for (int c = 0; c < kTileColumns; c += kPageColumns)
        for (int r = 0; r < kTileRows; r += kPageRows) tma_prefetch(maps.read, column + c, row + r);
    for (int step = 0; step < w.steps; ++step, ring.next()) {
      const int k = step * kTileDepth<In>;
      const uint32_t full = at.full(ring.slot);
      barrier_wait(at.empty(ring.slot), ring.parity ^ 1);
      barrier_arrive_with(full, kSlotBytes);
      tma_load(at.a(ring.slot), maps.a, k, row, full);
      fetch_columns_of<In, kAlong, kBlocks>(maps.b, at.b(ring.slot), column, k, full);
    }
  }
}

// The GEMM of a tile, as that of its upper 64 rows and that of its lower 64 rows.
template <typename In, bool kAlong, int kBlocks>
__device__ __forceinline__ void multiply_tile(const Work& w, const Places& at, Ring& ring,
                                              float (&sums)[2][96], int lane, int group) {
  int before = 0;
  for (int step = 0; step < w.steps; ++step, ring.next()) {
    barrier_wait(at.full(ring.slot), ring.parity);
    const uint64_t upper = group_rows(at.a(ring.slot)), lower = upper + kABytes / 2 / 16;
    const uint64_t b = kAlong ? group_rows(at.b(ring.slot)) : group_columns(at.b(ring.slot), kBBytes / 3);
    group_fence();
#pragma unroll
    for (int k = 0; k < kLineBytes / 32; ++k) {
      const uint64_t terms = b + k * (kAlong ? kNextTerms : kNextRows);
      group_gemm<In, kAlong>(sums[0], upper + k * kNextTerms, terms, step > 0 || k > 0);
      group_gemm<In, kAlong>(sums[1], lower + k * kNextTerms, terms, step > 0 || k > 0);
    }
    group_commit();
    group_wait<1>();
    if (step > 0) Cluster<kBlocks>::arrive(at.empty(before), lane);
    before = ring.slot;
  }
  if (lane == 0) barrier_arrive(at.turn(1 - group));
  group_wait<0>();
  settle(sums[0]);
  settle(sums[1]);
  Cluster<kBlocks>::arrive(at.empty(before), lane);
}

// The four warps of a group compute every other tile of the block. A group's turn to multiply comes when the
// other group has issued its last GEMM instructions, so these follow one another without a gap. By then all
// earlier loads of the ring have been waited for: otherwise the last load but one of a slot, of the same
// parity, would be taken for the next one.
template <typename In, typename T, bool kAlong, Epilogue kEpilogue, int kBlocks>
__device__ void multiply_tiles(const Maps& maps, const Work& w, const Places& at, int group) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32 % kGroupWarps;
  const int place = group * kGroupWarps + warp;
  constexpr bool kScaled = std::is_same_v<In, __nv_fp8_e4m3>;
  float* const rows = at.rows(place);
  Share share{.pages = at.pages(place),
              .read = at.read(place),
              .bias = rows,
              .scale = rows + kTileColumns,
              .row_scales = at.scales(place)};
  Ring ring;
  if (group == 1) ring.skip(w.steps);
  uint32_t turn = group ^ 1;  // the first group's first turn has come at the start
  float sums[2][96];
  const int stride = Stacks<kBlocks>::stride();
  for (int i = Stacks<kBlocks>::first() + group * stride; i < w.stacks; i += 2 * stride, turn ^= 1) {
    share.row = Stacks<kBlocks>::row(i, w) + warp * kPageRows, share.column = i % w.across * kTileColumns;
    prepare<T, kEpilogue, kScaled>(maps.read, w.epilogue, share, lane);
    barrier_wait(at.turn(group), turn);
    multiply_tile<In, kAlong, kBlocks>(w, at, ring, sums, lane, group);
    ring.skip(w.steps);
    if constexpr (kScaled) scale_sums(share, sums, lane);
    if constexpr (kReads<kEpilogue>)
      send_read<T, kEpilogue>(maps.d, maps.read, w.epilogue, share, sums, lane);
    else if constexpr (kMakesTwo<kEpilogue>)
      send_both<T, kEpilogue>(maps.d, maps.kept, share, sums, lane);
    else if constexpr (kEpilogue == Epilogue::kGeluCodes)
      send_codes(maps.d, share, sums, lane);
    else
      send_sums<T, kEpilogue>(maps.d, share, sums, lane);
  }
  if (lane == 0) tma_store_wait<0>();
}

#endif

template <typename In, typename T, bool kAlong, Epilogue kEpilogue, int kBlocks>
__global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads, 1)
    gemm_kernel(const __grid_constant__ Maps maps, const __grid_constant__ Work w) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ char shared[];
  const Places at(shared);
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kSlots; ++slot) {
      barrier_init(at.full(slot), 1);
      barrier_init(at.empty(slot), kBlocks * kGroupWarps);
    }
    for (int one : {0, 1}) barrier_init(at.turn(one), kGroupWarps);
    for (int page = 0; page < kAllPages; ++page) barrier_init(at.read(0) + page * 8, 1);
    barrier_publish();
  }
  Cluster<kBlocks>::sync();
  const int group = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kGroupThreads, 0);
  if (group == 0) {
    give_registers<24>();
    if (threadIdx.x == 0) fetch_tiles<In, kAlong, kEpilogue, kBlocks>(maps, w, at);
  } else {
    take_registers<240>();
    multiply_tiles<In, T, kAlong, kEpilogue, kBlocks>(maps, w, at, group - 1);
  }
  __syncwarp();
  if constexpr (kBlocks > 1) Cluster<kBlocks>::sync();  // another block may still send to this one
#endif
}

inline Maps maps_of(const FusedGemmCall& call, int blocks) {
  const Operand& read = call.slope_at.data ? call.slope_at : call.residual;
  Maps maps{.a = matrix_map(call.a, call.m, call.k, kTileRows),
            .b = call.b_transposed ? matrix_map(call.b, call.n, call.k, kTileColumns / blocks)
                                   : matrix_map(call.b, call.k, call.n, kTileDepth<uint16_t> / blocks),
            .d = call.codes.scales ? codes_map(call.d, call.m, call.n, kPageRows)
                                   : matrix_map(call.d, call.m, call.n, kPageRows)};
  if (read.data) maps.read = matrix_map(read, call.m, call.n, kPageRows);
  if (call.kept.data) maps.kept = matrix_map(call.kept, call.m, call.n, kPageRows);
  return maps;
}

template <typename In, typename T, bool kAlong, Epilogue kEpilogue, int kBlocks>
void launch_clusters(Session& session, const FusedGemmCall& call) {
  const auto kernel = gemm_kernel<In, T, kAlong, kEpilogue, kBlocks>;
  require_groups(kernel);
  const unsigned across = blocks_for(call.n, kTileColumns);
  const unsigned stacks = blocks_for(call.m, kBlocks * kTileRows) * across;
  const Work work{.steps = static_cast<int>(blocks_for(call.k, kTileDepth<In>)),
                  .across = static_cast<int>(across),
                  .stacks = static_cast<int>(stacks),
                  .epilogue = {.bias = call.bias,
                               .scale = call.scale,
                               .partials = call.sums.partials,
                               .scales = {call.a_scales, call.b_scales, call.codes},
                               .m = static_cast<int>(call.m),
                               .n = static_cast<int>(call.n)}};
  allow_shared(kernel, kSharedBytes, "hopper_gemm");
  const unsigned clusters = std::min(static_cast<unsigned>(session.processors) / kBlocks, stacks);
  kernel<<<clusters * kBlocks, kThreads, kSharedBytes, session.stream>>>(maps_of(call, kBlocks), work);
  check_launch("hopper_gemm");
}

template <typename In, typename T, bool kAlong, Epilogue kEpilogue>
void launch(Session& session, const FusedGemmCall& call) {
  if (hopper_cluster(call.m, call.n, session.processors) == 2)
    launch_clusters<In, T, kAlong, kEpilogue, 2>(session, call);
  else
    launch_clusters<In, T, kAlong, kEpilogue, 1>(session, call);
}

// Adds up the columns of a result whose slope was taken, where their sums are wanted.
inline void finish_columns(Session& session, const FusedGemmCall& call) {
  if (!call.sums.target.data) return;
  Totals totals{.width = call.n};
  totals.want(call.sums.target);
  finish_sums(session, call.sums.partials, hopper_sum_parts(call.m), totals);
}

}  // namespace vitrail::cuda::hopper
