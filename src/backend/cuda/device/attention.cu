// The table of the attention functions.
#include "backend/cuda/device/attention.cuh"
#include "backend/cuda/device/attention_forward.cuh"
#include "backend/cuda/device/plugin_tables.cuh"

namespace vitrail::cuda {

AttentionApi attention_api() {
  return {.one_forward = attention_one,
          .short_forward = attention_short,
          .stream_forward = attention_stream,
          .long_forward = attention_long,
          .plain_forward = attention_plain,
          .weights = attention_weights,
          .one_backward = attention_one_backward,
          .stream_backward = attention_backward_stream,
          .group_backward = attention_backward_with_sums,
          .backward = attention_backward};
}

}  // namespace vitrail::cuda
