#include "attention_slices.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <set>

#include "base/rng.h"
#include "run_op.h"

namespace vitrail {

std::vector<SumsSize> long_sizes() {
  std::vector<SumsSize> sizes = {{1025, 2, 64, 1}, {1025, 1, 32, 2}, {1025, 1, 80, 1}, {4097, 1, 64, 1}};
  if (std::getenv("VITRAIL_TEST_LONG")) sizes.push_back({16385, 1, 64, 1});
  return sizes;
}

std::vector<int64_t> tokens_to_judge(int64_t count) {
  std::set<int64_t> tokens = {0, 1, 63, 64, 127, 128, 129, 192, 256, count - 2, count - 1};
  const uint64_t key = name_key("tokens_to_judge");
  for (uint64_t i = 0; i < 9; ++i)
    tokens.insert(static_cast<int64_t>((counter_uniform(key, i) + 1) / 2 * static_cast<double>(count)));
  return {tokens.begin(), tokens.end()};
}

std::vector<Values> long_inputs(const SumsSize& size, DType dtype) {
  std::vector<Values> ins = make_inputs(plain_grad_case(size), {});
  const int64_t width = size.heads * size.head_size;
  const double nearer = 8 / std::sqrt(static_cast<double>(size.head_size));  // 2 more in the score
  for (int64_t row = 0; row < size.batch * size.tokens; ++row) {
    const int64_t token = row % size.tokens, last = size.tokens - 1;
    double *q = &ins[0][row * 3 * width], *k = q + width, *dout = &ins[1][row * width];
    for (int64_t e = 0; e < width; ++e) {
      dout[e] = (dout[e] + q[e] / 2) * (token == last ? 4 : 1);
      q[e] += 0.25;
      if (token == 0 || token == last) k[e] += nearer;
    }
  }
  return {rounded(ins[0], dtype), rounded(ins[1], dtype)};
}

namespace {

constexpr int64_t kLanes = 8;  // partial sums of a dot product, which do not wait for each other

double dot(const double* x, const double* y, int64_t size) {
  std::array<double, kLanes> sums{};
  int64_t e = 0;
  for (; e + kLanes <= size; e += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += x[e + lane] * y[e + lane];
  for (; e < size; ++e) sums[0] += x[e] * y[e];
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// The rows of one part of qkv (or of dout) that belong to one head.
struct Rows {
  Rows(const Values& from, const AttentionStrides& s, int64_t b, int64_t h, const AttentionGeometry& g)
      : size(g.head_size) {
    for (int64_t i = 0; i < g.keys; ++i) append(from, s.base + b * s.batch + i * s.row + h * s.head);
    // Behind the last key lies the next head's first; of one head alone its own.
    append(from, s.base + b * s.batch + (h + 1) % g.heads * s.head);
  }
  void append(const Values& from, int64_t at) {
    values.insert(values.end(), from.begin() + at, from.begin() + at + size);
  }
  const double* operator[](int64_t i) const { return values.data() + i * size; }

  int64_t size;
  Values values;
};

// One query: its scores, the slopes of its weights, and the exponentials of its scores and of too large ones.
struct Query {
  explicit Query(int64_t keys) : scores(keys), slopes(keys), exps(keys), large(keys) {}
  Values scores, slopes, exps, large;
};

// A query's weights under a fault, and the mean of its slopes.
struct Weighed {
  const Values& exps;
  int64_t keys;
  double total, mean;
};

struct Head {
  Head(const AttentionGeometry& geometry, const SliceInputs& inputs, std::span<const int64_t> wanted,
       int64_t image, int64_t head)
      : g(geometry),
        ins(inputs),
        tokens(wanted),
        b(image),
        h(head),
        q(ins.qkv, g.q, b, h, g),
        k(ins.qkv, g.k, b, h, g),
        v(ins.qkv, g.v, b, h, g),
        dout(ins.dout, g.out, b, h, g) {}

  void add(std::span<const AttentionFault> faults, std::vector<AttentionSlices>& results) const {
    const bool enlarges =
        std::find(faults.begin(), faults.end(), AttentionFault::kScoresTooLarge) != faults.end();
    Query query(g.keys + 1);
    for (int64_t i = 0; i < g.queries; ++i) {
      score(i, enlarges, query);
      const bool is_wanted = std::find(tokens.begin(), tokens.end(), i) != tokens.end();
      for (size_t f = 0; f < faults.size(); ++f) {
        const Weighed weighed = weigh(faults[f], i, query);
        results[f].sums[(b * g.heads + h) * g.queries + i] = std::log2(weighed.total);
        if (is_wanted) add_query(faults[f], i, query, weighed, results[f]);
        add_keys(faults[f], i, query, weighed, results[f].grads);
      }
    }
  }

  int64_t at(const AttentionStrides& s, int64_t i) const {
    return s.base + b * s.batch + i * s.row + h * s.head;
  }

  void score(int64_t i, bool enlarges, Query& query) const {
    for (int64_t j = 0; j <= g.keys; ++j) {
      query.scores[j] = scale * dot(q[i], k[j], g.head_size);
      query.slopes[j] = dot(dout[i], v[j], g.head_size);
      query.exps[j] = std::exp(query.scores[j]);
      if (enlarges) query.large[j] = std::exp(1.05 * query.scores[j]);
    }
  }

  Weighed weigh(AttentionFault fault, int64_t i, const Query& query) const {
    Weighed weighed{
        fault == AttentionFault::kScoresTooLarge ? query.large : query.exps,
        g.keys - (fault == AttentionFault::kLastKeyLeftOut) + (fault == AttentionFault::kOneKeyTooMany), 0,
        0};
    if (ins.kept_out) {
      const auto sum = static_cast<size_t>((b * g.heads + h) * g.queries + i);
      weighed.total = std::exp2((*ins.kept_sums)[sum]);
      weighed.mean = dot(ins.kept_out->data() + at(g.out, i), dout[i], g.head_size);
      if (fault == AttentionFault::kMeanTooLarge) weighed.mean *= 1.1;
      return weighed;
    }
    for (int64_t j = 0; j < weighed.keys; ++j) {
      weighed.total += weighed.exps[j];
      weighed.mean += weighed.exps[j] * query.slopes[j];
    }
    weighed.mean /= weighed.total;
    return weighed;
  }

  // The results that sum over keys: the output and dq.
  void add_query(AttentionFault fault, int64_t i, const Query& query, const Weighed& weighed,
                 AttentionSlices& result) const {
    const double mean = fault == AttentionFault::kNoMeanInDq ? 0 : weighed.mean;
    for (int64_t j = 0; j < weighed.keys; ++j) {
      const double weight = weighed.exps[j] / weighed.total;
      const double slope = fault == AttentionFault::kNoDq ? 0 : scale * weight * (query.slopes[j] - mean);
      for (int64_t e = 0; e < g.head_size; ++e) {
        result.out[at(g.out, i) + e] += weight * v[j][e];
        result.grads[at(g.q, i) + e] += slope * k[j][e];
      }
    }
  }

  // The results that sum over queries: dk and dv.
  void add_keys(AttentionFault fault, int64_t i, const Query& query, const Weighed& weighed,
                Values& grads) const {
    if (fault == AttentionFault::kLastQueryLeftOut && i == g.queries - 1) return;
    const double mean = fault == AttentionFault::kNoMeanInDk ? 0 : weighed.mean;
    for (const int64_t j : tokens) {
      if (j >= weighed.keys) continue;
      const double weight = weighed.exps[j] / weighed.total;
      const double slope = fault == AttentionFault::kNoDk ? 0 : scale * weight * (query.slopes[j] - mean);
      for (int64_t e = 0; e < g.head_size; ++e) {
        grads[at(g.k, j) + e] += slope * q[i][e];
        grads[at(g.v, j) + e] += weight * dout[i][e];
      }
    }
  }

  const AttentionGeometry& g;
  const SliceInputs& ins;
  const std::span<const int64_t> tokens;
  const int64_t b, h;
  const Rows q, k, v, dout;
  const double scale = 1 / std::sqrt(static_cast<double>(g.head_size));
};

}  // namespace

std::vector<AttentionSlices> attention_slices(const SumsSize& size, const SliceInputs& ins,
                                              std::span<const int64_t> tokens,
                                              std::span<const AttentionFault> faults) {
  const TensorDesc qkv{DType::kF64, packed(size)};
  const AttentionGeometry g = attention_geometry(AttentionOp(), {&qkv, 1});
  const auto elems = static_cast<size_t>(output(size).elems());
  const AttentionSlices none{Values(elems), Values(elems / static_cast<size_t>(size.head_size)),
                             Values(3 * elems)};
  std::vector<AttentionSlices> results(faults.size(), none);
  for (int64_t b = 0; b < g.batch; ++b)
    for (int64_t h = 0; h < g.heads; ++h) Head(g, ins, tokens, b, h).add(faults, results);
  return results;
}

}  // namespace vitrail
