// The device memory that attention's gradient needs besides its operands. The program reserves it when a plan
// is made, and the plugin's kernels divide it in the same way.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vitrail::cuda {

// Every query of every head has the mean of its weights' gradients and, of its softmax's sum, the logarithm
// or, exact in f32, the largest score and the inverse of the sum relative to it. Queries that all images
// share also have one gradient per image, before these are summed.
inline size_t attention_grad_scratch_bytes(int64_t batch, int64_t heads, int64_t queries, int64_t head_size,
                                           bool exact, bool shared_queries) {
  const int64_t rows = batch * heads * queries;
  return static_cast<size_t>(rows * ((exact ? 3 : 2) + (shared_queries ? head_size : 0))) * sizeof(float);
}

// The scratch of stream_backward: for every 64 queries of a head two facts each, then, where the forward op
// did not keep them, the logarithm of each query's sum and its output in 16 bits.
inline constexpr int64_t kFactTile = 64;
inline int64_t stream_fact_bytes(int64_t batch, int64_t heads, int64_t queries) {
  return batch * heads * ((queries + kFactTile - 1) / kFactTile) * kFactTile * int64_t{2 * sizeof(float)};
}
inline int64_t stream_sum_bytes(int64_t batch, int64_t heads, int64_t queries) {
  return (batch * heads * queries * int64_t{sizeof(float)} + 15) / 16 * 16;
}
inline size_t stream_scratch_bytes(int64_t batch, int64_t heads, int64_t queries, int64_t head_size,
                                   bool kept) {
  const int64_t rows = batch * heads * queries;
  const int64_t again = kept ? 0 : stream_sum_bytes(batch, heads, queries) + rows * head_size * 2;
  return static_cast<size_t>(stream_fact_bytes(batch, heads, queries) + again);
}

// With one query per head, the score and the weight's gradient of every key are kept: in the shared memory of
// the head's block for up to kOneKeys keys, which fits any GPU, and in scratch for more.
inline constexpr int64_t kOneKeys = 4096, kOneKeyBytes = 2 * sizeof(float);
inline size_t one_query_scratch_bytes(int64_t batch, int64_t heads, int64_t keys) {
  return keys <= kOneKeys ? 0 : static_cast<size_t>(batch * heads * keys * kOneKeyBytes);
}

}  // namespace vitrail::cuda
