// What the attention kernels' files call of each other.
#pragma once

#include "backend/cuda/api/attention.h"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

// Of a query: the logarithm of the sum its softmax divides by, and the mean of its weights' gradients.
// Whether the logarithm is natural or to base 2 is each kernel's own.
struct QueryFacts {
  float log_sum, mean;
};

// Shared memory in bytes: of a block, and of all blocks on a processor, each of which costs some more.
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

// Gradients of queries, keys and values; the weights are computed again.
void attention_backward(Session& session, const AttentionGradCall& call);
// The same for any types and sizes, without tensor cores.
void attention_backward_plain(Session& session, const AttentionGradCall& call);
// The same where the first token alone asks.
void attention_one_backward(Session& session, const AttentionGradCall& call);

}  // namespace vitrail::cuda
