// Attention's gradient over long sequences in 16 bits on Hopper, by two kernels of one shape: persistent
// blocks, in which one warp prefetches tiles of 64 rows by TMA and two warp groups own 64 rows each. In the
// first the groups own queries and meet all keys, which gives dq and the facts of the queries; in the second
// they own keys and meet all queries: dk and dv. There are seven GEMMs of queries x keys x size, no sums
// across groups, and every operand that a group computes stays in its registers. The next tile's GEMMs are
// started before the present tile's exponentials and differences are computed, so that they run under these.
#include <algorithm>

#include "backend/cuda/api/attention_scratch.h"
#include "backend/cuda/device/attention_backward_stream.cuh"
#include "backend/cuda/device/attention_forward.cuh"

namespace vitrail::cuda {

namespace {

using namespace stream_grad;

struct Maps {
  CUtensorMap own[3], streams[2];
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Loads all that the block's groups read; one thread runs it.
template <bool kOfKeys, int kSize>
__device__ void fetch(const Maps& maps, const Work& w, const Places<kSize>& at) {
  constexpr int kOwn = kOfKeys ? 2 : 3;
  constexpr uint32_t kTileBytes = Layout<kSize>::kTileBytes;
  const OtherSide others(w.others);
  const int steps = others.all();
  RingPlace<Layout<kSize>::kSlots> ring;
  uint32_t parity = 1;
  for (int round = 0, task; (task = task_of(round)) < w.tasks; ++round, parity ^= 1) {
    const int index = task / w.tiles, image = index / w.heads, head = index % w.heads;
    for (int group = 0; group < kGroups; ++group) {
      barrier_wait(at.own_empty(group), parity);
      barrier_arrive_with(at.own_full(group), kOwn * kTileBytes);
      for (int i = 0; i < kOwn; ++i)
        load_tile<kSize>(at.own(group, i), maps.own[i], 64, (task % w.tiles * kGroups + group) * 64, head,
                         image, at.own_full(group));
    }
    for (int step = 0; step < steps; ++step, ring.next()) {
      const uint32_t full = at.full(ring.slot);
      const int tile = others.loaded(step);
      barrier_wait(at.empty(ring.slot), ring.parity ^ 1);
      barrier_arrive_with(full, 2 * kTileBytes + (kOfKeys ? kFactBytes : 0));
      for (int i = 0; i < 2; ++i)
        load_tile<kSize>(at.tile(ring.slot, i), maps.streams[i], 64, 64 * tile, head, image, full);
      if constexpr (kOfKeys)
        tma_load_bytes(at.facts(ring.slot), w.facts + (static_cast<int64_t>(index) * steps + tile) * 128,
                       kFactBytes, full);
    }
  }
}

template <typename T, bool kOfKeys, int kSize>
__device__ void meet_all(const Work& w, const Places<kSize>& at, int group) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32 % 4;
  Rows<T, kSize, kOfKeys> rows{w, at, group, lane, warp};
  const OtherSide others(w.others);
  uint32_t parity = 0;
#pragma unroll 1
  for (int round = 0, task; (task = task_of(round)) < w.tasks; ++round, parity ^= 1) {
    const int index = task / w.tiles, first = (task % w.tiles * kGroups + group) * 64;
    if (first >= w.rows) {
      rows.skip(parity, others.all());
      continue;
    }
    const int row = first + warp * 16;
    rows.begin(index, row, parity);
    rows.meet_all(others);
    rows.end(index, row);
  }
}

#endif

template <typename T, bool kOfKeys, int kSize>
__global__ void __launch_bounds__(kThreads, 1)
    stream_backward(const __grid_constant__ Maps maps, const __grid_constant__ Work w) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ char shared[];
  const Places<kSize> at(shared);
  if (threadIdx.x == 0) at.init();
  __syncthreads();
  const int group = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kGroupThreads, 0);
  if (group == 0) {
    give_registers<24>();
    if (threadIdx.x == 0) fetch<kOfKeys>(maps, w, at);
  } else {
    take_registers<240>();
    meet_all<T, kOfKeys>(w, at, group - 1);
  }
#endif
}

template <typename T, bool kOfKeys, int kSize>
void launch_half(Session& session, const AttentionGradCall& call) {
  constexpr uint32_t kBytes = Layout<kSize>::kBytes;
  const int64_t rows = kOfKeys ? call.keys : call.queries, others = kOfKeys ? call.queries : call.keys;
  const auto map = [&](const HeadRows& of, int64_t count) {
    return heads_map(of, count, call.head_size, call.heads, call.batch, 64);
  };
  const Maps maps = kOfKeys ? Maps{.own = {map(call.k, rows), map(call.v, rows)},
                                   .streams = {map(call.q, others), map(call.dout, others)}}
                            : Maps{.own = {map(call.q, rows), map(call.dout, rows), map(call.out, rows)},
                                   .streams = {map(call.k, others), map(call.v, others)}};
  const unsigned tiles = blocks_for(rows, 64 * kGroups);
  const unsigned tasks = static_cast<unsigned>(call.batch * call.heads) * tiles;
  const Work work{.heads = static_cast<int>(call.heads),
                  .tasks = static_cast<int>(tasks),
                  .tiles = static_cast<int>(tiles),
                  .rows = static_cast<int>(rows),
                  .others = static_cast<int>(others),
                  .pieces = static_cast<int>(call.head_size) / 8,
                  .scale = call.scale,
                  .log_sums = call.log_sums,
                  .facts = static_cast<float*>(call.scratch),
                  .first = kOfKeys ? call.dk : call.dq,
                  .second = call.dv};
  const auto kernel = stream_backward<T, kOfKeys, kSize>;
  allow_shared(kernel, kBytes, "attention_backward_stream");
  const unsigned blocks = std::min(static_cast<unsigned>(session.processors), tasks);
  kernel<<<blocks, kThreads, kBytes, session.stream>>>(maps, work);
  check_launch("attention_backward_stream");
}

// What the forward op did not keep is computed again, into the scratch.
void run_forward(Session& session, AttentionGradCall& call) {
  char* sums = static_cast<char*>(call.scratch) + stream_fact_bytes(call.batch, call.heads, call.queries);
  char* out = sums + stream_sum_bytes(call.batch, call.heads, call.queries);
  const int64_t width = call.heads * call.head_size;
  call.out = {out, call.q.dtype, call.queries * width, width, call.head_size};
  call.log_sums = reinterpret_cast<const float*>(sums);
  attention_stream(session, {.batch = call.batch,
                             .heads = call.heads,
                             .queries = call.queries,
                             .keys = call.keys,
                             .head_size = call.head_size,
                             .scale = call.scale,
                             .q = call.q,
                             .k = call.k,
                             .v = call.v,
                             .out = call.out,
                             .log_sums = reinterpret_cast<float*>(sums)});
}

template <typename T, int kSize>
void launch(Session& session, AttentionGradCall call) {
  require_groups(stream_backward<T, true, kSize>);
  if (!call.log_sums) run_forward(session, call);
  launch_half<T, false, kSize>(session, call);
  launch_half<T, true, kSize>(session, call);
}

}  // namespace

void attention_backward_stream(Session& session, const AttentionGradCall& call) {
  for_stream_size(call.head_size, [&]<int kSize>(std::integral_constant<int, kSize>) {
    call.q.dtype == DType::kBF16 ? launch<__nv_bfloat16, kSize>(session, call)
                                 : launch<__half, kSize>(session, call);
  });
}

}  // namespace vitrail::cuda
