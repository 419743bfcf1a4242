// Noise of attention and its gradient. Every softmax weight is off by its score's error and, where the kernel
// declares it, by one rounding to 16 bits; the same holds for every gradient of a score. The error of a
// result is a sum of many such errors.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "ops/attention.h"
#include "runtime/check/noise_rules.h"

namespace vitrail::noise {

namespace {

int64_t row_at(const AttentionStrides& s, int64_t b, int64_t i, int64_t h) {
  return s.base + b * s.batch + i * s.row + h * s.head;
}

// A query's softmax weights and the mean squares of their errors.
class Row {
 public:
  Row(const Args& args, const AttentionGeometry& geometry)
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
  // Returns the largest score.
  double find_scores(int64_t b, int64_t h, int64_t i) {
    query = row_at(g.q, b, i, h);
    double top = -INFINITY;
    for (int64_t j = 0; j < g.keys; ++j) {
      find_score(j, row_at(g.k, b, j, h));
      top = std::max(top, weights[j]);
    }
    return top;
  }

  // Computes the score of key j and the mean square of its error.
  void find_score(int64_t j, int64_t key) {
    double dot = 0, squares = 0, factors = 0;
    for (int64_t e = 0; e < g.head_size; ++e) {
      const double x = q.values[query + e], y = kv.values[key + e];
      dot += x * y;
      squares += dot * dot;
      factors += q.noise.mean_square(query + e) * y * y + kv.noise.mean_square(key + e) * x * x;
    }
    weights[j] = dot * scale;
    errors[j] = square(scale) * (squares * square(kSum) / 3 + factors) + square(kF32 * weights[j]);
  }
};

AttentionGeometry geometry_of(const Args& args, size_t forward_ins) {
  std::vector<TensorDesc> descs;
  for (const Known& in : args.query.ins.first(forward_ins)) descs.push_back({DType::kF64, in.shape});
  return attention_geometry(args.query.op, descs);
}

// Running sums, with the variance from their own roundings and from the errors of their terms.
struct Sums {
  explicit Sums(size_t elems) : sums(elems), squares(elems), errors(elems) {}
  void add(size_t at, double term, double error) {
    sums[at] += term;
    squares[at] += sums[at] * sums[at];
    errors[at] += error;
  }
  double variance(size_t at) const { return squares[at] * square(kSum) / 3 + errors[at]; }
  Values sums, squares, errors;
};

// Holds what the forward op kept for its gradient.
struct Kept {
  const Known &out, &log_sums;
};

// The noise of all three gradients of one attention node, whose forward op has so many inputs.
class Gradients {
 public:
  explicit Gradients(const Args& args, size_t forward_ins, std::optional<Kept> forward = {})
      : g(geometry_of(args, forward_ins)),
        dout(args.query.ins.back()),
        kept(forward),
        dq(static_cast<size_t>(args.query.ins[0].shape.elems())),
        dkv(static_cast<size_t>(args.query.ins[forward_ins - 1].shape.elems())) {
    args.query.pool.run(g.heads, [&](int64_t h, int) {
      Row row(args, g);
      for (int64_t b = 0; b < g.batch; ++b)
        for (int64_t i = 0; i < g.queries; ++i) add_query(row, b, h, i);
    });
  }

  const AttentionGeometry g;
  const Known& dout;
  const std::optional<Kept> kept;
  Sums dq, dkv;

 private:
  void add_query(Row& row, int64_t b, int64_t h, int64_t i) {
    if (kept)
      row.find(b, h, i, kept->log_sums.values[(b * g.heads + h) * g.queries + i] * std::log(2.0));
    else
      row.find(b, h, i);
    const int64_t dy = row_at(g.out, b, i, h);
    Values slopes(static_cast<size_t>(g.keys)), slope_errors(slopes.size());
    double mean = 0, mean_error = 0;
    for (int64_t j = 0; j < g.keys; ++j) {
      const int64_t value = row_at(g.v, b, j, h);
      double squares = 0;
      for (int64_t e = 0; e < g.head_size; ++e) {
        const double d = dout.values[dy + e];
        slopes[j] += d * row.kv.values[value + e];
        squares += slopes[j] * slopes[j];
        dkv.add(value + e, row.weights[j] * d, row.errors[j] * d * d);
      }
      slope_errors[j] = squares * square(kSum) / 3;
      mean += row.weights[j] * slopes[j];
      mean_error += row.errors[j] * square(slopes[j]);
    }
    if (kept) find_mean(dy, mean, mean_error);
    add_scores(row, b, h, {slopes, slope_errors, mean, mean_error});
  }

  // The mean is the product of the output, which is exact here, with its gradient.
  void find_mean(int64_t row, double& mean, double& error) const {
    double squares = 0;
    mean = 0;
    for (int64_t e = 0; e < g.head_size; ++e) {
      mean += kept->out.values[row + e] * dout.values[row + e];
      squares += mean * mean;
    }
    error = squares * square(kSum) / 3;
  }

  struct Slopes {
    const Values &values, &errors;
    double mean, mean_error;
  };
  void add_scores(const Row& row, int64_t b, int64_t h, const Slopes& slopes) {
    Values drift(static_cast<size_t>(g.head_size));  // the part of dq that an error of the mean causes
    const double step = row.narrow(*std::max_element(row.weights.begin(), row.weights.end()));
    for (int64_t j = 0; j < g.keys; ++j) {
      const double weight = row.weights[j], slope = slopes.values[j] - slopes.mean;
      const double dscore = weight * slope * row.scale;
      const double error =
          square(row.scale) * (row.errors[j] * square(slope) + square(weight) * slopes.errors[j] + step) +
          square(dscore) * (square(row.unit) / 3 + square(kFunction));
      const double shared = square(row.scale * weight) * slopes.mean_error;
      const int64_t key = row_at(g.k, b, j, h);
      for (int64_t e = 0; e < g.head_size; ++e) {
        const double k = row.kv.values[key + e], q = row.q.values[row.query + e];
        dq.add(row.query + e, dscore * k, error * k * k);
        dkv.add(key + e, dscore * q, (error + shared) * q * q);
        drift[e] += row.scale * weight * k;
      }
    }
    for (int64_t e = 0; e < g.head_size; ++e)
      dq.errors[row.query + e] += slopes.mean_error * square(drift[e]);
  }
};

}  // namespace

namespace {

// The logarithm moves by the errors of the scores, each with its weight.
Noise of_log_sums(const Args& args) {
  const AttentionGeometry g = geometry_of(args, 1);
  Noise noise = silence(args.out.values.size());
  args.query.pool.run(g.batch * g.heads, [&](int64_t task, int) {
    Row row(args, g);
    for (int64_t i = 0; i < g.queries; ++i) {
      row.find(task / g.heads, task % g.heads, i);
      const auto at = static_cast<size_t>(task * g.queries + i);
      noise.bound[at] = (kFunction + kF32) * (std::abs(args.out.values[at]) + 1);
      noise.variance[at] = std::accumulate(row.errors.begin(), row.errors.end(), 0.0) / square(std::log(2.0));
    }
  });
  return noise;
}

Noise of_outputs(const Args& args) {
  const AttentionGeometry g = geometry_of(args, args.query.ins.size());
  Noise noise = silence(args.out.values.size());
  args.query.pool.run(g.batch * g.heads, [&](int64_t task, int) {
    const int64_t b = task / g.heads, h = task % g.heads;
    Row row(args, g);
    for (int64_t i = 0; i < g.queries; ++i) {
      row.find(b, h, i);
      for (int64_t e = 0; e < g.head_size; ++e) {
        const int64_t at = row_at(g.out, b, i, h) + e;
        Sums sum(1);
        for (int64_t j = 0; j < g.keys; ++j) {
          const int64_t value = row_at(g.v, b, j, h) + e;
          const double v = row.kv.values[value];
          sum.add(0, row.weights[j] * v,
                  row.errors[j] * (v * v + square(args.out.values[at])) +
                      square(row.weights[j]) * row.kv.noise.mean_square(value));
        }
        noise.bound[at] = kFunction * std::abs(args.out.values[at]);
        noise.variance[at] = sum.variance(0);
      }
    }
  });
  return noise;
}

// With packed qkv one result holds dq, dk and dv; with a pooling query dq is a result of its own.
Noise of_gradients(const Args& args, const Gradients& found, bool packed) {
  Noise noise = silence(args.out.values.size());
  for (size_t i = 0; i < noise.variance.size(); ++i) {
    noise.bound[i] = kFunction * std::abs(args.out.values[i]);
    if (packed || args.result == 0) noise.variance[i] += found.dq.variance(i);
    if (packed || args.result == 1) noise.variance[i] += found.dkv.variance(i);
  }
  return noise;
}

}  // namespace

Noise of_attention(const Args& args) {
  return of_outputs(args);
}
Noise of_attention_sums(const Args& args) {
  return args.result == 0 ? of_outputs(args) : of_log_sums(args);
}

Noise of_attention_grad(const Args& args) {
  const size_t forward_ins = args.query.ins.size() - 1;
  return of_gradients(args, Gradients(args, forward_ins), forward_ins == 1);
}
Noise of_attention_bias_grad(const Args& args) {
  if (args.result == 0) return of_attention_grad(args);
  return of_row_sums(args, of_attention_grad({args.query, args.results, args.types, 0, args.results[0]}));
}
Noise of_attention_sums_grad(const Args& args) {
  const Gradients found(args, 1, Kept{args.query.ins[1], args.query.ins[2]});
  return of_gradients(args, found, true);
}

}  // namespace vitrail::noise
