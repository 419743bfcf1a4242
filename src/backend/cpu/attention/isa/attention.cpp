// Attention of one head by blocks, with a running maximum and sum (online softmax): the scores exist only as
// kQueryBlock x kKeyBlock values in cache, whatever the number of tokens. K and V of a key block are packed
// into the panels of the micro-kernel, so both multiplications run at the speed of a GEMM.
#include "backend/cpu/attention/isa/attention_plan.h"
#include "backend/cpu/attention/isa/score_rows.h"
#include "backend/cpu/gemm/isa/micro.h"
#include "backend/cpu/isa/kernels.h"
#include "backend/cpu/isa/rows.h"

namespace vitrail::cpu::VT_ISA {
namespace {

// Turns a row of scores into exp(scale * (score - maximum)) and keeps the running maximum and sum;
// sums gathered under an older maximum are scaled down to the new one.
void softmax_row(float* scores, int64_t keys, float scale, bool first, float& top, float& total, float* sums,
                 int64_t head_size) {
  const float here = max_score(scores, keys), best = first || here > top ? here : top;
  Vec sum{};
  exp_scores(scores, keys, scale, best, [&](Vec e, int64_t) { sum = sum + e; });
  const float gathered = sum_lanes(sum);
  if (first) {
    top = best;
    total = gathered;
    return;
  }
  const Vec shrink = exp(set1((top - best) * scale));
  top = best;
  total = total * shrink[0] + gathered;
  for (int64_t e = 0; e < head_size; e += kLanes) store(sums + e, load(sums + e) * shrink);
}

void attend_block(const AttentionTile& t, const AttentionPlan& p, int64_t query, int64_t rows, int64_t keys,
                  bool first) {
  for (int64_t j = 0; j < keys; j += kNr) {
    multiply_panel(t.q + query * t.q_stride, t.q_stride, rows, p.keys + j * t.head_size, keys - j,
                   t.head_size, false, p.scores + j, p.key_cols);
  }
  for (int64_t r = 0; r < rows; ++r) {
    softmax_row(p.scores + r * p.key_cols, keys, t.scale, first, p.top[query + r], p.total[query + r],
                p.sums + (query + r) * p.out_cols, t.head_size);
  }
  for (int64_t e = 0; e < t.head_size; e += kNr) {
    multiply_panel(p.scores, p.key_cols, rows, p.values + e * keys, t.head_size - e, keys, !first,
                   p.sums + query * p.out_cols + e, p.out_cols);
  }
}

}  // namespace

void attention_tile(const AttentionTile& t) {
  const AttentionPlan p(t.queries, t.keys, t.head_size, t.scratch);
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

constinit const AttentionTable kAttention = {
    .attention_scratch_elems = attention_scratch_elems,
    .attention_tile = attention_tile,
};

}  // namespace vitrail::cpu::VT_ISA
