// Attention in 16 bits over sequences that do not fit into one block's shared memory: a block has 64 queries,
// and keys and values come in tiles of 64 that are prefetched while the tiles before them are used.
#include "backend/cuda/device/attention_forward.cuh"
#include "backend/cuda/device/attention_tiles.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kWarps = 4, kThreads = 32 * kWarps, kQueries = 16 * kWarps;
constexpr int kTiles = 4, kKeys = 16 * kTiles, kStages = 2;

template <int kSize>
constexpr uint32_t kStageBytes = kKeys* Swizzle<kSize>::kRowBytes;

template <typename T, int kSize>
__global__ void __launch_bounds__(kThreads)
    long_attention(const __grid_constant__ AttentionCall call, int parts, int key_tiles) {
  using Tiles = WarpTiles<T, kSize>;
  extern __shared__ __align__(128) char shared[];
  const uint32_t q = shared_address(shared), k = q + kQueries * Swizzle<kSize>::kRowBytes,
                 v = k + kStages * kStageBytes<kSize>;
  const unsigned task = blockIdx.x / static_cast<unsigned>(parts), heads = static_cast<unsigned>(call.heads);
  const int64_t image = task / heads, head = task % heads;
  const int first = static_cast<int>(blockIdx.x % static_cast<unsigned>(parts)) * kQueries;
  const int queries = static_cast<int>(call.queries), keys = static_cast<int>(call.keys);
  const int pieces = static_cast<int>(call.head_size) / 8;
  const HeadStart k_head(call.k, image, head), v_head(call.v, image, head);
  const auto fetch = [&](int tile) {
    const uint32_t stage = static_cast<uint32_t>(tile % kStages) * kStageBytes<kSize>;
    if (tile < key_tiles) {
      fetch_rows<kSize, kThreads>(k + stage, k_head, kKeys * tile, keys, kKeys, pieces);
      fetch_rows<kSize, kThreads>(v + stage, v_head, kKeys * tile, keys, kKeys, pieces);
    }
    copy_commit();
  };
  fetch_rows<kSize, kThreads>(q, HeadStart(call.q, image, head), first, queries, kQueries, pieces);
  fetch(0);

  const int warp = static_cast<int>(threadIdx.x) / 32;
  const Tiles tiles(static_cast<int>(threadIdx.x) % 32);
  const uint32_t own_q = q + static_cast<uint32_t>(warp) * Tiles::kTileBytes;
  const float scale = call.scale * kLog2e;
  const auto operand = [&](uint32_t(&a)[4], int step) { load16x16(a, own_q + tiles.lane_offsets[step]); };
  Answer<kSize> answer;
  for (int tile = 0; tile < key_tiles; ++tile) {
    fetch(tile + 1);
    copy_wait<1>();
    __syncthreads();
    const uint32_t stage = static_cast<uint32_t>(tile % kStages) * kStageBytes<kSize>;
    float scores[2 * kTiles][4];
    tiles.template scores<kTiles>(scores, operand, k + stage);
    if (tile == 0)
      tiles.template take<kTiles, 0, true>(answer, scores, v + stage, keys, scale);
    else
      tiles.template take<kTiles, 0, false>(answer, scores, v + stage, keys - kKeys * tile, scale);
    __syncthreads();
  }
  const HeadStart out(call.out, image, head);
  const int own_first = first + 16 * warp;
  tiles.store(answer, shared + warp * static_cast<int>(Tiles::kTileBytes),
              out.data + own_first * out.row_bytes, out.row_bytes, queries - own_first, pieces);
}

template <typename T, int kSize>
void launch(Session& session, const AttentionCall& call) {
  constexpr size_t kBytes = kQueries * Swizzle<kSize>::kRowBytes + 2 * kStages * kStageBytes<kSize>;
  allow_shared(long_attention<T, kSize>, kBytes, "attention_long");
  const unsigned parts = blocks_for(call.queries, kQueries);
  const unsigned blocks = static_cast<unsigned>(call.batch * call.heads) * parts;
  long_attention<T, kSize><<<blocks, kThreads, kBytes, session.stream>>>(
      call, static_cast<int>(parts), static_cast<int>(blocks_for(call.keys, kKeys)));
  check_launch("attention_long");
}

template <typename T>
void launch_for(Session& session, const AttentionCall& call) {
  if (call.head_size <= 64) return launch<T, 64>(session, call);
  if (call.head_size <= 80) return launch<T, 80>(session, call);
  if (call.head_size <= 96) return launch<T, 96>(session, call);
  launch<T, 128>(session, call);
}

}  // namespace

void attention_long(Session& session, const AttentionCall& call) {
  VT_CHECK(call.head_size <= kLongHeadSize, "attention_long: heads of more than %lld elements",
           static_cast<long long>(kLongHeadSize));
  if (call.q.dtype == DType::kBF16)
    launch_for<__nv_bfloat16>(session, call);
  else
    launch_for<__half>(session, call);
}

}  // namespace vitrail::cuda
