// Attention's gradient where the queries, keys, values and output gradients of a head all fit into shared
// memory: one block per head, every element read once and written once. Where two heads fit, a block computes
// one head after another and prefetches the next one's rows. First each warp multiplies 16 queries at a time
// with all keys: weights and their gradients stay in registers until the row's mean is known, and give dq.
// Then it multiplies 16 or 32 keys at a time with all queries: dk and dv. There are seven GEMMs of queries x
// keys x size, and no sums across warps. A tile of 16 x 16 costs 56 tensor-core instructions, 20 ldmatrix of
// 512 bytes (28 where a warp owns 16 keys) and 16 exponentials per lane.
#include "backend/cuda/device/attention_backward.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kSize = 64;

// The most tiles of 16 rows of a head, the warps that divide them, the tiles of keys that a warp owns at a
// time, and the blocks that a multiprocessor should hold. The rows of one head in shared memory are a stage.
template <int kTiles_, int kWarps_, int kOwn_, int kBlocks_>
struct Cut {
  static constexpr int kTiles = kTiles_, kWarps = kWarps_, kOwn = kOwn_, kBlocks = kBlocks_;
  static constexpr uint32_t kQ = 0, kK = kTiles * 16 * kSize * 2, kV = 2 * kK, kDout = 3 * kK;
  static constexpr int kStageBytes = 4 * kK, kFactBytes = kTiles * 16 * sizeof(QueryFacts);
};

// The start of a head is recomputed wherever it is needed, which saves registers.
__device__ __forceinline__ HeadStart head_of(const HeadRows& rows, int64_t heads, int index) {
  const int at = opaque(index), count = static_cast<int>(heads);
  return HeadStart(rows, at / count, at % count);
}

// Sixteen queries against all keys. A lane's values belong to row lane / 4 and to the row 8 below; weights
// and the scores' gradients are divided by the softmax's sum only at the end.
template <typename T, typename Cut>
struct Queries {
  static constexpr int kTiles = Cut::kTiles;
  const Tiles<T, kSize>& tiles;
  uint32_t weights[kTiles][1][4];  // A operands, later of the scores' gradients
  float log_sum[2], inverse[2], mean[2];

  __device__ __forceinline__ void softmax(uint32_t q, int keys, float unit) {
    float scores[kTiles][1][2][4], top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    typename Tiles<T, kSize>::Rows rows[1];
    tiles.load(rows, q);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      tiles.dots(scores[tile], rows, Cut::kK + tile * tiles.kBytes);
      mask_columns(scores[tile][0], tile * 16, keys);
#pragma unroll
      for (int i = 0; i < 8; ++i) top[i % 4 / 2] = fmaxf(top[i % 4 / 2], scores[tile][0][i / 4][i % 4]);
    }
    for (float& x : top) x = quad_max(x) * unit;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        float& score = scores[tile][0][i / 4][i % 4];
        score = exp2_fast(score * unit - top[i % 4 / 2]);
        sum[i % 4 / 2] += score;
      }
      pack_operand<T>(weights[tile][0], scores[tile][0]);
    }
    for (int row = 0; row < 2; ++row) {
      const float total = quad_sum(sum[row]);
      log_sum[row] = top[row] + log2f(total);
      inverse[row] = 1 / total;
    }
  }

  __device__ __forceinline__ void differentiate(uint32_t dout) {
    float dweights[kTiles][1][2][4], sum[2] = {0, 0};
    typename Tiles<T, kSize>::Rows rows[1];
    tiles.load(rows, dout);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      tiles.dots(dweights[tile], rows, Cut::kV + tile * tiles.kBytes);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 weight = unpack2<T>(weights[tile][0][i]);
        const float(&dweight)[4] = dweights[tile][0][i / 2];
        sum[i % 2] += weight.x * dweight[i % 2 * 2] + weight.y * dweight[i % 2 * 2 + 1];
      }
    }
    for (int row = 0; row < 2; ++row) mean[row] = quad_sum(sum[row]) * inverse[row];
#pragma unroll
    for (int i = 0; i < kTiles * 4; ++i) {
      uint32_t& pair = weights[i / 4][0][i % 4];
      const float2 weight = unpack2<T>(pair);
      const float(&dweight)[4] = dweights[i / 4][0][i % 4 / 2];
      pair = pack2<T>(weight.x * (dweight[i % 2 * 2] - mean[i % 2]),
                      weight.y * (dweight[i % 2 * 2 + 1] - mean[i % 2]));
    }
  }

  __device__ __forceinline__ void store(const AttentionGradCall& call, int head, int first) const {
    typename Tiles<T, kSize>::Sums sums[1] = {};
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) tiles.weigh(sums, weights[tile], Cut::kK + tile * tiles.kBytes);
    store_rows<T, kSize>(head_of(call.dq, call.heads, head), first, static_cast<int>(call.queries),
                         static_cast<int>(call.head_size) / 8, sums[0], call.scale * inverse[0],
                         call.scale * inverse[1]);
  }
};

template <typename T, typename Cut>
__device__ __forceinline__ void query_tile(const AttentionGradCall& call, const Tiles<T, kSize>& tiles,
                                           int head, int tile, QueryFacts* facts) {
  const uint32_t at = tile * tiles.kBytes;
  Queries<T, Cut> queries{tiles};
  queries.softmax(Cut::kQ + at, static_cast<int>(call.keys), call.scale * kLog2e);
  queries.differentiate(Cut::kDout + at);
  if (threadIdx.x % 4 == 0)
    for (int row = 0; row < 2; ++row)
      facts[tile * 16 + threadIdx.x % 32 / 4 + 8 * row] = {queries.log_sum[row], queries.mean[row]};
  queries.store(call, head, tile * 16);
}

// With an odd number of tiles, the rows past the last tile are other data in shared memory; their results are
// not stored.
template <typename T, typename Cut>
__device__ __forceinline__ void key_tiles(const AttentionGradCall& call, const Tiles<T, kSize>& tiles,
                                          int head, int tile, const QueryFacts* facts) {
  const int count = static_cast<int>(call.keys), pieces = static_cast<int>(call.head_size) / 8;
  KeyRows<T, kSize, Cut::kOwn> own;
  tiles.load(own.k, Cut::kK + tile * tiles.kBytes);
  tiles.load(own.v, Cut::kV + tile * tiles.kBytes);
#pragma unroll 1
  for (int first = 0; first < count; first += 16) {
    QueryFacts seen[4];
    for (int i = 0; i < 4; ++i) seen[i] = facts[first + threadIdx.x % 4 * 2 + i % 2 + i / 2 * 8];
    const uint32_t at = first / 16 * tiles.kBytes;
    own.meet(tiles, Cut::kQ + at, Cut::kDout + at, seen, call.scale * kLog2e);
  }
  const HeadStart dk = head_of(call.dk, call.heads, head), dv = head_of(call.dv, call.heads, head);
#pragma unroll
  for (int i = 0; i < Cut::kOwn; ++i) {
    store_rows<T, kSize>(dk, (tile + i) * 16, count, pieces, own.dk[i], call.scale, call.scale);
    store_rows<T, kSize>(dv, (tile + i) * 16, count, pieces, own.dv[i], 1, 1);
  }
}

template <typename T, typename Cut>
__device__ __forceinline__ void fetch_head(const AttentionGradCall& call, uint32_t stage, int head) {
  const auto fetch = [&](uint32_t at, const HeadRows& rows) {
    fetch_rows<kSize, 32 * Cut::kWarps>(stage + at, head_of(rows, call.heads, head), 0,
                                        static_cast<int>(call.keys), 16 * Cut::kTiles,
                                        static_cast<int>(call.head_size) / 8);
  };
  fetch(Cut::kQ, call.q);
  fetch(Cut::kK, call.k);
  fetch(Cut::kV, call.v);
  fetch(Cut::kDout, call.dout);
  copy_commit();
}

// With fewer blocks than heads there are two stages in shared memory.
template <typename T, typename Cut>
__global__ void __launch_bounds__(32 * Cut::kWarps, Cut::kBlocks)
    attention_backward_short(const __grid_constant__ AttentionGradCall call) {
  extern __shared__ __align__(128) unsigned char stages[];
  QueryFacts* facts = reinterpret_cast<QueryFacts*>(stages);
  uint32_t stage = shared_address(stages) + Cut::kFactBytes, other = stage + Cut::kStageBytes;
  const int tile_count = (static_cast<int>(call.keys) + 15) / 16, warp = threadIdx.x / 32;
  const int heads = static_cast<int>(call.batch * call.heads), step = static_cast<int>(gridDim.x);
  fetch_head<T, Cut>(call, stage, static_cast<int>(blockIdx.x));
#pragma unroll 1
  for (int head = static_cast<int>(blockIdx.x); head < heads; head += step) {
    copy_wait<0>();
    __syncthreads();  // also: no thread reads the other stage any more
    if (head + step < heads) fetch_head<T, Cut>(call, other, head + step);
    const Tiles<T, kSize> tiles(stage);
#pragma unroll 1
    for (int tile = warp; tile < tile_count; tile += Cut::kWarps)
      query_tile<T, Cut>(call, tiles, head, tile, facts);
    __syncthreads();
#pragma unroll 1
    for (int tile = warp * Cut::kOwn; tile < tile_count; tile += Cut::kWarps * Cut::kOwn)
      key_tiles<T, Cut>(call, tiles, head, tile, facts);
    const uint32_t done = stage;
    stage = other, other = done;
  }
}

template <typename T, typename Cut>
bool try_short(Session& session, const AttentionGradCall& call, const SharedRoom& room) {
  constexpr int kOne = Cut::kFactBytes + Cut::kStageBytes, kTwo = kOne + Cut::kStageBytes;
  if (call.keys > Cut::kTiles * 16 || kOne > room.block) return false;
  const auto heads = static_cast<unsigned>(call.batch * call.heads);
  const auto seats = static_cast<unsigned>(session.processors * Cut::kBlocks);
  const bool turns = heads > seats && room.holds(kTwo, Cut::kBlocks);
  const int bytes = turns ? kTwo : kOne;
  const auto kernel = attention_backward_short<T, Cut>;
  allow_shared(kernel, bytes, "attention_backward_short");
  kernel<<<turns ? seats : heads, 32 * Cut::kWarps, bytes, session.stream>>>(call);
  check_launch("attention_backward_short");
  return true;
}

template <typename T>
bool try_short(Session& session, const AttentionGradCall& call) {
  const SharedRoom room(session);
  return call.head_size <= kSize && call.queries == call.keys &&
         (try_short<T, Cut<5, 5, 1, 2>>(session, call, room) ||
          try_short<T, Cut<13, 4, 2, 2>>(session, call, room) ||
          try_short<T, Cut<17, 8, 2, 1>>(session, call, room));
}

// The tensor-core kernels need rows in whole pieces of 16 bytes, one type for all operands, and queries that
// images do not share.
bool suits_tensor_cores(const AttentionGradCall& call) {
  const DType dtype = call.q.dtype;
  bool same = dtype == DType::kBF16 || dtype == DType::kF16;
  for (const HeadRows* rows : {&call.k, &call.v, &call.dout, &call.dq, &call.dk, &call.dv})
    same = same && rows->dtype == dtype;
  return same && call.q.batch != 0 && call.head_size % 8 == 0 && call.head_size <= kLongHeadSize;
}

}  // namespace

void attention_backward(Session& session, const AttentionGradCall& call) {
  if (!suits_tensor_cores(call)) return attention_backward_plain(session, call);
  if (attention_backward_groups(session, call)) return;
  const bool half = call.q.dtype == DType::kF16;
  if (!(half ? try_short<__half>(session, call) : try_short<__nv_bfloat16>(session, call)))
    attention_backward_long(session, call);
}

}  // namespace vitrail::cuda
