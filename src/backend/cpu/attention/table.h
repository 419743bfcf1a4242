// The table of the vector functions of attention and its gradient at one instruction set, and their
// arguments. Each file of isa/ fills its own table.
#pragma once

#include <cstdint>

namespace vitrail::cpu {

// out = softmax(scale * q k^T) v for some query rows of one head.
struct AttentionTile {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  int64_t q_stride = 0, k_stride = 0, v_stride = 0;  // elements between tokens
  float* out = nullptr;
  int64_t out_stride = 0;
  int64_t queries = 0, keys = 0, head_size = 0;
  float scale = 1;
  float* scratch = nullptr;  // attention_scratch_elems(queries, keys, head_size), 64-byte aligned
};

// The gradient of attention for one head: dq, dk and dv from q, k, v and dout. The weights are recomputed.
struct AttentionGradTile {
  const float *q = nullptr, *k = nullptr, *v = nullptr, *dout = nullptr;
  int64_t q_stride = 0, k_stride = 0, v_stride = 0, dout_stride = 0;  // elements between tokens
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;                  // strides as q, k and v
  int64_t queries = 0, keys = 0, head_size = 0;
  float scale = 1;
  float* scratch = nullptr;  // attention_grad_scratch_elems(queries, keys, head_size), 64-byte aligned
};

struct AttentionTable {
  int64_t (*attention_scratch_elems)(int64_t queries, int64_t keys, int64_t head_size);
  void (*attention_tile)(const AttentionTile&);
};

struct AttentionGradTable {
  int64_t (*attention_grad_scratch_elems)(int64_t queries, int64_t keys, int64_t head_size);
  void (*attention_grad_tile)(const AttentionGradTile&);
};

}  // namespace vitrail::cpu
