// A product of 16-bit matrices with what follows it, by the instructions of compute capability 9.0: blocks
// that stay, one group of warps fetching tiles ahead through the copy engine, two multiplying them. What
// follows is done on the sums in registers, the erf form of the gelu too, which cuBLASLt lacks.
#include <cudaTypedefs.h>

#include <algorithm>

#include "backend/cuda/device/hopper_ending.cuh"
#include "backend/cuda/device/products.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kTileRows = 128, kTileColumns = 256, kTileDepth = 64, kSlots = 4;
constexpr uint32_t kABytes = kTileRows * kTileDepth * 2, kBBytes = kTileColumns * kTileDepth * 2;
constexpr uint32_t kSlotBytes = kABytes + kBBytes;
constexpr int kGroupThreads = 128, kThreads = 3 * kGroupThreads, kMultiplyingWarps = 8;
constexpr uint32_t kPagesAt = kSlots * kSlotBytes;
constexpr uint32_t kBarriersAt = kPagesAt + kMultiplyingWarps * kPages * kPageBytes;
constexpr uint32_t kSwizzleBytes = 1024;  // what the tiles start on a multiple of
constexpr uint32_t kSharedBytes = kBarriersAt + 2 * kSlots * 8 + kSwizzleBytes;

// b's boxes: rows along k have 64 terms of 128 columns, others 64 columns of 64 terms.
template <bool kAlong>
constexpr int kBoxColumns = kAlong ? 128 : 64;

struct Maps {
  CUtensorMap a, b, d, residual;
};
struct Work {
  int steps, across, tiles;  // steps of a tile, tiles of a row of tiles, tiles in all
  EndingArgs ending;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

struct Places {
  uint32_t base;
  __device__ uint32_t a(int slot) const { return base + slot * kSlotBytes; }
  __device__ uint32_t b(int slot) const { return a(slot) + kABytes; }
  __device__ uint32_t pages(int warp) const { return base + kPagesAt + warp * kPages * kPageBytes; }
  __device__ uint32_t full(int slot) const { return base + kBarriersAt + slot * 8; }
  __device__ uint32_t empty(int slot) const { return full(kSlots + slot); }
};

struct Ring {
  int slot = 0;
  uint32_t parity = 0;
  __device__ void next() {
    if (++slot == kSlots) slot = 0, parity ^= 1;
  }
};

// By one thread: keeps the ring full.
template <bool kAlong, Ending kEnding>
__device__ void fetch_tiles(const Maps& maps, const Work& w, const Places& at) {
  Ring ring;
  for (int i = blockIdx.x; i < w.tiles; i += gridDim.x) {
    const int row = i / w.across * kTileRows, column = i % w.across * kTileColumns;
    if constexpr (kEnding == Ending::kAdd)
      for (int c = 0; c < kTileColumns; c += kPageColumns) box_prefetch(maps.residual, column + c, row);
    for (int step = 0; step < w.steps; ++step, ring.next()) {
      const int k = step * kTileDepth;
      const uint32_t full = at.full(ring.slot);
      barrier_wait(at.empty(ring.slot), ring.parity ^ 1);
      barrier_arrive_with(full, kSlotBytes);
      box_load(at.a(ring.slot), maps.a, k, row, full);
#pragma unroll
      for (int c = 0; c < kTileColumns; c += kBoxColumns<kAlong>) {
        const uint32_t to = at.b(ring.slot) + c * kTileDepth * 2;
        box_load(to, maps.b, kAlong ? k : column + c, kAlong ? column + c : k, full);
      }
    }
  }
}

// By the four warps of a group: 64 rows of every tile.
template <typename T, bool kAlong, Ending kEnding>
__device__ void multiply_tiles(const Maps& maps, const Work& w, const Places& at, int group) {
  const int thread = static_cast<int>(threadIdx.x) % kGroupThreads, lane = thread % 32;
  const int warp = group * 4 + thread / 32;
  const uint32_t pages = at.pages(warp);
  Ring ring;
  float sums[128];
  for (int i = blockIdx.x; i < w.tiles; i += gridDim.x) {
    const int row = i / w.across * kTileRows + warp * kPageRows, column = i % w.across * kTileColumns;
    int before = 0;
    for (int step = 0; step < w.steps; ++step, ring.next()) {
      barrier_wait(at.full(ring.slot), ring.parity);
      const uint64_t a = group_rows(at.a(ring.slot) + group * (kABytes / 2));
      const uint64_t b = kAlong ? group_rows(at.b(ring.slot)) : group_columns(at.b(ring.slot), kBBytes / 4);
      group_fence();
#pragma unroll
      for (int k = 0; k < kTileDepth / 16; ++k)
        group_product<T, kAlong>(sums, a + k * kNextTerms, b + k * (kAlong ? kNextTerms : kNextRows),
                                 step > 0 || k > 0);
      group_commit();
      group_wait<1>();
      if (step > 0 && lane == 0) barrier_arrive(at.empty(before));
      before = ring.slot;
    }
    const int my_row = row + lane / 4, my_column = column + lane % 4 * 2;
    Beside<T, kEnding> even, odd;
    even.fetch(w.ending, my_row, my_column);
    odd.fetch(w.ending, my_row, my_column + kPageColumns);
    group_wait<0>();
    settle(sums);
    if (lane == 0) barrier_arrive(at.empty(before));
    const auto send = [&]<int kPart>(std::integral_constant<int, kPart>, const Beside<T, kEnding>& beside) {
      send_columns<T, kEnding, kPart>(maps.d, w.ending, sums, beside, pages + kPart % kPages * kPageBytes, row,
                                      column + kPart * kPageColumns);
    };
    send(std::integral_constant<int, 0>(), even);
    even.fetch(w.ending, my_row, my_column + 2 * kPageColumns);
    send(std::integral_constant<int, 1>(), odd);
    odd.fetch(w.ending, my_row, my_column + 3 * kPageColumns);
    send(std::integral_constant<int, 2>(), even);
    send(std::integral_constant<int, 3>(), odd);
  }
  if (lane == 0) box_stores_read<0>();
}

#endif

template <typename T, bool kAlong, Ending kEnding>
__global__ void __launch_bounds__(kThreads, 1)
    product_kernel(const __grid_constant__ Maps maps, const __grid_constant__ Work w) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ char shared[];
  const Places at{(shared_address(shared) + kSwizzleBytes - 1) / kSwizzleBytes * kSwizzleBytes};
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kSlots; ++slot) {
      barrier_init(at.full(slot), 1);
      barrier_init(at.empty(slot), kMultiplyingWarps);
    }
    barrier_publish();
  }
  __syncthreads();
  const int group = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kGroupThreads, 0);
  if (group == 0) {
    give_registers<40>();
    if (threadIdx.x == 0) fetch_tiles<kAlong, kEnding>(maps, w, at);
  } else {
    take_registers<232>();
    multiply_tiles<T, kAlong, kEnding>(maps, w, at, group - 1);
  }
#endif
}

// From the driver, which is linked by nobody.
PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  static const auto found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result;
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                           &result),
          "looking for the driver's maps of matrices");
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  }();
  return found;
}

// Boxes have rows of 128 bytes, swizzled.
CUtensorMap map_of(const Operand& matrix, int64_t rows, int64_t columns, int box_rows) {
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes[] = {static_cast<cuuint64_t>(columns) * 2};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(box_rows)}, every[] = {1, 1};
  const auto type =
      matrix.dtype == DType::kBF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  CUtensorMap map;
  const CUresult status =
      encoder()(&map, type, 2, matrix.data, sizes, row_bytes, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  VT_CHECK(status == CUDA_SUCCESS, "no map of a matrix of %lld x %lld: error %d", static_cast<long long>(rows),
           static_cast<long long>(columns), static_cast<int>(status));
  return map;
}

template <typename T, bool kAlong, Ending kEnding>
void launch(Session& session, const FusedGemmCall& call) {
  const auto kernel = product_kernel<T, kAlong, kEnding>;
  VT_REQUIRE(has_groups(kernel), ErrorKind::kDevice,
             "the plugin has no kernels of compute capability 9.0 with Hopper's own instructions; build it "
             "for the architecture 90a");
  Maps maps{.a = map_of(call.a, call.m, call.k, kTileRows),
            .b = kAlong ? map_of(call.b, call.n, call.k, kBoxColumns<true>)
                        : map_of(call.b, call.k, call.n, kTileDepth),
            .d = map_of(call.d, call.m, call.n, kPageRows)};
  if (kEnding == Ending::kAdd) maps.residual = map_of(call.residual, call.m, call.n, kTileRows);
  const unsigned across = blocks_for(call.n, kTileColumns), tiles = blocks_for(call.m, kTileRows) * across;
  const Work work{.steps = static_cast<int>(blocks_for(call.k, kTileDepth)),
                  .across = static_cast<int>(across),
                  .tiles = static_cast<int>(tiles),
                  .ending = {.bias = call.bias,
                             .scale = call.scale,
                             .residual = call.residual,
                             .m = static_cast<int>(call.m),
                             .n = static_cast<int>(call.n)}};
  allow_shared(kernel, kSharedBytes, "hopper_gemm");
  const unsigned blocks = std::min(static_cast<unsigned>(session.processors), tiles);
  kernel<<<blocks, kThreads, kSharedBytes, session.stream>>>(maps, work);
  check_launch("hopper_gemm");
}

template <typename T>
void launch_for(Session& session, const FusedGemmCall& call) {
  if (!call.b_transposed) return launch<T, false, Ending::kPlain>(session, call);
  if (call.act == Activation::kGeluErf) return launch<T, true, Ending::kGelu>(session, call);
  if (call.residual.data) return launch<T, true, Ending::kAdd>(session, call);
  launch<T, true, Ending::kPlain>(session, call);
}

}  // namespace

void hopper_gemm(Session& session, const FusedGemmCall& call) {
  call.a.dtype == DType::kBF16 ? launch_for<__nv_bfloat16>(session, call) : launch_for<__half>(session, call);
}

}  // namespace vitrail::cuda
