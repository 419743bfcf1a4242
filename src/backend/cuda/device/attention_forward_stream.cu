// Attention over long sequences in 16 bits on Hopper: in persistent blocks one warp prefetches tiles of keys
// and values by TMA, and two warp groups have 64 queries each. A group starts the matrix multiplication of
// its queries with the next keys and that of its weights with the present values together, and computes the
// next weights under the second. The last tile is multiplied no wider than its keys need.
#include <algorithm>

#include "backend/cuda/device/attention_forward.cuh"
#include "backend/cuda/device/attention_forward_stream.cuh"

namespace vitrail::cuda {

namespace {

using namespace stream_forward;

struct Maps {
  CUtensorMap q, k, v;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Loads all that the block's groups read; one thread runs it.
template <int kSize>
__device__ void fetch(const Maps& maps, const Work& w, const Places<kSize>& at) {
  RingPlace<kSlots<kSize>> ring;
  uint32_t parity = 1;
  const auto load = [](uint32_t to, const CUtensorMap& map, int rows, int row, int head, int image,
                       uint32_t full, uint32_t empty, uint32_t free) {
    barrier_wait(empty, free);
    barrier_arrive_with(full, HeadTile<kSize>::bytes(rows));
    load_tile<kSize>(to, map, rows, row, head, image, full);
  };
  for (int round = 0, task; (task = task_of(round)) < w.tasks; ++round, parity ^= 1) {
    const int index = task / w.tiles, image = index / w.heads, head = index % w.heads;
    for (int group = 0; group < kGroups; ++group)
      load(at.q(group), maps.q, 64, (task % w.tiles * kGroups + group) * 64, head, image, at.q_full(group),
           at.q_empty(group), parity);
    for (int key = 0; key < w.keys; key += kKeys, ring.next()) {
      load(at.k(ring.slot), maps.k, kKeys, key, head, image, at.k_full(ring.slot), at.k_empty(ring.slot),
           ring.parity ^ 1);
      load(at.v(ring.slot), maps.v, kKeys, key, head, image, at.v_full(ring.slot), at.v_empty(ring.slot),
           ring.parity ^ 1);
    }
  }
}

template <typename T, int kSize>
__device__ void attend_all(const Work& w, const Places<kSize>& at, int group) {
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  Queries<T, kSize> queries{w, at, group, static_cast<int>(threadIdx.x) % 32};
  uint32_t parity = 0;
#pragma unroll 1
  for (int round = 0, task; (task = task_of(round)) < w.tasks; ++round, parity ^= 1) {
    const int first = (task % w.tiles * kGroups + group) * 64;
    if (first >= w.queries) {
      queries.skip(parity, (w.keys + kKeys - 1) / kKeys);
      continue;
    }
    queries.begin(warp, parity);
    queries.attend(w.keys);
    queries.end(task / w.tiles, first + warp * 16);
  }
}

#endif

template <typename T, int kSize>
__global__ void __launch_bounds__(kThreads, 1)
    stream_attention(const __grid_constant__ Maps maps, const __grid_constant__ Work w) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ char shared[];
  const Places<kSize> at(shared);
  if (threadIdx.x == 0) at.init();
  __syncthreads();
  const int group = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kGroupThreads, 0);
  if (group == 0) {
    give_registers<24>();
    if (threadIdx.x == 0) fetch(maps, w, at);
  } else {
    take_registers<240>();
    attend_all<T>(w, at, group - 1);
  }
#endif
}

template <typename T, int kSize>
void launch(Session& session, const AttentionCall& call) {
  constexpr uint32_t kBytes = Layout<kSize>::kBytes;
  const auto kernel = stream_attention<T, kSize>;
  require_groups(kernel);
  const auto map = [&](const HeadRows& rows, int64_t count, int box) {
    return heads_map(rows, count, call.head_size, call.heads, call.batch, box);
  };
  const Maps maps{.q = map(call.q, call.queries, 64),
                  .k = map(call.k, call.keys, kKeys),
                  .v = map(call.v, call.keys, kKeys)};
  const unsigned tiles = blocks_for(call.queries, 64 * kGroups);
  const unsigned tasks = static_cast<unsigned>(call.batch * call.heads) * tiles;
  const Work work{.heads = static_cast<int>(call.heads),
                  .tasks = static_cast<int>(tasks),
                  .tiles = static_cast<int>(tiles),
                  .queries = static_cast<int>(call.queries),
                  .keys = static_cast<int>(call.keys),
                  .pieces = static_cast<int>(call.head_size) / 8,
                  .unit = call.scale * kLog2e,
                  .out = call.out,
                  .log_sums = call.log_sums};
  allow_shared(kernel, kBytes, "attention_stream");
  const unsigned blocks = std::min(static_cast<unsigned>(session.processors), tasks);
  kernel<<<blocks, kThreads, kBytes, session.stream>>>(maps, work);
  check_launch("attention_stream");
}

}  // namespace

void attention_stream(Session& session, const AttentionCall& call) {
  for_stream_size(call.head_size, [&]<int kSize>(std::integral_constant<int, kSize>) {
    call.q.dtype == DType::kBF16 ? launch<__nv_bfloat16, kSize>(session, call)
                                 : launch<__half, kSize>(session, call);
  });
}

}  // namespace vitrail::cuda
