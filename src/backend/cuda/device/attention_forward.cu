// Attention over short sequences in 16 bits: a block takes one head of one picture, whose queries, keys and
// values all lie in shared memory, and a warp takes 16 queries at a time, whose scores against every key stay
// in registers. Read once, written once.
#include <iterator>

#include "backend/cuda/device/attention_forward.cuh"
#include "backend/cuda/device/attention_tiles.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kSize = kShortHeadSize;

// Sequences are padded to the next of these counts of 16-key tiles. A warp takes `chunk` tiles of keys at a
// time, which decides the registers, and every warps-th tile of queries; `blocks` share a multiprocessor.
struct Shape {
  int tiles, chunk, warps, blocks;
};
constexpr Shape kShapes[] = {{4, 4, 4, 5},  {5, 5, 5, 4},  {7, 7, 7, 2},
                             {10, 5, 5, 3}, {13, 7, 7, 2}, {17, 6, 6, 2}};
static_assert(16 * kShapes[5].tiles == kShortKeys);

// The keys from tile kFrom on. Tiles that the next smaller shape would hold are full.
template <typename T, int kShape, int kFrom>
__device__ __forceinline__ void attend_from(const WarpTiles<T, kSize>& tiles, Answer<kSize>& answer,
                                            uint32_t q, uint32_t k, uint32_t v, int keys, float scale) {
  constexpr Shape kNow = kShapes[kShape];
  constexpr int kTiles = kNow.tiles - kFrom < kNow.chunk ? kNow.tiles - kFrom : kNow.chunk;
  constexpr int kFull = (kShape == 0 ? 0 : kShapes[kShape == 0 ? 0 : kShape - 1].tiles) - kFrom;
  constexpr uint32_t kOffset = kFrom * WarpTiles<T, kSize>::kTileBytes;
  tiles.template attend<kTiles, kFull, kFrom == 0>(answer, q, k + kOffset, v + kOffset, keys - 16 * kFrom,
                                                   scale);
  if constexpr (kFrom + kTiles < kNow.tiles)
    attend_from<T, kShape, kFrom + kTiles>(tiles, answer, q, k, v, keys, scale);
}

template <typename T, int kShape>
__global__ void __launch_bounds__(kShapes[kShape].warps * 32, kShapes[kShape].blocks)
    short_attention(const __grid_constant__ AttentionCall call) {
  using Tiles = WarpTiles<T, kSize>;
  constexpr int kTiles = kShapes[kShape].tiles, kWarps = kShapes[kShape].warps;
  extern __shared__ __align__(128) char shared[];
  const uint32_t q = shared_address(shared), k = q + kTiles * Tiles::kTileBytes,
                 v = k + kTiles * Tiles::kTileBytes;
  const unsigned heads = static_cast<unsigned>(call.heads);
  const int64_t picture = blockIdx.x / heads, head = blockIdx.x % heads;
  const int queries = static_cast<int>(call.queries), keys = static_cast<int>(call.keys);
  const int pieces = static_cast<int>(call.head_size) / 8, query_tiles = (queries + 15) / 16;

  fetch_rows<kSize, 32 * kWarps>(q, HeadStart(call.q, picture, head), 0, queries, 16 * query_tiles, pieces);
  fetch_rows<kSize, 32 * kWarps>(k, HeadStart(call.k, picture, head), 0, keys, 16 * kTiles, pieces);
  fetch_rows<kSize, 32 * kWarps>(v, HeadStart(call.v, picture, head), 0, keys, 16 * kTiles, pieces);
  copy_commit();
  copy_wait<0>();
  __syncthreads();

  const HeadStart out(call.out, picture, head);
#pragma unroll 1
  for (int tile = static_cast<int>(threadIdx.x) / 32; tile < query_tiles; tile += kWarps) {
    const Tiles tiles(opaque(static_cast<int>(threadIdx.x) % 32));
    Answer<kSize> answer;
    attend_from<T, kShape, 0>(tiles, answer, q + tile * Tiles::kTileBytes, k, v, keys, call.scale * kLog2e);
    tiles.store(answer, shared + tile * Tiles::kTileBytes, out.data + 16 * tile * out.row_bytes,
                out.row_bytes, queries - 16 * tile, pieces);
  }
}

template <typename T, int kShape = 0>
void launch(Session& session, const AttentionCall& call) {
  constexpr Shape kNow = kShapes[kShape];
  if constexpr (kShape + 1 < std::size(kShapes))
    if (call.keys > 16 * kNow.tiles) return launch<T, kShape + 1>(session, call);
  constexpr size_t kBytes = 3 * kNow.tiles * WarpTiles<T, kSize>::kTileBytes;
  allow_shared(short_attention<T, kShape>, kBytes, "attention_short");
  const unsigned blocks = static_cast<unsigned>(call.batch * call.heads);
  short_attention<T, kShape><<<blocks, kNow.warps * 32, kBytes, session.stream>>>(call);
  check_launch("attention_short");
}

}  // namespace

void attention_short(Session& session, const AttentionCall& call) {
  VT_CHECK(call.queries <= call.keys && call.keys <= kShortKeys && call.head_size <= kShortHeadSize,
           "attention_short: given a longer sequence than it has room for");
  if (call.q.dtype == DType::kBF16)
    launch<__nv_bfloat16>(session, call);
  else
    launch<__half>(session, call);
}

}  // namespace vitrail::cuda
