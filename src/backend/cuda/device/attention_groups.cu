// Attention over 161 to 208 keys in 16 bits by GEMMs of warp groups (wgmma): a block is one warp group and
// computes one head of one image, whose keys and values lie in shared memory, 64 queries at a time, from and
// to global memory, the next ones prefetched. All scores of a query are in registers at once. Where there are
// few heads, several blocks share one.
#include <algorithm>

#include "backend/cuda/device/attention.cuh"
#include "backend/cuda/device/attention_forward.cuh"
#include "backend/cuda/device/attention_tiles.cuh"
#include "backend/cuda/device/launch.cuh"
#include "backend/cuda/device/wgmma.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kSize = 64, kTiles = 13, kPadded = 16 * kTiles, kFull = 10, kThreads = 128;
constexpr int kBufferBytes = kPadded * kSize * 2;
// The blocks of a multiprocessor: while one waits for its keys or its exponentials, the GEMMs of the others
// run.
constexpr int kBlocks = 3;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The values of the first kCut tiles are multiplied while the weights of the other tiles are computed.
constexpr int kCut = 7;

template <typename T>
struct Block {
  const AttentionCall& call;
  uint32_t keys;  // in shared memory; the values follow

  __device__ __forceinline__ int queries() const { return static_cast<int>(call.queries); }
  __device__ __forceinline__ int pieces() const { return static_cast<int>(call.head_size) / 8; }
  __device__ __forceinline__ HeadStart start_of(const HeadRows& rows) const {
    const int at = opaque(static_cast<int>(blockIdx.x)), count = static_cast<int>(call.heads);
    return HeadStart(rows, at / count, at % count);
  }
  // The first query row of this warp. Its place among the 64 rows differs from head to head, so that the
  // incomplete last rows are not always the same warp's.
  __device__ __forceinline__ int first_row(int tile) const {
    return 64 * tile + static_cast<int>(threadIdx.x / 32 + blockIdx.x) % 4 * 16;
  }
  __device__ __forceinline__ void fetch_keys() const {
    const int count = static_cast<int>(call.keys);
    fetch_rows<kSize, kThreads>(keys, start_of(call.k), 0, count, kPadded, pieces());
    fetch_rows<kSize, kThreads>(keys + kBufferBytes, start_of(call.v), 0, count, kPadded, pieces());
    copy_commit();
  }
  __device__ __forceinline__ void fetch_queries(QueryFragment& q, int tile) const {
    q.fetch(start_of(call.q), first_row(tile), queries(), pieces());
  }

  __device__ __forceinline__ void scores(float (&s)[2 * kTiles][4], const QueryFragment& q) const {
    const uint64_t rows = group_rows(keys);
    uint32_t a[4][4];
#pragma unroll
    for (int step = 0; step < 4; ++step) q(a[step], step);
    group_fence();
    group_dots<T, false>(s, a[0], rows);
#pragma unroll
    for (int step = 1; step < 4; ++step) group_dots<T, true>(s, a[step], rows + step * kNextTerms);
    group_commit();
    group_wait<0>();
  }

  // Computes the weights of tiles kFrom to kTo and starts the GEMM with their values. A warp without queries
  // has zero weights but takes part.
  template <int kFrom, int kTo>
  __device__ __forceinline__ void attend(Answer<kSize>& answer, const WarpTiles<T, kSize>& tiles,
                                         uint32_t (&w)[kTiles][4], const float (&s)[2 * kTiles][4],
                                         const float (&shift)[2], bool works) const {
    const uint64_t values = group_rows(keys + kBufferBytes);
    if (works)
#pragma unroll
      for (int i = kFrom; i < kTo; ++i)
        tiles.tile_weights(w[i], answer.sum, s[2 * i], s[2 * i + 1], call.scale * kLog2e, shift);
    group_fence();
#pragma unroll
    for (int i = kFrom; i < kTo; ++i) {
      if (i == 0)
        group_weigh<T, false>(answer.o, w[i], values);
      else
        group_weigh<T, true>(answer.o, w[i], values + i * kNextRows);
    }
    group_commit();
  }

  // Computes one tile of 64 queries. Once the scores are known, the next turn's queries are prefetched.
  __device__ __forceinline__ void take_turn(QueryFragment& q, int tile) const {
    const WarpTiles<T, kSize> tiles(static_cast<int>(threadIdx.x) % 32);
    const int row = first_row(tile);
    const bool works = row < queries();
    Answer<kSize> answer;
    float s[2 * kTiles][4], shift[2];
    q.arrive();
    scores(s, q);
    fetch_queries(q, tile + static_cast<int>(gridDim.y));
    answer.begin();
    if (works) {
      tiles.template mask<kFull, kTiles>(s, static_cast<int>(call.keys));
      tiles.template row_max<kTiles>(s, answer.top);
    }
    for (int i = 0; i < 2; ++i) shift[i] = answer.top[i] * call.scale * kLog2e;
    uint32_t w[kTiles][4] = {};
    attend<0, kCut>(answer, tiles, w, s, shift, works);
    attend<kCut, kTiles>(answer, tiles, w, s, shift, works);
    group_wait<0>();
    if (works)
      store_rows<T, kSize>(start_of(call.out), row, queries(), pieces(), answer.o,
                           __fdividef(1, quad_sum(answer.sum[0])), __fdividef(1, quad_sum(answer.sum[1])));
  }
};

#endif

template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    group_attention(const __grid_constant__ AttentionCall call) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char shared[];
  const Block<T> block{call, shared_address(shared)};
  QueryFragment q;
  await_launches();
  block.fetch_keys();
  block.fetch_queries(q, static_cast<int>(blockIdx.y));
  copy_wait<0>();
  group_publish();
  __syncthreads();
#pragma unroll 1
  for (int tile = static_cast<int>(blockIdx.y); 64 * tile < block.queries();
       tile += static_cast<int>(gridDim.y))
    block.take_turn(q, tile);
#endif
}

template <typename T>
bool launch(Session& session, const AttentionCall& call) {
  constexpr int kBytes = 2 * kBufferBytes;
  const auto kernel = group_attention<T>;
  if (!has_groups(kernel)) return false;
  const auto heads = static_cast<unsigned>(call.batch * call.heads);
  const auto seats = static_cast<unsigned>(session.processors * kBlocks);
  const unsigned shares = std::clamp(seats / heads, 1u, blocks_for(call.queries, 64));
  allow_shared(kernel, kBytes, "attention_groups");
  launch_early(session, "attention_groups", kernel, {dim3(heads, shares), kThreads, kBytes}, call);
  return true;
}

}  // namespace

bool attention_groups(Session& session, const AttentionCall& call) {
  if (call.keys <= 16 * kFull || call.keys > kPadded || call.head_size > kSize) return false;
  return call.q.dtype == DType::kBF16 ? launch<__nv_bfloat16>(session, call) : launch<__half>(session, call);
}

}  // namespace vitrail::cuda
