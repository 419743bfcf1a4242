// A GEMM of 16-bit matrices of few rows with its epilogue, by the instructions of compute capability 9.0. A
// block computes one tile: one warp loads by TMA, two warp groups take turns over the steps of its terms. Two
// blocks share a multiprocessor: while one waits, the other multiplies, or it loads weights while the launch
// before still runs. Where there are few tiles, the blocks of a cluster share the terms of one; each then
// adds up, always in the same order, and finishes its part of the tile.
#include "backend/cuda/device/gemms.cuh"
#include "backend/cuda/device/hopper_small_epilogue.cuh"
#include "backend/cuda/device/tensor_maps.cuh"

namespace vitrail::cuda {

namespace small {

namespace {

template <typename T, typename C, SmallEpilogue kEpilogue>
__global__ void __launch_bounds__(kThreads, 2)
    small_gemm_kernel(const __grid_constant__ SmallMaps maps, const __grid_constant__ SmallWork w) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ char shared[];
  const Room<C> at(shared);
  const Share share(w, C::kColumns);
  const Loads<C> loads{maps, share, at};
  const Part<C> part(w, share);
  const bool loading = threadIdx.x == kWorkers, working = threadIdx.x < kWorkers;
  if (loading) begin(w, loads);
  __syncthreads();
  if (loading) load(w, loads);
  Residual<C> residual;
  float sums[C::kColumns / 2];
  if (working) {
    if (w.early) copy_rows<kEpilogue>(w, share, at);
    await_launches();
    if (!w.early) copy_rows<kEpilogue>(w, share, at);
    if constexpr (kEpilogue == SmallEpilogue::kAdd && C::kHoldsResidual) fetch_residual(part, residual);
    multiply_steps<T>(at, share.steps, __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kGroupThreads, 0),
                      sums);
  }
  __syncthreads();  // the ring is no longer read
  if (working) {
    write_sums(at, sums);
    if constexpr (kEpilogue == SmallEpilogue::kAdd && !C::kHoldsResidual) fetch_residual(part, residual);
  }
  if (w.splits > 1)
    cluster_sync();
  else
    __syncthreads();
  if (working) finish<T, kEpilogue>(part, at, residual);
  if (w.splits > 1) cluster_sync();  // no block ends while another reads its sums
#endif
}

template <typename T, typename C, SmallEpilogue kEpilogue>
void launch(Session& session, const SmallGemmCall& call) {
  const FusedGemmCall& gemm = call.gemm;
  const auto kernel = small_gemm_kernel<T, C, kEpilogue>;
  require_groups(small_gemm_kernel<T, Cut<128>, SmallEpilogue::kPlain>);
  const SmallMaps maps{.a = matrix_map(gemm.a, gemm.m, gemm.k, kSmallTileRows),
                       .b = matrix_map(gemm.b, gemm.n, gemm.k, C::kColumns)};
  const unsigned down = blocks_for(gemm.m, kSmallTileRows), across = blocks_for(gemm.n, C::kColumns);
  const SmallWork work{.m = static_cast<int>(gemm.m),
                       .n = static_cast<int>(gemm.n),
                       .steps = static_cast<int>(blocks_for(gemm.k, kDepth)),
                       .down = static_cast<int>(down),
                       .splits = call.tile.splits,
                       .early = call.early,
                       .d = gemm.d,
                       .bias = gemm.bias,
                       .scale = gemm.scale,
                       .residual = gemm.residual};
  VT_CHECK(work.splits >= 1 && work.splits <= std::min(work.steps, kMostSplits), "a GEMM in %d parts",
           work.splits);
  const auto parts = static_cast<unsigned>(work.splits);
  allow_shared(kernel, C::kSharedBytes, "small_gemm");
  launch_early(session, "small_gemm", kernel, {down * across * parts, kThreads, C::kSharedBytes, parts}, maps,
               work);
}

template <typename T, typename C>
void launch_epilogue(Session& session, const SmallGemmCall& call) {
  if (call.gemm.act == Activation::kGeluErf) return launch<T, C, SmallEpilogue::kGelu>(session, call);
  if (call.gemm.residual.data) return launch<T, C, SmallEpilogue::kAdd>(session, call);
  launch<T, C, SmallEpilogue::kPlain>(session, call);
}

template <typename T>
void launch_tile(Session& session, const SmallGemmCall& call) {
  const int columns = call.tile.columns;
  if (columns == 32) return launch_epilogue<T, Cut<32>>(session, call);
  if (columns == 64) return launch_epilogue<T, Cut<64>>(session, call);
  if (columns == 96) return launch_epilogue<T, Cut<96>>(session, call);
  VT_CHECK(columns == 128, "a GEMM has no tiles of %d columns", columns);
  launch_epilogue<T, Cut<128>>(session, call);
}

}  // namespace

}  // namespace small

void small_gemm(Session& session, const SmallGemmCall& call) {
  call.gemm.a.dtype == DType::kBF16 ? small::launch_tile<__nv_bfloat16>(session, call)
                                    : small::launch_tile<__half>(session, call);
}

}  // namespace vitrail::cuda
