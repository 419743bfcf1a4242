// Attention's gradient over long sequences in 16 bits: a block keeps 64 rows of a head in registers and
// streams the rows of the other side through shared memory, 64 at a time, the next ones prefetched. One
// kernel computes queries: a first pass over the keys finds the facts of each query (online softmax), a
// second one gives dq. The other kernel computes keys from those facts. There are nine GEMMs of queries x
// keys x size, and no sums across blocks.
#include "backend/cuda/device/attention_backward.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kWarps = 4, kRows = 16 * kWarps;

// The part of the call that a block computes: a head, and its first row there.
struct Place {
  int64_t image, head, index;
  int first;

  __device__ Place(const AttentionGradCall& call, int64_t rows) {
    const unsigned heads = static_cast<unsigned>(call.heads);
    const unsigned chunks = static_cast<unsigned>((rows + kRows - 1) / kRows);
    index = blockIdx.x / chunks, first = static_cast<int>(blockIdx.x % chunks) * kRows;
    image = index / heads, head = index % heads;
  }
};

// The rows of two matrices streamed through shared memory, kRows of each at a time.
template <typename T, int kSize>
struct Stream {
  static constexpr uint32_t kPart = kRows * Swizzle<kSize>::kRowBytes;
  static constexpr uint32_t kBytes = 4 * kPart;
  HeadStart left, right;
  int rows, pieces;
  uint32_t base;

  __device__ __forceinline__ void fetch(int first, uint32_t at) const {
    fetch_rows<kSize, 32 * kWarps>(at, left, first, rows, kRows, pieces);
    fetch_rows<kSize, 32 * kWarps>(at + kPart, right, first, rows, kRows, pieces);
    copy_commit();
  }
  // Loads this warp's own rows of both matrices into registers.
  template <typename Rows>
  __device__ __forceinline__ void own(const Tiles<T, kSize>& tiles, int first, Rows& of_left,
                                      Rows& of_right) const {
    fetch(first, base);
    copy_wait<0>();
    __syncthreads();
    const uint32_t at = base + threadIdx.x / 32 * tiles.kBytes;
    tiles.load(of_left, at);
    tiles.load(of_right, at + kPart);
    __syncthreads();
  }
  // Calls see(first row, left tile, right tile) for every tile of 16 rows.
  template <typename See>
  __device__ __forceinline__ void each(const See& see) const {
    fetch(0, base);
#pragma unroll 1
    for (int first = 0; first < rows; first += kRows) {
      const uint32_t half = base + first / kRows % 2 * 2 * kPart,
                     other = base + (first / kRows + 1) % 2 * 2 * kPart;
      if (first + kRows < rows) {
        fetch(first + kRows, other);
        copy_wait<1>();
      } else {
        copy_wait<0>();
      }
      __syncthreads();
#pragma unroll 1
      for (int row = 0; row < kRows && first + row < rows; row += 16) {
        const uint32_t at = half + row * Swizzle<kSize>::kRowBytes;
        see(first + row, at, at + kPart);
      }
      __syncthreads();
    }
  }
};

// Sixteen queries; a lane has values of two rows, lane / 4 and the one 8 below. Each lane gathers the facts
// over the keys it computed: `top` is their largest score, and the sums are relative to it.
template <typename T, int kSize>
struct QueryRows {
  typename Tiles<T, kSize>::Rows q[1], dout[1];
  typename Tiles<T, kSize>::Sums dq[1] = {};
  float top[2] = {-1e30f, -1e30f}, sum[2] = {}, dot[2] = {};
  float log_sum[2], mean[2];

  __device__ __forceinline__ void survey(const Tiles<T, kSize>& tiles, uint32_t k, uint32_t v, int first,
                                         int keys, float unit) {
    float scores[1][2][4], dweights[1][2][4];
    tiles.dots(scores, q, k);
    tiles.dots(dweights, dout, v);
    mask_columns(scores[0], first, keys);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float now = top[row];
#pragma unroll
      for (int i = 0; i < 4; ++i) now = fmaxf(now, scores[0][i / 2][2 * row + i % 2]);
      const float keep = exp2_fast((top[row] - now) * unit);
      top[row] = now, sum[row] *= keep, dot[row] *= keep;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float weight = exp2_fast((scores[0][i / 2][2 * row + i % 2] - now) * unit);
        sum[row] += weight;
        dot[row] += weight * dweights[0][i / 2][2 * row + i % 2];
      }
    }
  }

  __device__ __forceinline__ void conclude(float unit) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float all = quad_max(top[row]), keep = exp2_fast((top[row] - all) * unit);
      const float total = quad_sum(sum[row] * keep);
      mean[row] = quad_sum(dot[row] * keep) / total;
      log_sum[row] = all * unit + log2f(total);
    }
  }

  __device__ __forceinline__ void meet(const Tiles<T, kSize>& tiles, uint32_t k, uint32_t v, int first,
                                       int keys, float unit) {
    float scores[1][2][4], dweights[1][2][4];
    uint32_t operand[1][4];
    tiles.dots(scores, q, k);
    tiles.dots(dweights, dout, v);
    mask_columns(scores[0], first, keys);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float weight = exp2_fast(scores[0][i / 4][i % 4] * unit - log_sum[i % 4 / 2]);
      dweights[0][i / 4][i % 4] = weight * (dweights[0][i / 4][i % 4] - mean[i % 4 / 2]);
    }
    pack_operand<T>(operand[0], dweights[0]);
    tiles.weigh(dq, operand, k);
  }
};

template <typename T, int kSize>
__global__ void __launch_bounds__(32 * kWarps, 2)
    backward_of_queries(const __grid_constant__ AttentionGradCall call) {
  extern __shared__ __align__(128) char shared[];
  const Place place(call, call.queries);
  const int queries = static_cast<int>(call.queries), keys = static_cast<int>(call.keys);
  const int pieces = static_cast<int>(call.head_size) / 8, first = place.first + threadIdx.x / 32 * 16;
  const uint32_t base = shared_address(shared);
  const float unit = call.scale * kLog2e;
  const auto rows_of = [&](const HeadRows& rows) { return HeadStart(rows, place.image, place.head); };
  const Stream<T, kSize> own{rows_of(call.q), rows_of(call.dout), queries, pieces, base};
  const Stream<T, kSize> others{rows_of(call.k), rows_of(call.v), keys, pieces, base};
  const Tiles<T, kSize> tiles(0);

  QueryRows<T, kSize> rows;
  own.own(tiles, place.first, rows.q, rows.dout);
  others.each([&](int key, uint32_t k, uint32_t v) { rows.survey(tiles, k, v, key, keys, unit); });
  rows.conclude(unit);
  QueryFacts* facts = static_cast<QueryFacts*>(call.scratch) + place.index * queries;
  const int query = first + threadIdx.x % 32 / 4;
  if (threadIdx.x % 4 == 0)
    for (int row = 0; row < 2; ++row)
      if (query + 8 * row < queries) facts[query + 8 * row] = {rows.log_sum[row], rows.mean[row]};
  others.each([&](int key, uint32_t k, uint32_t v) { rows.meet(tiles, k, v, key, keys, unit); });
  store_rows<T, kSize>(rows_of(call.dq), first, queries, pieces, rows.dq[0], call.scale, call.scale);
}

template <typename T, int kSize>
__global__ void __launch_bounds__(32 * kWarps, 2)
    backward_of_keys(const __grid_constant__ AttentionGradCall call) {
  extern __shared__ __align__(128) char shared[];
  const Place place(call, call.keys);
  const int queries = static_cast<int>(call.queries), keys = static_cast<int>(call.keys);
  const int pieces = static_cast<int>(call.head_size) / 8, first = place.first + threadIdx.x / 32 * 16;
  const uint32_t base = shared_address(shared);
  const auto rows_of = [&](const HeadRows& rows) { return HeadStart(rows, place.image, place.head); };
  const Stream<T, kSize> own{rows_of(call.k), rows_of(call.v), keys, pieces, base};
  const Stream<T, kSize> others{rows_of(call.q), rows_of(call.dout), queries, pieces, base};
  const QueryFacts* facts = static_cast<const QueryFacts*>(call.scratch) + place.index * queries;
  const Tiles<T, kSize> tiles(0);

  KeyRows<T, kSize, 1> rows;
  own.own(tiles, place.first, rows.k, rows.v);
  others.each([&](int query, uint32_t q, uint32_t dout) {
    QueryFacts seen[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = query + threadIdx.x % 4 * 2 + i % 2 + i / 2 * 8;
      seen[i] = at < queries ? facts[at] : QueryFacts{0, 0};
    }
    rows.meet(tiles, q, dout, seen, call.scale * kLog2e);
  });
  store_rows<T, kSize>(rows_of(call.dk), first, keys, pieces, rows.dk[0], call.scale, call.scale);
  store_rows<T, kSize>(rows_of(call.dv), first, keys, pieces, rows.dv[0], 1, 1);
}

template <typename T, int kSize>
void launch(Session& session, const AttentionGradCall& call) {
  constexpr size_t kBytes = Stream<T, kSize>::kBytes;
  const auto run = [&](auto* kernel, int64_t rows, const char* name) {
    allow_shared(kernel, kBytes, name);
    const auto blocks = static_cast<unsigned>(call.batch * call.heads * blocks_for(rows, kRows));
    kernel<<<blocks, 32 * kWarps, kBytes, session.stream>>>(call);
    check_launch(name);
  };
  run(backward_of_queries<T, kSize>, call.queries, "attention_backward_of_queries");
  run(backward_of_keys<T, kSize>, call.keys, "attention_backward_of_keys");
}

template <typename T>
void launch(Session& session, const AttentionGradCall& call) {
  if (call.head_size <= 64)
    launch<T, 64>(session, call);
  else
    launch<T, kLongHeadSize>(session, call);
}

}  // namespace

void attention_backward_long(Session& session, const AttentionGradCall& call) {
  if (call.q.dtype == DType::kF16)
    launch<__half>(session, call);
  else
    launch<__nv_bfloat16>(session, call);
}

}  // namespace vitrail::cuda
