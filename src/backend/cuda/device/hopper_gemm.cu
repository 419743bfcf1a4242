// A GEMM of 16-bit matrices with its epilogue, by the instructions of compute capability 9.0, in persistent
// blocks: one warp group prefetches tiles by TMA, two multiply them in turns. While one multiplies its tile,
// the other runs the epilogue of its last one on the sums in registers, including the erf form of the gelu,
// which cuBLASLt lacks.
#include <algorithm>

#include "backend/cuda/device/gemms.cuh"
#include "backend/cuda/device/hopper_epilogue.cuh"
#include "backend/cuda/device/session.cuh"
#include "backend/cuda/device/tensor_maps.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kTileRows = 128, kTileColumns = 192, kTileDepth = 64, kSlots = 4;
constexpr uint32_t kABytes = kTileRows * kTileDepth * 2, kBBytes = kTileColumns * kTileDepth * 2;
constexpr uint32_t kSlotBytes = kABytes + kBBytes;
constexpr int kGroupWarps = 4, kGroupThreads = 32 * kGroupWarps, kThreads = 3 * kGroupThreads;
constexpr int kMultiplyingWarps = 2 * kGroupWarps, kAllPages = kMultiplyingWarps * kPages;
constexpr uint32_t kPagesAt = kSlots * kSlotBytes, kRowsAt = kPagesAt + kAllPages * kPageBytes;
constexpr uint32_t kBarriersAt = kRowsAt + kMultiplyingWarps * kRowsBytes;
constexpr uint32_t kSwizzleBytes = 1024;  // the alignment of the tiles
constexpr uint32_t kSharedBytes = kBarriersAt + (2 * kSlots + 2 + kAllPages) * 8 + kSwizzleBytes;

// The TMA boxes of b: where its rows run along k, a box has 64 terms of all columns, else 64 columns of 64
// terms.
template <bool kAlong>
constexpr int kBoxColumns = kAlong ? kTileColumns : 64;

struct Maps {
  CUtensorMap a, b, d, residual;
};
struct Work {
  int steps, across, tiles;  // steps of a tile, tiles in a row of tiles, all tiles
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
  __device__ uint32_t full(int slot) const { return base + kBarriersAt + slot * 8; }
  __device__ uint32_t empty(int slot) const { return full(kSlots + slot); }
  __device__ uint32_t turn(int group) const { return full(2 * kSlots + group); }
  __device__ uint32_t added(int warp) const { return full(2 * kSlots + 2 + warp * kPages); }
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

// Keeps the ring of tiles in shared memory full; one thread runs it.
template <bool kAlong, Epilogue kEpilogue>
__device__ void fetch_tiles(const Maps& maps, const Work& w, const Places& at) {
  Ring ring;
  for (int i = blockIdx.x; i < w.tiles; i += gridDim.x) {
    const int row = i / w.across * kTileRows, column = i % w.across * kTileColumns;
    if constexpr (kEpilogue == Epilogue::kAdd)
      for (int c = 0; c < kTileColumns; c += kPageColumns)
        for (int r = 0; r < kTileRows; r += kPageRows) tma_prefetch(maps.residual, column + c, row + r);
    for (int step = 0; step < w.steps; ++step, ring.next()) {
      const int k = step * kTileDepth;
      const uint32_t full = at.full(ring.slot);
      barrier_wait(at.empty(ring.slot), ring.parity ^ 1);
      barrier_arrive_with(full, kSlotBytes);
      tma_load(at.a(ring.slot), maps.a, k, row, full);
#pragma unroll
      for (int c = 0; c < kTileColumns; c += kBoxColumns<kAlong>) {
        const uint32_t to = at.b(ring.slot) + c * kTileDepth * 2;
        tma_load(to, maps.b, kAlong ? k : column + c, kAlong ? column + c : k, full);
      }
    }
  }
}

// The GEMM of a tile, as that of its upper 64 rows and that of its lower 64 rows.
template <typename T, bool kAlong>
__device__ __forceinline__ void multiply_tile(const Work& w, const Places& at, Ring& ring,
                                              float (&sums)[2][96], int lane, int group) {
  int before = 0;
  for (int step = 0; step < w.steps; ++step, ring.next()) {
    barrier_wait(at.full(ring.slot), ring.parity);
    const uint64_t upper = group_rows(at.a(ring.slot)), lower = upper + kABytes / 2 / 16;
    const uint64_t b = kAlong ? group_rows(at.b(ring.slot)) : group_columns(at.b(ring.slot), kBBytes / 3);
    group_fence();
#pragma unroll
    for (int k = 0; k < kTileDepth / 16; ++k) {
      const uint64_t terms = b + k * (kAlong ? kNextTerms : kNextRows);
      group_gemm<T, kAlong>(sums[0], upper + k * kNextTerms, terms, step > 0 || k > 0);
      group_gemm<T, kAlong>(sums[1], lower + k * kNextTerms, terms, step > 0 || k > 0);
    }
    group_commit();
    group_wait<1>();
    if (step > 0 && lane == 0) barrier_arrive(at.empty(before));
    before = ring.slot;
  }
  if (lane == 0) barrier_arrive(at.turn(1 - group));
  group_wait<0>();
  settle(sums[0]);
  settle(sums[1]);
  if (lane == 0) barrier_arrive(at.empty(before));
}

// The four warps of a group compute every other tile of the block. A group's turn to multiply comes when the
// other group has issued its last GEMM instructions, so these follow one another without a gap. By then all
// earlier loads of the ring have been waited for: otherwise the last load but one of a slot, of the same
// parity, would be taken for the next one.
template <typename T, bool kAlong, Epilogue kEpilogue>
__device__ void multiply_tiles(const Maps& maps, const Work& w, const Places& at, int group) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32 % kGroupWarps;
  const int place = group * kGroupWarps + warp;
  float* const rows = at.rows(place);
  Share share{.pages = at.pages(place), .added = at.added(place), .bias = rows, .scale = rows + kTileColumns};
  Ring ring;
  if (group == 1) ring.skip(w.steps);
  uint32_t turn = group ^ 1;  // the first group's first turn has come at the start
  float sums[2][96];
  for (int i = blockIdx.x + group * gridDim.x; i < w.tiles; i += 2 * gridDim.x, turn ^= 1) {
    share.row = i / w.across * kTileRows + warp * kPageRows, share.column = i % w.across * kTileColumns;
    prepare<T, kEpilogue>(maps.residual, w.epilogue, share, lane);
    barrier_wait(at.turn(group), turn);
    multiply_tile<T, kAlong>(w, at, ring, sums, lane, group);
    ring.skip(w.steps);
    if constexpr (kEpilogue == Epilogue::kAdd)
      send_added<T>(maps.d, maps.residual, share, sums, lane);
    else
      send_sums<T, kEpilogue>(maps.d, share, sums, lane);
  }
  if (lane == 0) tma_store_wait<0>();
}

#endif

template <typename T, bool kAlong, Epilogue kEpilogue>
__global__ void __launch_bounds__(kThreads, 1)
    gemm_kernel(const __grid_constant__ Maps maps, const __grid_constant__ Work w) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ char shared[];
  const Places at(shared);
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kSlots; ++slot) {
      barrier_init(at.full(slot), 1);
      barrier_init(at.empty(slot), kGroupWarps);
    }
    for (int one : {0, 1}) barrier_init(at.turn(one), kGroupWarps);
    for (int page = 0; page < kAllPages; ++page) barrier_init(at.added(0) + page * 8, 1);
    barrier_publish();
  }
  __syncthreads();
  const int group = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kGroupThreads, 0);
  if (group == 0) {
    give_registers<24>();
    if (threadIdx.x == 0) fetch_tiles<kAlong, kEpilogue>(maps, w, at);
  } else {
    take_registers<240>();
    multiply_tiles<T, kAlong, kEpilogue>(maps, w, at, group - 1);
  }
#endif
}

template <typename T, bool kAlong, Epilogue kEpilogue>
void launch(Session& session, const FusedGemmCall& call) {
  const auto kernel = gemm_kernel<T, kAlong, kEpilogue>;
  require_groups(kernel);
  Maps maps{.a = matrix_map(call.a, call.m, call.k, kTileRows),
            .b = kAlong ? matrix_map(call.b, call.n, call.k, kBoxColumns<true>)
                        : matrix_map(call.b, call.k, call.n, kTileDepth),
            .d = matrix_map(call.d, call.m, call.n, kPageRows)};
  if (kEpilogue == Epilogue::kAdd) maps.residual = matrix_map(call.residual, call.m, call.n, kPageRows);
  const unsigned across = blocks_for(call.n, kTileColumns), tiles = blocks_for(call.m, kTileRows) * across;
  const Work work{.steps = static_cast<int>(blocks_for(call.k, kTileDepth)),
                  .across = static_cast<int>(across),
                  .tiles = static_cast<int>(tiles),
                  .epilogue = {.bias = call.bias, .scale = call.scale, .n = static_cast<int>(call.n)}};
  allow_shared(kernel, kSharedBytes, "hopper_gemm");
  const unsigned blocks = std::min(static_cast<unsigned>(session.processors), tiles);
  kernel<<<blocks, kThreads, kSharedBytes, session.stream>>>(maps, work);
  check_launch("hopper_gemm");
}

template <typename T>
void launch_for(Session& session, const FusedGemmCall& call) {
  if (!call.b_transposed) return launch<T, false, Epilogue::kPlain>(session, call);
  if (call.act == Activation::kGeluErf) return launch<T, true, Epilogue::kGelu>(session, call);
  if (call.residual.data) return launch<T, true, Epilogue::kAdd>(session, call);
  launch<T, true, Epilogue::kPlain>(session, call);
}

}  // namespace

void hopper_gemm(Session& session, const FusedGemmCall& call) {
  call.a.dtype == DType::kBF16 ? launch_for<__nv_bfloat16>(session, call) : launch_for<__half>(session, call);
}

}  // namespace vitrail::cuda
