// Attention of one query per head: the class token in a last block of which nothing else is read, or a probe.
#include "backend/cuda/device/attention_forward.cuh"
#include "backend/cuda/device/attention_one_sums.cuh"
#include "backend/cuda/device/launch.cuh"

namespace vitrail::cuda {

namespace {

template <typename Cut>
__global__ void __launch_bounds__(kOneThreads, Cut::kOwn == 8 ? 4 : 2)
    one_query(const __grid_constant__ AttentionCall call) {
  __shared__ OneBoard<Cut, 1> board;
  __shared__ SharedRow<Cut> query;
  const unsigned heads = static_cast<unsigned>(call.heads), image = blockIdx.x / heads,
                 head = blockIdx.x % heads;
  const LaneRows<Cut> k(call.k, image, head, call.head_size), v(call.v, image, head, call.head_size);
  const int keys = static_cast<int>(call.keys);
  TurnRows<Cut, 128> rows;
  await_launches();
  rows.read(k, v, 0, keys);
  query.read(call.q, image, head, call.head_size);
  __syncthreads();
  float q[Cut::kOwn];
  query.own(q);
  Gathered<Cut, 1> gathered;
#pragma unroll 1
  for (int from = 0; from < keys; from += rows.kStep) {
#pragma unroll
    for (int r = 0; r < rows.kRows; ++r) {
      const float score = dot<Cut>(rows.k[r], q) * (call.scale * kLog2e);
      gathered.add({gathered.weigh(rows.key(from, r) < keys ? score : -INFINITY)}, rows.v[r]);
    }
    if (from + rows.kStep < keys) rows.read(k, v, from + rows.kStep, keys);
  }
  board.put(gathered);
  __syncthreads();
  const OneTotal<Cut, 1> total(board);
  const int e = static_cast<int>(threadIdx.x);
  if (e < call.head_size) PlainHead(call.out, image, head).put(0, e, total.of(0, e) / total.sum[0]);
}

}  // namespace

void attention_one(Session& session, const AttentionCall& call) {
  VT_CHECK(call.queries == 1 && call.head_size <= kPlainHeadSize,
           "attention_one: more queries or longer rows than it has room for");
  with_rows({&call.k, &call.v}, call.head_size, [&]<typename Cut>(Cut) {
    const auto blocks = static_cast<unsigned>(call.batch * call.heads);
    launch_early(session, "attention_one", one_query<Cut>, {blocks, kOneThreads}, call);
  });
}

}  // namespace vitrail::cuda
