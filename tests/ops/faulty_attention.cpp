#include "faulty_attention.h"

#include <algorithm>
#include <cmath>

namespace vitrail {

namespace {

AttentionGeometry geometry_of(const std::vector<Shape>& shapes, size_t forward_ins) {
  std::vector<TensorDesc> descs;
  for (size_t i = 0; i < forward_ins; ++i) descs.push_back({DType::kF64, shapes[i]});
  return attention_geometry(AttentionOp(), descs);
}

size_t row_at(const AttentionStrides& s, int64_t b, int64_t i, int64_t h) {
  return static_cast<size_t>(s.base + b * s.batch + i * s.row + h * s.head);
}

struct Heads {
  AttentionFault fault;
  AttentionGeometry g;
  const Values &q, &kv;
  const Values *kept_out = nullptr, *kept_sums = nullptr;  // of a gradient that does not compute them again

  double dot(const Values& x, size_t from, size_t other) const {
    double sum = 0;
    for (int64_t e = 0; e < g.head_size; ++e) sum += x[from + e] * kv[other + e];
    return sum;
  }
  size_t sum_at(int64_t b, int64_t h, int64_t i) const {
    return static_cast<size_t>((b * g.heads + h) * g.queries + i);
  }
  int64_t keys() const {
    return g.keys - (fault == AttentionFault::kLastKeyLeftOut) + (fault == AttentionFault::kOneKeyTooMany);
  }
  // Where a key or a value lies; beyond the last one are the next head's.
  size_t at(const AttentionStrides& s, int64_t b, int64_t j, int64_t h) const {
    return j < g.keys ? row_at(s, b, j, h) : row_at(s, b, 0, (h + 1) % g.heads);
  }
  // The exponentials of a query's scores, and their sum.
  std::pair<Values, double> exponentials(int64_t b, int64_t h, int64_t i) const {
    const double scale = fault == AttentionFault::kScoresTooLarge ? 1.05 : 1;
    Values weights(static_cast<size_t>(std::max(g.keys, keys())));
    double total = 0;
    for (int64_t j = 0; j < keys(); ++j)
      total += weights[j] = std::exp(scale * dot(q, row_at(g.q, b, i, h), at(g.k, b, j, h)) /
                                     std::sqrt(static_cast<double>(g.head_size)));
    return {weights, total};
  }
  Values weights(int64_t b, int64_t h, int64_t i) const {
    auto [weights, total] = exponentials(b, h, i);
    if (kept_sums) total = std::exp2((*kept_sums)[sum_at(b, h, i)]);
    for (double& weight : weights) weight /= total;
    return weights;
  }
  double kept_mean(const Values& dout, size_t at) const {
    double mean = 0;
    for (int64_t e = 0; e < g.head_size; ++e) mean += dout[at + e] * (*kept_out)[at + e];
    return fault == AttentionFault::kMeanTooLarge ? 1.1 * mean : mean;
  }

  // Computes the gradients of one query's scores, and with them its part of dq, dk and dv.
  void add_query(const Values& dout, int64_t b, int64_t h, int64_t i, Values& dq, Values& dkv) const {
    const Values own = weights(b, h, i);
    const size_t dy = row_at(g.out, b, i, h), query = row_at(g.q, b, i, h);
    Values slopes(own.size());
    double mean = 0;
    for (int64_t j = 0; j < std::ssize(own); ++j) {
      slopes[j] = dot(dout, dy, at(g.v, b, j, h));
      mean += own[j] * slopes[j];
    }
    if (kept_out) mean = kept_mean(dout, dy);
    const double scale = 1 / std::sqrt(static_cast<double>(g.head_size));
    const bool leaves_out = fault == AttentionFault::kLastQueryLeftOut && i == g.queries - 1;
    const double of_dq = fault == AttentionFault::kNoMeanInDq ? 0 : mean;
    const double of_dk = fault == AttentionFault::kNoMeanInDk ? 0 : mean;
    for (int64_t j = 0; j < std::ssize(own); ++j) {
      const size_t key = at(g.k, b, j, h), value = at(g.v, b, j, h);
      const double to_dq = fault == AttentionFault::kNoDq ? 0 : scale * own[j] * (slopes[j] - of_dq);
      const double to_dk = fault == AttentionFault::kNoDk ? 0 : scale * own[j] * (slopes[j] - of_dk);
      for (int64_t e = 0; e < g.head_size; ++e) {
        dq[query + e] += to_dq * kv[key + e];
        if (j >= g.keys || leaves_out) continue;  // no gradient is written beyond the last key
        dkv[key + e] += to_dk * q[query + e];
        dkv[value + e] += own[j] * dout[dy + e];
      }
    }
  }
};

}  // namespace

Values faulty_attention(AttentionFault fault, const std::vector<Shape>& shapes,
                        const std::vector<Values>& ins) {
  const Heads heads{fault, geometry_of(shapes, ins.size()), ins[0], ins.back()};
  const AttentionGeometry& g = heads.g;
  Values out(static_cast<size_t>(g.batch * g.queries * g.heads * g.head_size));
  for (int64_t b = 0; b < g.batch; ++b)
    for (int64_t h = 0; h < g.heads; ++h)
      for (int64_t i = 0; i < g.queries; ++i) {
        const Values weights = heads.weights(b, h, i);
        for (int64_t j = 0; j < std::ssize(weights); ++j)
          for (int64_t e = 0; e < g.head_size; ++e)
            out[row_at(g.out, b, i, h) + e] += weights[j] * heads.kv[heads.at(g.v, b, j, h) + e];
      }
  return out;
}

std::vector<Values> faulty_attention_sums(AttentionFault fault, const Shape& qkv, const Values& in) {
  const Heads heads{fault, geometry_of({qkv}, 1), in, in};
  const AttentionGeometry& g = heads.g;
  Values sums(static_cast<size_t>(g.batch * g.heads * g.queries));
  for (int64_t b = 0; b < g.batch; ++b)
    for (int64_t h = 0; h < g.heads; ++h)
      for (int64_t i = 0; i < g.queries; ++i)
        sums[heads.sum_at(b, h, i)] = std::log2(heads.exponentials(b, h, i).second);
  return {faulty_attention(fault, {qkv}, {in}), sums};
}

Values faulty_attention_sums_grad(AttentionFault fault, const Shape& qkv, const std::vector<Values>& ins) {
  const Heads heads{fault, geometry_of({qkv}, 1), ins[0], ins[0], &ins[1], &ins[2]};
  Values grads(ins[0].size());
  for (int64_t b = 0; b < heads.g.batch; ++b)
    for (int64_t h = 0; h < heads.g.heads; ++h)
      for (int64_t i = 0; i < heads.g.queries; ++i) heads.add_query(ins[3], b, h, i, grads, grads);
  return grads;
}

std::vector<Values> faulty_attention_grad(AttentionFault fault, const std::vector<Shape>& shapes,
                                          const std::vector<Values>& ins) {
  const size_t forward_ins = ins.size() - 1;
  const Heads heads{fault, geometry_of(shapes, forward_ins), ins[0], ins[forward_ins - 1]};
  std::vector<Values> grads;
  for (size_t i = 0; i < forward_ins; ++i) grads.emplace_back(ins[i].size());
  for (int64_t b = 0; b < heads.g.batch; ++b)
    for (int64_t h = 0; h < heads.g.heads; ++h)
      for (int64_t i = 0; i < heads.g.queries; ++i)
        heads.add_query(ins.back(), b, h, i, grads[0], grads.back());
  return grads;
}

}  // namespace vitrail
