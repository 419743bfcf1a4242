// The arguments of attention as the program passes them to the CUDA plugin: where queries, keys and values
// are stored, and nothing about ops or graphs.
#pragma once

#include "backend/cuda/api/rows.h"

namespace vitrail::cuda {

// The rows of every head of a tensor: row i of head h of image b starts at data + b*batch + i*row + h*head,
// in elements; the elements of a row are contiguous.
struct HeadRows {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t batch = 0, row = 0, head = 0;
};

struct AttentionCall {
  int64_t batch = 0, heads = 0, queries = 0, keys = 0, head_size = 0;
  float scale = 1;  // of the scores, before the softmax
  HeadRows q, k, v;
  HeadRows out;               // the weighted values, or for the weights themselves rows of `keys` elements
  float* log_sums = nullptr;  // of stream_forward: the base-2 logarithms of the softmax's sums, or none
};

// Queries that all images share have q.batch == dq.batch == 0; their gradient is summed over the images.
struct AttentionGradCall {
  int64_t batch = 0, heads = 0, queries = 0, keys = 0, head_size = 0;
  float scale = 1;
  HeadRows q, k, v, dout;
  HeadRows dq, dk, dv;
  HeadRows out;                     // of the forward op, or no data
  const float* log_sums = nullptr;  // of stream_forward, or none
  void* scratch = nullptr;          // as api/attention_scratch.h says
  ColumnSums sums = {};             // of dq, dk and dv, one after the other; of group_backward only
};

// The most keys and the largest head size that short_forward holds in one block's registers and shared
// memory.
inline constexpr int64_t kShortKeys = 272, kShortHeadSize = 64;
// The tokens of group_backward, which also sums its results, by kGroupParts partial sums for every image.
inline constexpr int64_t kGroupLeastKeys = 161, kGroupMostKeys = 208, kGroupParts = 4;
// The largest head size of long_forward, and that of the plain kernels and of those for one query.
inline constexpr int64_t kLongHeadSize = 128, kPlainHeadSize = 192;
// The largest head size of the stream kernels, and the fewest tokens they take: of heads up to
// kShortHeadSize, for which short_forward has fewer, and of larger ones. Fewer would be wrong in the backward
// kernels: a task must have more tiles than a block has slots, so that the next task's rows are loaded only
// after the matrix multiplications have read the present ones. The forward kernel gives its queries' place
// back late instead.
inline constexpr int64_t kStreamHeadSize = 128, kStreamKeys = kShortKeys + 1, kStreamLargeKeys = 193;

// short_forward, long_forward and the stream kernels take operands of one 16-bit type whose starts, strides
// and rows are multiples of 16 bytes; the other kernels take any mixture of types. one_forward and
// one_backward are for one query per head; one_backward is for a query that belongs to the image, whose dq
// has a row for each key: zeros but for the first. The stream kernels and group_backward need compute
// capability 9.0; group_backward takes heads of up to kShortHeadSize, all tokens being queries;
// stream_backward's queries do not share, and where it gets no `out` and `log_sums` it first computes them.
struct AttentionApi {
  void (*one_forward)(Session&, const AttentionCall&);
  void (*short_forward)(Session&, const AttentionCall&);
  void (*stream_forward)(Session&, const AttentionCall&);
  void (*long_forward)(Session&, const AttentionCall&);
  void (*plain_forward)(Session&, const AttentionCall&);
  void (*weights)(Session&, const AttentionCall&);
  void (*one_backward)(Session&, const AttentionGradCall&);
  void (*stream_backward)(Session&, const AttentionGradCall&);
  void (*group_backward)(Session&, const AttentionGradCall&);
  void (*backward)(Session&, const AttentionGradCall&);
};

}  // namespace vitrail::cuda
