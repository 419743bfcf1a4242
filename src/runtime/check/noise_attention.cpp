// Noise of attention and its gradient. Every softmax weight is off by its score's error and, where the kernel
// declares it, by one rounding to 16 bits; the same holds for every gradient of a score. The error of a
// result is a sum of many such errors.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "runtime/check/softmax_row.h"

namespace vitrail::noise {

namespace {

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

// Says of each token whether the noise of its results is asked for.
std::vector<bool> wanted_tokens(const Args& args, const AttentionGeometry& g) {
  const std::span<const int64_t> tokens = args.query.tokens;
  std::vector<bool> wanted(static_cast<size_t>(std::max(g.queries, g.keys)), tokens.empty());
  for (const int64_t token : tokens) wanted.at(static_cast<size_t>(token)) = true;
  return wanted;
}

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
        wanted(wanted_tokens(args, g)),
        dq(static_cast<size_t>(args.query.ins[0].shape.elems())),
        dkv(static_cast<size_t>(args.query.ins[forward_ins - 1].shape.elems())) {
    args.query.pool.run(g.heads, [&](int64_t h, int) {
      SoftmaxRow row(args, g);
      for (int64_t b = 0; b < g.batch; ++b)
        for (int64_t i = 0; i < g.queries; ++i) add_query(row, b, h, i);
    });
  }

  const AttentionGeometry g;
  const Known& dout;
  const std::optional<Kept> kept;
  const std::vector<bool> wanted;
  Sums dq, dkv;

 private:
  void add_query(SoftmaxRow& row, int64_t b, int64_t h, int64_t i) {
    if (kept)
      row.find(b, h, i, kept->log_sums.values[(b * g.heads + h) * g.queries + i] * std::log(2.0));
    else
      row.find(b, h, i);
    const int64_t dy = row_at(g.out, b, i, h);
    Values slopes(static_cast<size_t>(g.keys)), slope_errors(slopes.size());
    double mean = 0, mean_error = 0;
    for_products(g, &dout.values[dy], row.kv, {g.v, b, h}, [&](int64_t j, double slope, double squares) {
      slopes[j] = slope;
      slope_errors[j] = squares * square(kSum) / 3;
      mean += row.weights[j] * slope;
      mean_error += row.errors[j] * square(slope);
    });
    for (int64_t j = 0; j < g.keys; ++j) {
      if (!wanted[j]) continue;
      const int64_t value = row_at(g.v, b, j, h);
      for (int64_t e = 0; e < g.head_size; ++e) {
        const double d = dout.values[dy + e];
        dkv.add(value + e, row.weights[j] * d, row.errors[j] * d * d);
      }
    }
    if (kept) find_mean(dy, mean, mean_error);
    add_scores(row, b, h, {slopes, slope_errors, mean, mean_error, wanted[i]});
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
    bool of_wanted;  // query
  };
  void add_scores(const SoftmaxRow& row, int64_t b, int64_t h, const Slopes& slopes) {
    Values drift(static_cast<size_t>(g.head_size));  // the part of dq that an error of the mean causes
    const double step = row.narrow(*std::max_element(row.weights.begin(), row.weights.end()));
    for (int64_t j = 0; j < g.keys; ++j) {
      if (!slopes.of_wanted && !wanted[j]) continue;
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
  const std::vector<bool> wanted = wanted_tokens(args, g);
  Noise noise = silence(args.out.values.size());
  args.query.pool.run(g.batch * g.heads, [&](int64_t task, int) {
    SoftmaxRow row(args, g);
    for (int64_t i = 0; i < g.queries; ++i) {
      if (!wanted[i]) continue;
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
  const std::vector<bool> wanted = wanted_tokens(args, g);
  Noise noise = silence(args.out.values.size());
  args.query.pool.run(g.batch * g.heads, [&](int64_t task, int) {
    const int64_t b = task / g.heads, h = task % g.heads;
    SoftmaxRow row(args, g);
    for (int64_t i = 0; i < g.queries; ++i) {
      if (!wanted[i]) continue;
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
