// A query's softmax weights and the mean squares of their errors, from which the noise of attention and of
// its gradient follows.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/attention.h"
#include "runtime/check/noise_rules.h"

namespace vitrail::noise {

inline int64_t row_at(const AttentionStrides& s, int64_t b, int64_t i, int64_t h) {
  return s.base + b * s.batch + i * s.row + h * s.head;
}

// The keys or the values of one head of one image.
struct HeadRows {
  const AttentionStrides& strides;
  int64_t b, h;
};

// Calls use(j, product, squares) with the product of `x` and of row j, and with the squares of its partial
// sums. Four rows are summed at once, since the partial sums of one wait for each other.
template <typename Use>
void for_products(const AttentionGeometry& g, const double* x, const Known& of, const HeadRows& rows,
                  const Use& use) {
  constexpr int64_t kAtOnce = 4;
  for (int64_t first = 0; first < g.keys; first += kAtOnce) {
    std::array<const double*, kAtOnce> y;
    std::array<double, kAtOnce> sums{}, squares{};
    for (int64_t r = 0; r < kAtOnce; ++r)
      y[r] = &of.values[row_at(rows.strides, rows.b, std::min(first + r, g.keys - 1), rows.h)];
    for (int64_t e = 0; e < g.head_size; ++e)
      for (int64_t r = 0; r < kAtOnce; ++r) {
        sums[r] += x[e] * y[r][e];
        squares[r] += sums[r] * sums[r];
      }
    for (int64_t r = 0; r < std::min(kAtOnce, g.keys - first); ++r) use(first + r, sums[r], squares[r]);
  }
}

class SoftmaxRow {
 public:
  SoftmaxRow(const Args& args, const AttentionGeometry& geometry)
      : g(geometry),
        q(args.query.ins[0]),
        kv(args.query.ins[g.q.batch == 0 ? 1 : 0]),
        scale(1 / std::sqrt(static_cast<double>(g.head_size))),
        weights(static_cast<size_t>(g.keys)),
        errors(weights.size()) {
    if (!args.query.rounding.weights) return;
    const DType type = narrow_type(args.query.descs);
    unit = rounding_of(type, 1);
    least = rounding_of(type, 0);
  }

  void find(int64_t b, int64_t h, int64_t i) {
    double top = find_scores(b, h, i), total = 0;
    for (double& weight : weights) total += weight = std::exp(weight - top);
    for (size_t j = 0; j < weights.size(); ++j) {
      weights[j] /= total;
      errors[j] = square(weights[j]) * (errors[j] + square(kFunction) + square(unit) / 3) + narrow(1 / total);
    }
  }
  // Takes the logarithm of the sum from the forward op instead of summing.
  void find(int64_t b, int64_t h, int64_t i, double log_sum) {
    find_scores(b, h, i);
    for (size_t j = 0; j < weights.size(); ++j) {
      weights[j] = std::exp(weights[j] - log_sum);
      errors[j] =
          square(weights[j]) * (errors[j] + square(kFunction) + square(kF32 * log_sum) + square(unit) / 3) +
          narrow(1);
    }
  }
  // Returns the mean square of the smallest 16-bit rounding step, for values that are divided by `total`
  // afterwards.
  double narrow(double inverse_total) const { return square(least * inverse_total) / 3; }

  const AttentionGeometry g;
  const Known &q, &kv;
  const double scale;
  Values weights, errors;
  double unit = 0, least = 0;
  int64_t query = 0;

 private:
  // Computes the scores and the mean squares of their errors. Returns the largest score.
  double find_scores(int64_t b, int64_t h, int64_t i) {
    query = row_at(g.q, b, i, h);
    double top = -INFINITY;
    for_products(g, &q.values[query], kv, {g.k, b, h}, [&](int64_t j, double dot, double squares) {
      weights[j] = dot * scale;
      errors[j] = square(scale) * (squares * square(kSum) / 3 + errors_of_factors(row_at(g.k, b, j, h))) +
                  square(kF32 * weights[j]);
      top = std::max(top, weights[j]);
    });
    return top;
  }

  // What the errors of the query and of a key add to the mean square error of their product.
  double errors_of_factors(int64_t key) const {
    if (q.noise.exact() && kv.noise.exact()) return 0;
    double sum = 0;
    for (int64_t e = 0; e < g.head_size; ++e)
      sum += q.noise.mean_square(query + e) * square(kv.values[key + e]) +
             kv.noise.mean_square(key + e) * square(q.values[query + e]);
    return sum;
  }
};

}  // namespace vitrail::noise
