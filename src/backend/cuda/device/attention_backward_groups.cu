// Attention's gradient over 161 to 208 tokens in 16 bits by GEMMs of warp groups (wgmma): a head's queries,
// keys, values and output gradients all lie in shared memory, every element read once and written once. A
// block is one warp group and computes one head of one image: first 64 queries at a time against all keys,
// which gives dq and the facts of each query, then 64 keys at a time against all queries: dk and dv. All
// scores of a row are in registers at once. There are seven GEMMs of queries x keys x size, and no sums
// across warps but those over all tokens, where they are wanted.
#include "backend/cuda/device/attention_backward.cuh"
#include "backend/cuda/device/attention_column_sums.cuh"
#include "backend/cuda/device/columns.cuh"
#include "backend/cuda/device/wgmma.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kSize = 64, kTiles = 13, kPadded = 16 * kTiles, kFull = 10;
static_assert(kGroupLeastKeys == 16 * kFull + 1 && kGroupMostKeys == kPadded && kShortHeadSize == kSize);
constexpr int kTileBytes = 16 * kSize * 2, kBufferBytes = kTiles * kTileBytes;
constexpr int kFactBytes = 2048;  // before the rows, which start on 1024 bytes
static_assert(2 * kPadded * sizeof(float) <= kFactBytes);
constexpr int kThreads = 128, kBlocks = 2;  // of a multiprocessor
static_assert(kThreads / 32 == kGroupParts);

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The offsets of the four matrices in shared memory.
constexpr int kQ = 0, kK = kBufferBytes, kV = 2 * kBufferBytes, kDout = 3 * kBufferBytes;

// A head's rows in shared memory, and the facts of its queries.
template <typename T>
struct Head {
  using Own = uint32_t[4][4];           // A operands of a warp's 16 rows
  using Scores = float[2 * kTiles][4];  // with all other rows
  using Weights = uint32_t[kTiles][4];  // A operands
  using Sums = float[kSize / 8][4];

  const AttentionGradCall& call;
  uint32_t stage;
  float* log_sums;
  float* means;

  __device__ __forceinline__ int count() const { return static_cast<int>(call.keys); }
  __device__ __forceinline__ HeadStart start_of(const HeadRows& rows) const {
    const int at = opaque(static_cast<int>(blockIdx.x)), heads = static_cast<int>(call.heads);
    return HeadStart(rows, at / heads, at % heads);
  }
  __device__ __forceinline__ void fetch() const {
    const auto bring = [&](int at, const HeadRows& rows) {
      fetch_rows<kSize, kThreads>(stage + at, start_of(rows), 0, count(), kPadded,
                                  static_cast<int>(call.head_size) / 8);
    };
    bring(kQ, call.q);
    bring(kK, call.k);
    bring(kV, call.v);
    bring(kDout, call.dout);
    copy_commit();
  }
  __device__ __forceinline__ void load(Own& own, int buffer, int tile) const {
    const uint32_t at = stage + buffer + tile * kTileBytes;
#pragma unroll
    for (int step = 0; step < 4; ++step)
      load16x16(own[step], at + Swizzle<kSize>::lane_offset(threadIdx.x % 32, step));
  }
  // Starts the GEMM s = own rows buffer^T.
  __device__ __forceinline__ void dots(Scores& s, const Own& own, int buffer) const {
    const uint64_t rows = group_rows(stage + buffer);
    group_fence();
    group_dots<T, false>(s, own[0], rows);
#pragma unroll
    for (int step = 1; step < 4; ++step) group_dots<T, true>(s, own[step], rows + step * kNextTerms);
    group_commit();
  }
  // Starts the GEMM sums = weights buffer.
  __device__ __forceinline__ void weigh(Sums& sums, const Weights& w, int buffer) const {
    const uint64_t rows = group_rows(stage + buffer);
    group_fence();
    group_weigh<T, false>(sums, w[0], rows);
#pragma unroll
    for (int tile = 1; tile < kTiles; ++tile) group_weigh<T, true>(sums, w[tile], rows + tile * kNextRows);
    group_commit();
  }
  __device__ __forceinline__ void store(const HeadRows& rows, int tile, const Sums& sums, float factor,
                                        float factor_below) const {
    store_rows<T, kSize>(start_of(rows), 16 * tile, count(), static_cast<int>(call.head_size) / 8, sums,
                         factor, factor_below);
  }
};

// Sixteen queries of a warp against all keys; weights and the scores' gradients are divided by the softmax's
// sum only at the end.
template <typename T>
struct Queries {
  const Head<T>& head;
  typename Head<T>::Weights w = {};  // later the scores' gradients
  float inverse[2] = {0, 0};

  __device__ __forceinline__ void softmax(typename Head<T>::Scores& s, int tile) {
    const WarpTiles<T, kSize> tiles(static_cast<int>(threadIdx.x) % 32);
    const float unit = head.call.scale * kLog2e;
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    tiles.template mask<kFull, kTiles>(s, head.count());
    tiles.template row_max<kTiles>(s, top);
    const float shift[2] = {top[0] * unit, top[1] * unit};
    tiles.template weights<kTiles>(w, sum, s, unit, shift);
    for (int row = 0; row < 2; ++row) {
      const float total = quad_sum(sum[row]);
      inverse[row] = 1 / total;
      if (threadIdx.x % 4 == 0)
        head.log_sums[16 * tile + threadIdx.x % 32 / 4 + 8 * row] = shift[row] + log2f(total);
    }
  }
  __device__ __forceinline__ void differentiate(const typename Head<T>::Scores& dweights, int tile) {
    float mean[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < kTiles * 4; ++i) {
      const float2 weight = unpack2<T>(w[i / 4][i % 4]);
      const float* dweight = &dweights[i / 2][i % 2 * 2];
      mean[i % 2] += weight.x * dweight[0] + weight.y * dweight[1];
    }
    for (int row = 0; row < 2; ++row) {
      mean[row] = quad_sum(mean[row]) * inverse[row];
      if (threadIdx.x % 4 == 0) head.means[16 * tile + threadIdx.x % 32 / 4 + 8 * row] = mean[row];
    }
#pragma unroll
    for (int i = 0; i < kTiles * 4; ++i) {
      uint32_t& pair = w[i / 4][i % 4];
      const float2 weight = unpack2<T>(pair);
      const float* dweight = &dweights[i / 2][i % 2 * 2];
      pair = pack2<T>(weight.x * (dweight[0] - mean[i % 2]), weight.y * (dweight[1] - mean[i % 2]));
    }
  }
};

template <typename T, bool kSums>
__device__ __forceinline__ void take_queries(const Head<T>& head, int tile, QueryColumns& columns) {
  const bool works = 16 * tile < head.count();
  typename Head<T>::Own own = {};
  typename Head<T>::Scores s;
  typename Head<T>::Sums dq;
  Queries<T> queries{head};
  if (works) head.load(own, kQ, tile);
  head.dots(s, own, kK);
  group_wait<0>();
  if (works) {
    queries.softmax(s, tile);
    head.load(own, kDout, tile);
  }
  head.dots(s, own, kV);
  group_wait<0>();
  if (works) queries.differentiate(s, tile);
  head.weigh(dq, queries.w, kK);
  group_wait<0>();
  const float scale = head.call.scale;
  const float above = scale * queries.inverse[0], below = scale * queries.inverse[1];
  if (works) head.store(head.call.dq, tile, dq, above, below);
  // Queries that are padding have zeros.
  if constexpr (kSums) {
    if (works) columns.add(dq, above, below);
  }
}

// Sixteen keys of a warp against all queries.
template <typename T>
struct Keys {
  const Head<T>& head;
  typename Head<T>::Weights w = {};

  // The facts of the queries in columns 8 n + 2t and 8 n + 2t + 1 (t = lane % 4).
  static __device__ __forceinline__ float2 seen(const float* facts, int n) {
    return *reinterpret_cast<const float2*>(facts + 8 * n + threadIdx.x % 4 * 2);
  }
  __device__ __forceinline__ void softmax(const typename Head<T>::Scores& s) {
    const float unit = head.call.scale * kLog2e;
#pragma unroll
    for (int n = 0; n < 2 * kTiles; ++n) {
      const float2 log_sum = seen(head.log_sums, n);
#pragma unroll
      for (int row = 0; row < 2; ++row)
        w[n / 2][n % 2 * 2 + row] = pack2<T>(exp2_fast(fmaf(s[n][2 * row], unit, -log_sum.x)),
                                             exp2_fast(fmaf(s[n][2 * row + 1], unit, -log_sum.y)));
    }
  }
  __device__ __forceinline__ void differentiate(const typename Head<T>::Scores& dweights) {
#pragma unroll
    for (int n = 0; n < 2 * kTiles; ++n) {
      const float2 mean = seen(head.means, n);
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        uint32_t& pair = w[n / 2][n % 2 * 2 + row];
        const float2 weight = unpack2<T>(pair);
        pair = pack2<T>(weight.x * (dweights[n][2 * row] - mean.x),
                        weight.y * (dweights[n][2 * row + 1] - mean.y));
      }
    }
  }
};

template <typename T>
__device__ __forceinline__ void take_keys(const Head<T>& head, int tile) {
  const bool works = 16 * tile < head.count();
  typename Head<T>::Own own = {};
  typename Head<T>::Scores s;
  typename Head<T>::Sums dv, dk;
  Keys<T> keys{head};
  if (works) head.load(own, kK, tile);
  head.dots(s, own, kQ);
  group_wait<0>();
  if (works) {
    keys.softmax(s);
    head.load(own, kV, tile);
  }
  head.weigh(dv, keys.w, kDout);
  head.dots(s, own, kDout);
  group_wait<0>();
  if (works) keys.differentiate(s);
  head.weigh(dk, keys.w, kQ);
  if (works) head.store(head.call.dv, tile, dv, 1, 1);
  group_wait<0>();
  if (works) head.store(head.call.dk, tile, dk, head.call.scale, head.call.scale);
}

// Writes the sums over all tokens; dout's are a matrix multiplication with ones.
template <typename T>
__device__ __forceinline__ void write_sums(const Head<T>& head, float2 dq) {
  const uint32_t one = pack2<T>(1, 1);
  typename Head<T>::Weights ones;
#pragma unroll
  for (int i = 0; i < kTiles * 4; ++i) ones[i / 4][i % 4] = one;
  typename Head<T>::Sums dout;
  head.weigh(dout, ones, kDout);
  group_wait<0>();
  const int heads = static_cast<int>(head.call.heads), at = static_cast<int>(blockIdx.x);
  write_columns(head.call, at / heads, at % heads, static_cast<int>(threadIdx.x) / 32, dq, dout);
}

#endif

// A warp's place among the 64 rows differs from head to head, so that the incomplete last rows are not always
// the same warp's.
template <typename T, bool kSums>
__global__ void __launch_bounds__(kThreads, kBlocks)
    group_backward(const __grid_constant__ AttentionGradCall call) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char shared[];
  float* facts = reinterpret_cast<float*>(shared);
  const Head<T> head{call, shared_address(shared) + kFactBytes, facts, facts + kPadded};
  head.fetch();
  // The facts of queries that are padding are zero; their output gradients are zero too.
  for (int i = static_cast<int>(threadIdx.x); i < 2 * kPadded; i += kThreads) facts[i] = 0;
  copy_wait<0>();
  group_publish();
  __syncthreads();
  const int place = static_cast<int>(threadIdx.x / 32 + blockIdx.x) % 4, end = (head.count() + 63) / 64 * 4;
  QueryColumns columns;
#pragma unroll 1
  for (int tile = place; tile < end; tile += 4) take_queries<T, kSums>(head, tile, columns);
  if constexpr (kSums) write_sums(head, columns.total);
  __syncthreads();
#pragma unroll 1
  for (int tile = place; tile < end; tile += 4) take_keys(head, tile);
#endif
}

template <typename T, bool kSums>
bool launch(Session& session, const AttentionGradCall& call) {
  constexpr int kBytes = kFactBytes + 4 * kBufferBytes;
  const auto kernel = group_backward<T, kSums>;
  if (!has_groups(kernel)) return false;
  allow_shared(kernel, kBytes, "attention_backward_groups");
  kernel<<<static_cast<unsigned>(call.batch * call.heads), kThreads, kBytes, session.stream>>>(call);
  check_launch("attention_backward_groups");
  return true;
}

template <bool kSums>
bool launch_in_type(Session& session, const AttentionGradCall& call) {
  return call.q.dtype == DType::kBF16 ? launch<__nv_bfloat16, kSums>(session, call)
                                      : launch<__half, kSums>(session, call);
}

}  // namespace

bool attention_backward_groups(Session& session, const AttentionGradCall& call) {
  if (call.keys < kGroupLeastKeys || call.keys > kGroupMostKeys || call.queries != call.keys) return false;
  return call.head_size <= kSize && launch_in_type<false>(session, call);
}

void attention_backward_with_sums(Session& session, const AttentionGradCall& call) {
  VT_CHECK(launch_in_type<true>(session, call), "the plugin has no kernel of warp groups for this GPU");
  Totals totals{.width = 3 * call.heads * call.head_size};
  totals.want(call.sums.target);
  finish_sums(session, call.sums.partials, call.batch * kGroupParts, totals);
}

}  // namespace vitrail::cuda
