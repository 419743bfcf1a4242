// The declarations that the files of attention kernels share.
#pragma once

#include "backend/cuda/api/attention.h"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

// Holds what the gradient needs of a query: the logarithm of its softmax's sum, and the mean of its weights'
// gradients. Each kernel chooses whether the logarithm is natural or to base 2.
struct QueryFacts {
  float log_sum, mean;
};

// The shared memory in bytes of a block, and that of all blocks on a multiprocessor, each of which uses some
// more.
struct SharedRoom {
  int block = 0, processor = 0, cost = 0;

  explicit SharedRoom(const Session& session) {
    const auto ask = [&](int& bytes, cudaDeviceAttr what) {
      check(cudaDeviceGetAttribute(&bytes, what, session.ordinal), "shared memory");
    };
    ask(block, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    ask(processor, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    ask(cost, cudaDevAttrReservedSharedMemoryPerBlock);
  }
  bool holds(int bytes, int blocks) const { return bytes <= block && blocks * (bytes + cost) <= processor; }
};

// Gradients of queries, keys and values; the weights are recomputed.
void attention_backward(Session& session, const AttentionGradCall& call);
void attention_backward_with_sums(Session& session, const AttentionGradCall& call);
// The same gradients for any types and sizes, without tensor cores.
void attention_backward_plain(Session& session, const AttentionGradCall& call);
// The same gradients over long sequences on Hopper.
void attention_backward_stream(Session& session, const AttentionGradCall& call);
// The same gradients with the first token as the only query.
void attention_one_backward(Session& session, const AttentionGradCall& call);

}  // namespace vitrail::cuda
