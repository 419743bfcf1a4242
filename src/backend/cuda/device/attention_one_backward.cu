// The gradient of attention with the first token as the only query, where every token has a row in dq: zeros
// but for the first. One pass over keys and values gives the scores and the gradients of weights, which are
// kept, and with them the softmax's sum, the mean of the weights' gradients and dq; a second one writes dk
// and dv. dq = scale sum p (dp - mean) k is computed as scale (sum p dp k - mean sum p k), so that the mean
// may come last.
#include "backend/cuda/api/attention_scratch.h"
#include "backend/cuda/device/attention.cuh"
#include "backend/cuda/device/attention_one_sums.cuh"

namespace vitrail::cuda {

namespace {

// Holds what is kept of a key: its score in units of log 2, and the gradient of its weight.
struct KeyFacts {
  float score, dweight;
};
static_assert(sizeof(KeyFacts) == kOneKeyBytes);

// The block's head and this lane's part of q and dout.
template <typename Cut>
struct OneHead {
  const AttentionGradCall& call;
  const unsigned heads = static_cast<unsigned>(call.heads), image = blockIdx.x / heads,
                 head = blockIdx.x % heads;
  const int keys = static_cast<int>(call.keys);
  KeyFacts* facts;
  float q[Cut::kOwn], dout[Cut::kOwn];

  __device__ __forceinline__ LaneRows<Cut> rows(const HeadRows& of) const {
    return LaneRows<Cut>(of, image, head, call.head_size);
  }

  __device__ __forceinline__ void gather(Gathered<Cut, 2>& gathered, SharedRow<Cut> (&query_rows)[2]) {
    const LaneRows<Cut> k = rows(call.k), v = rows(call.v);
    TurnRows<Cut, 64> now;
    now.read(k, v, 0, keys);
    query_rows[0].read(call.q, image, head, call.head_size);
    query_rows[1].read(call.dout, image, head, call.head_size);
    __syncthreads();
    query_rows[0].own(q), query_rows[1].own(dout);
#pragma unroll 1
    for (int from = 0; from < keys; from += now.kStep) {
#pragma unroll
      for (int r = 0; r < now.kRows; ++r) {
        const int key = now.key(from, r);
        const float score = dot<Cut>(now.k[r], q) * (call.scale * kLog2e);
        const float dweight = dot<Cut>(now.v[r], dout);
        if (key < keys && threadIdx.x % kOneLanes == 0) facts[key] = {score, dweight};
        const float weight = gathered.weigh(key < keys ? score : -INFINITY);
        gathered.add({weight, weight * dweight}, now.k[r]);
      }
      if (from + now.kStep < keys) now.read(k, v, from + now.kStep, keys);
    }
  }

  __device__ __forceinline__ void write_keys(float top, float inverse, float mean) const {
    const LaneRows<Cut> dq = rows(call.dq), dk = rows(call.dk), dv = rows(call.dv);
    const float zeros[Cut::kOwn] = {};
#pragma unroll 2
    for (int key = static_cast<int>(threadIdx.x) / kOneLanes; key < keys; key += kOneGroups) {
      const KeyFacts fact = facts[key];
      const float weight = exp2_fast(fact.score - top) * inverse;
      dk.write(key, q, weight * (fact.dweight - mean) * call.scale);
      dv.write(key, dout, weight);
      if (key > 0) dq.write(key, zeros, 1);
    }
  }
};

template <typename Cut>
__global__ void __launch_bounds__(kOneThreads, Cut::kOwn == 8 ? 3 : 1)
    one_query_backward(const __grid_constant__ AttentionGradCall call) {
  extern __shared__ KeyFacts kept[];
  __shared__ OneBoard<Cut, 2> board;
  __shared__ SharedRow<Cut> query_rows[2];
  OneHead<Cut> block{call};
  block.facts = call.keys <= kOneKeys ? kept : static_cast<KeyFacts*>(call.scratch) + blockIdx.x * call.keys;
  {
    Gathered<Cut, 2> gathered;
    block.gather(gathered, query_rows);
    board.put(gathered);
  }
  __syncthreads();
  const OneTotal<Cut, 2> total(board);
  const float inverse = 1 / total.sum[0], mean = total.sum[1] * inverse;
  const int e = static_cast<int>(threadIdx.x);
  if (e < call.head_size)  // without an FMA, so that one key alone gives 0
    PlainHead(call.dq, block.image, block.head)
        .put(0, e, (total.of(1, e) - __fmul_rn(mean, total.of(0, e))) * inverse * call.scale);
  block.write_keys(total.top, inverse, mean);
}

}  // namespace

void attention_one_backward(Session& session, const AttentionGradCall& call) {
  VT_CHECK(call.queries == 1 && call.q.batch != 0 && call.head_size <= kPlainHeadSize,
           "attention_one_backward: more queries or longer rows than it has room for, or a shared query");
  with_rows({&call.k, &call.v, &call.dq, &call.dk, &call.dv}, call.head_size, [&]<typename Cut>(Cut) {
    const auto blocks = static_cast<unsigned>(call.batch * call.heads);
    const size_t bytes = call.keys <= kOneKeys ? sizeof(KeyFacts) * static_cast<size_t>(call.keys) : 0;
    one_query_backward<Cut><<<blocks, kOneThreads, bytes, session.stream>>>(call);
    check_launch("attention_one_backward");
  });
}

}  // namespace vitrail::cuda
