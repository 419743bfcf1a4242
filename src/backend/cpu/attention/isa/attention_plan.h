// The layout of a tile's scratch in attention and its gradient. The functions have internal linkage, since
// the linker might otherwise keep a copy compiled for another instruction set.
#pragma once

#include "backend/cpu/isa/shape.h"

namespace vitrail::cpu::VT_ISA {
namespace {

inline constexpr int64_t kKeyBlock = 256;
inline constexpr int64_t kQueryBlock = 24;  // with 256 scores each: 24 KB

struct AttentionPlan {
  int64_t key_block, key_cols, out_cols;  // the last two padded to panels
  float *keys, *values, *scores, *sums, *top, *total;
  int64_t elems;

  AttentionPlan(int64_t queries, int64_t key_count, int64_t head_size, float* scratch) {
    key_block = ceil_div(key_count, ceil_div(key_count, kKeyBlock));
    key_cols = round_up(key_block, kNr);
    out_cols = round_up(head_size, kNr);
    keys = scratch;
    values = keys + key_cols * head_size;
    scores = values + key_block * out_cols;
    sums = scores + kQueryBlock * key_cols;
    top = sums + queries * out_cols;
    total = top + queries;
    elems = total + queries - scratch;
  }
};

inline constexpr int64_t kBlockElems = 24576;  // scores of a block, and as many gradients: 192 KB, in L2
inline constexpr int64_t kMinQueries = 24, kMaxQueries = 192;

struct AttentionGradPlan {
  int64_t block, key_cols, out_cols;  // queries of a block; the other two padded to panels
  float *keys, *values, *key_rows;    // K and V as weights, K as a matrix
  float *dk, *dv;                     // sums over the blocks, [keys, out_cols]
  float *weights, *dscores;           // [block, key_cols]
  float *q_rows, *dout_rows, *dq;     // the block's Q and dO as matrices, its dQ
  int64_t elems;

  AttentionGradPlan(int64_t queries, int64_t key_count, int64_t head_size, float* scratch) {
    key_cols = round_up(key_count, kNr);
    out_cols = round_up(head_size, kNr);
    const int64_t fit = kBlockElems / key_cols / kMr * kMr;
    const int64_t most = fit < kMinQueries ? kMinQueries : min64(fit, kMaxQueries);
    block = round_up(ceil_div(queries, ceil_div(queries, most)), kMr);
    float* next = scratch;
    const auto take = [&](int64_t count) {
      float* part = next;
      next += round_up(count, 16);
      return part;
    };
    keys = take(key_cols * head_size);
    values = take(key_cols * head_size);
    key_rows = take(key_count * out_cols);
    dk = take(key_count * out_cols);
    dv = take(key_count * out_cols);
    weights = take(block * key_cols);
    dscores = take(block * key_cols);
    q_rows = take(block * out_cols);
    dout_rows = take(block * out_cols);
    dq = take(block * out_cols);
    elems = next - scratch;
  }
};

}  // namespace
}  // namespace vitrail::cpu::VT_ISA
