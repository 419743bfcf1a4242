// Attention over short sequences in 16 bits: a block computes one head of one image after another; the head's
// keys and values all lie in shared memory, and the next head's are prefetched. A warp computes 16 queries at
// a time, from and to global memory, with the next ones prefetched too. Where there are few heads, several
// blocks share one.
#include <algorithm>
#include <iterator>

#include "backend/cuda/device/attention.cuh"
#include "backend/cuda/device/attention_forward.cuh"
#include "backend/cuda/device/attention_tiles.cuh"
#include "backend/cuda/device/launch.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kSize = kShortHeadSize;

// Sequences are padded to the next of these counts of 16-key tiles. A warp multiplies with `chunk` tiles of
// keys at a time, which decides the registers, and computes every warps-th tile of queries; `blocks` share a
// multiprocessor.
struct Shape {
  int tiles, chunk, warps, blocks;
};
constexpr Shape kShapes[] = {{4, 4, 4, 4},  {5, 5, 5, 3},  {7, 4, 7, 2},
                             {10, 5, 5, 3}, {13, 5, 4, 4}, {17, 5, 6, 2}};
static_assert(16 * kShapes[5].tiles == kShortKeys);
// The bytes of a head's keys and values in shared memory.
template <int kShape>
constexpr int kStageBytes = 2 * kShapes[kShape].tiles * 16 * kSize * 2;

// A block's part of the call. A turn of a warp is one of its tiles of queries in one of the block's heads.
template <typename T, int kShape>
struct Block {
  static constexpr Shape kNow = kShapes[kShape];
  static constexpr int kStride = kStageBytes<kShape> / 2;  // from keys to values
  const AttentionCall& call;
  int start, tile_step, head, tile;

  __device__ __forceinline__ explicit Block(const AttentionCall& c)
      : call(c),
        start(static_cast<int>(threadIdx.x / 32 * gridDim.y + blockIdx.y)),
        tile_step(static_cast<int>(kNow.warps * gridDim.y)),
        head(static_cast<int>(blockIdx.x)),
        tile(start) {}
  __device__ __forceinline__ int queries() const { return static_cast<int>(call.queries); }
  __device__ __forceinline__ int pieces() const { return static_cast<int>(call.head_size) / 8; }
  __device__ __forceinline__ int heads() const { return static_cast<int>(call.batch * call.heads); }
  __device__ __forceinline__ HeadStart start_of(const HeadRows& rows, int of) const {
    const int at = opaque(of), count = static_cast<int>(call.heads);
    return HeadStart(rows, at / count, at % count);
  }
  __device__ __forceinline__ void fetch_keys(uint32_t stage, int of) const {
    const int keys = static_cast<int>(call.keys);
    fetch_rows<kSize, 32 * kNow.warps>(stage, start_of(call.k, of), 0, keys, 16 * kNow.tiles, pieces());
    fetch_rows<kSize, 32 * kNow.warps>(stage + kStride, start_of(call.v, of), 0, keys, 16 * kNow.tiles,
                                       pieces());
    copy_commit();
  }
  // Prefetches this turn's queries; past the last head there are none.
  __device__ __forceinline__ void fetch_queries(QueryFragment& q) const {
    if (head < heads()) q.fetch(start_of(call.q, head), 16 * tile, queries(), pieces());
  }
  __device__ __forceinline__ void next_turn() {
    tile += tile_step;
    if (16 * tile < queries()) return;
    tile = start, head += static_cast<int>(gridDim.x);
  }

  // Adds the keys from tile kFrom on. Tiles that the next smaller shape would hold have no padding. Once the
  // last scores are known, the next turn's queries are prefetched.
  template <int kFrom>
  __device__ __forceinline__ void attend(const WarpTiles<T, kSize>& tiles, Answer<kSize>& answer,
                                         QueryFragment& q, uint32_t stage) {
    constexpr int kLeft = kNow.tiles - kFrom, kTiles = kLeft < kNow.chunk ? kLeft : kNow.chunk;
    constexpr int kFull = (kShape == 0 ? 0 : kShapes[kShape == 0 ? 0 : kShape - 1].tiles) - kFrom;
    constexpr uint32_t kOffset = kFrom * WarpTiles<T, kSize>::kTileBytes;
    float scores[2 * kTiles][4];
    tiles.template scores<kTiles>(scores, q, stage + kOffset);
    if constexpr (kFrom + kTiles == kNow.tiles) {
      next_turn();
      fetch_queries(q);
    }
    tiles.template take<kTiles, kFull, kFrom == 0>(answer, scores, stage + kStride + kOffset,
                                                   static_cast<int>(call.keys) - 16 * kFrom,
                                                   call.scale * kLog2e);
    if constexpr (kFrom + kTiles < kNow.tiles) attend<kFrom + kTiles>(tiles, answer, q, stage);
  }

  __device__ __forceinline__ void take_turn(QueryFragment& q, uint32_t stage) {
    const WarpTiles<T, kSize> tiles(opaque(static_cast<int>(threadIdx.x) % 32));
    const int now_head = head, now_tile = tile;
    Answer<kSize> answer;
    q.arrive();
    attend<0>(tiles, answer, q, stage);
    store_rows<T, kSize>(start_of(call.out, now_head), 16 * now_tile, queries(), pieces(), answer.o,
                         __fdividef(1, quad_sum(answer.sum[0])), __fdividef(1, quad_sum(answer.sum[1])));
  }
};

// With fewer blocks in x than heads there are two stages in shared memory.
template <typename T, int kShape>
__global__ void __launch_bounds__(kShapes[kShape].warps * 32, kShapes[kShape].blocks)
    short_attention(const __grid_constant__ AttentionCall call) {
  extern __shared__ __align__(128) char shared[];
  uint32_t stage = shared_address(shared), other = stage + kStageBytes<kShape>;
  Block<T, kShape> block(call);
  const bool works = 16 * block.start < block.queries();
  QueryFragment q;
  await_launches();
  if (works) block.fetch_queries(q);
  block.fetch_keys(stage, block.head);
  const int step = static_cast<int>(gridDim.x);
#pragma unroll 1
  for (int head = static_cast<int>(blockIdx.x); head < block.heads(); head += step) {
    copy_wait<0>();
    __syncthreads();  // also: no thread reads the other stage any more
    if (head + step < block.heads()) block.fetch_keys(other, head + step);
    if (works)
#pragma unroll 1
      while (block.head == head) block.take_turn(q, stage);
    const uint32_t done = stage;
    stage = other, other = done;
  }
}

template <typename T, int kShape = 0>
void launch(Session& session, const AttentionCall& call) {
  constexpr Shape kNow = kShapes[kShape];
  if constexpr (kShape + 1 < std::size(kShapes))
    if (call.keys > 16 * kNow.tiles) return launch<T, kShape + 1>(session, call);
  constexpr int kBytes = kStageBytes<kShape>;
  const auto heads = static_cast<unsigned>(call.batch * call.heads);
  const auto processors = static_cast<unsigned>(session.processors), seats = processors * kNow.blocks;
  const bool turns = heads > seats && SharedRoom(session).holds(2 * kBytes, kNow.blocks);
  // Blocks that share a head keep four warps busy, one on each scheduler of a multiprocessor.
  const unsigned shares = std::clamp(processors / heads, 1u, blocks_for(call.queries, 4 * 16));
  const auto kernel = short_attention<T, kShape>;
  allow_shared(kernel, turns ? 2 * kBytes : kBytes, "attention_short");
  launch_early(session, "attention_short", kernel,
               {dim3(turns ? seats : heads, shares), kNow.warps * 32, turns ? size_t{2} * kBytes : kBytes},
               call);
}

}  // namespace

void attention_short(Session& session, const AttentionCall& call) {
  VT_CHECK(call.queries <= call.keys && call.keys <= kShortKeys && call.head_size <= kShortHeadSize,
           "attention_short: given a longer sequence than it has room for");
  if (attention_groups(session, call)) return;
  if (call.q.dtype == DType::kBF16)
    launch<__nv_bfloat16>(session, call);
  else
    launch<__half>(session, call);
}

}  // namespace vitrail::cuda
