// The device memory that attention's gradient needs beside its operands: launch_attention.cpp asks for it
// when a plan is made, device/attention_backward*.cu divide it up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vitrail::cuda {

// Of every query of every head two floats: the logarithm of its softmax's sum, and the mean of its weights'
// gradients. Queries that all images share have a gradient of each image besides, before these are
// summed.
inline size_t attention_grad_scratch_bytes(int64_t batch, int64_t heads, int64_t queries, int64_t head_size,
                                           bool shared_queries) {
  const int64_t rows = batch * heads * queries;
  return static_cast<size_t>(rows * (2 + (shared_queries ? head_size : 0))) * sizeof(float);
}

// Where one query asks, a score and its weight's gradient are kept of every key of every head: by the block
// that takes the head up to kOneKeys keys, which fits into any GPU's shared memory, in scratch beyond.
inline constexpr int64_t kOneKeys = 4096, kOneKeyBytes = 2 * sizeof(float);
inline size_t one_query_scratch_bytes(int64_t batch, int64_t heads, int64_t keys) {
  return keys <= kOneKeys ? 0 : static_cast<size_t>(batch * heads * keys * kOneKeyBytes);
}

}  // namespace vitrail::cuda
