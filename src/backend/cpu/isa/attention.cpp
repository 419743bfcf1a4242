// Attention of one head, by blocks with a running maximum and sum (online softmax): scores exist only as
// kQueryBlock x kKeyBlock values in cache, whatever the number of tokens. K and V of a key block are packed
// into the panels of the micro-kernel, so both products run at the speed of a GEMM.
#include "backend/cpu/isa/kernels.h"
#include "backend/cpu/isa/micro.h"
#include "backend/cpu/isa/rows.h"

namespace vitrail::VT_ISA {
namespace {

constexpr int64_t kKeyBlock = 256;
constexpr int64_t kQueryBlock = 24;  // with 256 scores each: 24 KB

struct Plan {
  int64_t key_block, key_cols, out_cols;  // the last two padded to panels
  float *keys, *values, *scores, *sums, *top, *total;
};

Plan plan_of(int64_t queries, int64_t keys, int64_t head_size, float* scratch) {
  Plan p{};
  p.key_block = ceil_div(keys, ceil_div(keys, kKeyBlock));
  p.key_cols = round_up(p.key_block, kNr);
  p.out_cols = round_up(head_size, kNr);
  p.keys = scratch;
  p.values = p.keys + p.key_cols * head_size;
  p.scores = p.values + p.key_block * p.out_cols;
  p.sums = p.scores + kQueryBlock * p.key_cols;
  p.top = p.sums + queries * p.out_cols;
  p.total = p.top + queries;
  return p;
}

// Turns a row of scores into exp(scale * (score - maximum)) and keeps the running maximum and sum;
// sums gathered under an older maximum are scaled down to the new one.
void soften_row(float* scores, int64_t keys, float scale, bool first, float& top, float& total, float* sums,
                int64_t out_cols) {
  const float here = max_row(scores, keys);
  if (first) {
    top = here;
    total = exp_row(scores, keys, top, scale, scores);
    return;
  }
  const float best = here > top ? here : top;
  const Vec shrink = exp(set1((top - best) * scale));
  top = best;
  total = total * shrink[0] + exp_row(scores, keys, top, scale, scores);
  for (int64_t e = 0; e < out_cols; e += kLanes) store(sums + e, load(sums + e) * shrink);
}

void attend_block(const AttentionTile& t, const Plan& p, int64_t query, int64_t rows, int64_t keys,
                  bool first) {
  for (int64_t j = 0; j < keys; j += kNr) {
    multiply_panel(t.q + query * t.q_stride, t.q_stride, rows, p.keys + j * t.head_size, t.head_size, false,
                   p.scores + j, p.key_cols);
  }
  for (int64_t r = 0; r < rows; ++r) {
    soften_row(p.scores + r * p.key_cols, keys, t.scale, first, p.top[query + r], p.total[query + r],
               p.sums + (query + r) * p.out_cols, p.out_cols);
  }
  for (int64_t e = 0; e < t.head_size; e += kNr) {
    multiply_panel(p.scores, p.key_cols, rows, p.values + e * keys, keys, !first,
                   p.sums + query * p.out_cols + e, p.out_cols);
  }
}

}  // namespace

int64_t attention_scratch_elems(int64_t queries, int64_t keys, int64_t head_size) {
  const Plan p = plan_of(queries, keys, head_size, nullptr);
  return p.key_cols * head_size + p.key_block * p.out_cols + kQueryBlock * p.key_cols +
         queries * (p.out_cols + 2);
}

void attention_tile(const AttentionTile& t) {
  const Plan p = plan_of(t.queries, t.keys, t.head_size, t.scratch);
  for (int64_t key = 0; key < t.keys; key += p.key_block) {
    const int64_t keys = min64(p.key_block, t.keys - key);
    pack_rows(t.k + key * t.k_stride, t.k_stride, keys, t.head_size, p.keys);
    pack_matrix(t.v + key * t.v_stride, t.v_stride, keys, t.head_size, keys, p.values);
    for (int64_t query = 0; query < t.queries; query += kQueryBlock)
      attend_block(t, p, query, min64(kQueryBlock, t.queries - query), keys, key == 0);
  }
  for (int64_t query = 0; query < t.queries; ++query) {
    const Vec inverse = set1(1.0f / p.total[query]);
    map_row(p.sums + query * p.out_cols, t.head_size, t.out + query * t.out_stride,
            [&](Vec v, int64_t, int64_t) { return v * inverse; });
  }
}

}  // namespace vitrail::VT_ISA
