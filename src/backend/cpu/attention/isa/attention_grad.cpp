// The gradient of attention of one head, by blocks of queries against all keys. With P the softmax weights
// and S the scores, dV += P^T dO, dP = dO V^T, dS = P (dP - rowsum(P dP)), dQ = scale dS K, dK += scale dS^T
// Q. K, V and the block's Q and dO are packed into the panels of the micro-kernel, so all multiplications run
// at the speed of a GEMM; P and dS exist for one block only.
#include "backend/cpu/attention/isa/attention_plan.h"
#include "backend/cpu/attention/isa/score_rows.h"
#include "backend/cpu/gemm/isa/micro.h"
#include "backend/cpu/isa/kernels.h"
#include "backend/cpu/isa/rows.h"

namespace vitrail::cpu::VT_ISA {
namespace {

// Turns scores into softmax weights, and the gradients of the weights into gradients of the scores.
inline void softmax_row_grad(float* weights, float* dscores, int64_t keys, float scale) {
  Vec sum{}, dot{};
  exp_scores(weights, keys, scale, max_score(weights, keys), [&](Vec e, int64_t j) {
    sum = sum + e;
    dot = fmadd(e, load(dscores + j), dot);
  });
  const float inverse = 1.0f / sum_lanes(sum);
  const Vec factor = set1(inverse), mean = set1(sum_lanes(dot) * inverse);
  for (int64_t j = 0; j < keys; j += kLanes) {
    const Vec p = load(weights + j) * factor;
    store(weights + j, p);
    store(dscores + j, p * (load(dscores + j) - mean));
  }
}

inline void store_rows(const float* from, int64_t from_stride, int64_t rows, int64_t width, float scale,
                       float* to, int64_t to_stride) {
  const Vec factor = set1(scale);
  for (int64_t r = 0; r < rows; ++r)
    map_row(from + r * from_stride, width, to + r * to_stride,
            [&](Vec v, int64_t, int64_t) { return v * factor; });
}

void block_grad(const AttentionGradTile& t, const AttentionGradPlan& p, int64_t query, int64_t rows) {
  const float *q = t.q + query * t.q_stride, *dout = t.dout + query * t.dout_stride;
  for (int64_t j = 0; j < t.keys; j += kNr) {
    multiply_panel(q, t.q_stride, rows, p.keys + j * t.head_size, t.keys - j, t.head_size, false,
                   p.weights + j, p.key_cols);
    multiply_panel(dout, t.dout_stride, rows, p.values + j * t.head_size, t.keys - j, t.head_size, false,
                   p.dscores + j, p.key_cols);
  }
  for (int64_t r = 0; r < rows; ++r)
    softmax_row_grad(p.weights + r * p.key_cols, p.dscores + r * p.key_cols, t.keys, t.scale);
  pack_matrix(q, t.q_stride, rows, t.head_size, rows, p.q_rows);
  pack_matrix(dout, t.dout_stride, rows, t.head_size, rows, p.dout_rows);
  for (int64_t e = 0; e < t.head_size; e += kNr) {
    const int64_t cols = t.head_size - e;
    multiply_panel(p.dscores, p.key_cols, rows, p.key_rows + e * t.keys, cols, t.keys, false, p.dq + e,
                   p.out_cols);
    multiply_panel_transposed(p.weights, p.key_cols, t.keys, p.dout_rows + e * rows, cols, rows, query > 0,
                              p.dv + e, p.out_cols);
    multiply_panel_transposed(p.dscores, p.key_cols, t.keys, p.q_rows + e * rows, cols, rows, query > 0,
                              p.dk + e, p.out_cols);
  }
  store_rows(p.dq, p.out_cols, rows, t.head_size, t.scale, t.dq + query * t.q_stride, t.q_stride);
}

}  // namespace

void attention_grad_tile(const AttentionGradTile& t) {
  const AttentionGradPlan p(t.queries, t.keys, t.head_size, t.scratch);
  pack_rows(t.k, t.k_stride, t.keys, t.head_size, p.keys);
  pack_rows(t.v, t.v_stride, t.keys, t.head_size, p.values);
  pack_matrix(t.k, t.k_stride, t.keys, t.head_size, t.keys, p.key_rows);
  for (int64_t query = 0; query < t.queries; query += p.block)
    block_grad(t, p, query, min64(p.block, t.queries - query));
  store_rows(p.dk, p.out_cols, t.keys, t.head_size, t.scale, t.dk, t.k_stride);
  store_rows(p.dv, p.out_cols, t.keys, t.head_size, 1.0f, t.dv, t.v_stride);
}

constinit const AttentionGradTable kAttentionGrad = {
    .attention_grad_scratch_elems = attention_grad_scratch_elems,
    .attention_grad_tile = attention_grad_tile,
};

}  // namespace vitrail::cpu::VT_ISA
