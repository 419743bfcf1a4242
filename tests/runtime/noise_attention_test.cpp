// How far attention and its gradient may be off, worked out anew for two tokens with heads of one element:
// then every sum has two terms and every score one product.
#include <gtest/gtest.h>

#include <cmath>

#include "base/thread_pool.h"
#include "ops/attention.h"
#include "ops/attention_sums.h"
#include "runtime/check/noise.h"

namespace vitrail {
namespace {

constexpr double kU = 0x1p-24, kFunction = 4 * kU;      // of f32, and of a function of it
constexpr double kSumSquare = (2 * kU) * (2 * kU) / 3;  // a partial sum is off by up to a whole unit
constexpr double kQ[] = {0.5, -1.25}, kK[] = {2, 0.75}, kV[] = {3, -1}, kDy[] = {0.5, 2};
const Shape kPacked{{'B', 1}, {'N', 2}, {'T', 3}, {'H', 1}, {'E', 1}},
    kOut{{'B', 1}, {'N', 2}, {'H', 1}, {'E', 1}};

struct Setting {
  const char* name;
  DType type;
  bool rounds;             // weights, to the type
  double unit, least;      // what that costs relative to a weight, and at least
  double q2 = 0, kv2 = 0;  // mean square errors of the queries, and of keys and values
};
const Setting kSettings[] = {{"f32", DType::kF32, false, 0, 0},
                             {"bf16 with exact weights", DType::kBF16, false, 0, 0},
                             {"bf16", DType::kBF16, true, 0x1p-8, 0},
                             {"f16", DType::kF16, true, 0x1p-11, 0x1p-25},
                             {"inexact inputs", DType::kF32, false, 0, 0, 0.25, 0.0625}};

// A query's two weights and the mean squares of their errors.
struct Weights {
  double w[2], e[2], top, total;
  Weights(const Setting& s, double q, double extra = 0, bool kept = false) {
    double score[2];
    for (int j = 0; j < 2; ++j) {
      score[j] = q * kK[j];
      e[j] = score[j] * score[j] * kSumSquare + s.q2 * kK[j] * kK[j] + s.kv2 * q * q +
             std::pow(kU * score[j], 2);
    }
    top = std::max(score[0], score[1]);
    total = std::exp(score[0] - top) + std::exp(score[1] - top);
    for (int j = 0; j < 2; ++j) {
      w[j] = std::exp(score[j] - top) / total;
      e[j] = w[j] * w[j] * (e[j] + kFunction * kFunction + extra + s.unit * s.unit / 3) +
             std::pow(kept ? s.least : s.least / total, 2) / 3;
    }
  }
  double log_sum() const { return top + std::log(total); }
  double out() const { return w[0] * kV[0] + w[1] * kV[1]; }
};

// The noise of a sum of two terms whose errors are known.
double of_terms(double a, double b, double errors) {
  return (a * a + (a + b) * (a + b)) * kSumSquare + errors;
}

std::vector<Noise> noise_of(const Setting& s, const Op& op, const std::vector<Known>& ins,
                            const std::vector<Known>& outs, std::span<const int64_t> tokens = {}) {
  ThreadPool pool(1);
  std::vector<TensorDesc> descs;
  descs.reserve(ins.size());
  for (const Known& in : ins) descs.push_back({s.type, in.shape});
  const std::vector<DType> types(outs.size(), DType::kF32);
  return result_noise({op, descs, ins, {.weights = s.rounds}, pool, tokens}, outs, types);
}

Known packed(const Setting& s) {
  Known qkv{kPacked, {kQ[0], kK[0], kV[0], kQ[1], kK[1], kV[1]}};
  if (s.q2 > 0) qkv.noise = {Values(6), {s.q2, s.kv2, s.kv2, s.q2, s.kv2, s.kv2}};
  return qkv;
}

void expect_near(double found, double wanted, const char* what) {
  EXPECT_NEAR(found, wanted, 1e-9 * wanted) << what;
}

TEST(NoiseOfAttention, OfOutputsAndLogarithms) {
  for (const Setting& s : kSettings) {
    SCOPED_TRACE(s.name);
    const Weights rows[] = {{s, kQ[0]}, {s, kQ[1]}};
    Known out{kOut, {rows[0].out(), rows[1].out()}};
    Known sums{{{'B', 1}, {'H', 1}, {'N', 2}},
               {rows[0].log_sum() / std::log(2), rows[1].log_sum() / std::log(2)}};
    const std::vector<Noise> both = noise_of(s, AttentionSumsOp(), {packed(s)}, {out, sums});
    const Noise alone = noise_of(s, AttentionOp(), {packed(s)}, {out})[0];
    for (size_t i = 0; i < 2; ++i) {
      const Weights& row = rows[i];
      double errors = 0;
      for (int j = 0; j < 2; ++j)
        errors += row.e[j] * (kV[j] * kV[j] + row.out() * row.out()) + row.w[j] * row.w[j] * s.kv2;
      for (const Noise* noise : {&alone, &both[0]}) {
        expect_near(noise->variance[i], of_terms(row.w[0] * kV[0], row.w[1] * kV[1], errors), "output");
        expect_near(noise->bound[i], (kFunction + kU) * std::abs(row.out()), "its bound");
      }
      expect_near(both[1].variance[i], (row.e[0] + row.e[1]) / std::pow(std::log(2), 2), "logarithm");
      const double log = std::abs(sums.values[i]);
      expect_near(both[1].bound[i], (kFunction + kU) * (log + 1) + kU * log, "its bound");
    }
  }
}

// The variances of dq, dk and dv of the two tokens; `kept`: from outputs and logarithms of the forward op.
Values gradients(const Setting& s, bool kept) {
  double dq[2], dk_errors[2] = {}, dk_terms[2][2], dv_terms[2][2], dv_errors[2] = {};
  for (int i = 0; i < 2; ++i) {
    const double log = Weights(s, kQ[i]).log_sum();
    const Weights row(s, kQ[i], kept ? kU * kU * log * log : 0, kept);
    const double slope[] = {kDy[i] * kV[0], kDy[i] * kV[1]}, mean = row.out() * kDy[i];
    const double mean_error =
        kept ? mean * mean * kSumSquare : row.e[0] * slope[0] * slope[0] + row.e[1] * slope[1] * slope[1];
    double score[2], errors = 0, drift = 0;
    for (int j = 0; j < 2; ++j) {
      const double apart = slope[j] - mean;
      score[j] = row.w[j] * apart;
      const double step = std::pow(s.least * std::max(row.w[0], row.w[1]), 2) / 3;
      const double error = row.e[j] * apart * apart + row.w[j] * row.w[j] * slope[j] * slope[j] * kSumSquare +
                           step + score[j] * score[j] * (s.unit * s.unit / 3 + kFunction * kFunction);
      errors += error * kK[j] * kK[j];
      drift += row.w[j] * kK[j];
      dk_terms[j][i] = score[j] * kQ[i];
      dk_errors[j] += (error + row.w[j] * row.w[j] * mean_error) * kQ[i] * kQ[i];
      dv_terms[j][i] = row.w[j] * kDy[i];
      dv_errors[j] += row.e[j] * kDy[i] * kDy[i];
    }
    dq[i] = of_terms(score[0] * kK[0], score[1] * kK[1], errors + mean_error * drift * drift);
  }
  Values all;
  for (int n = 0; n < 2; ++n)
    all.insert(all.end(), {dq[n], of_terms(dk_terms[n][0], dk_terms[n][1], dk_errors[n]),
                           of_terms(dv_terms[n][0], dv_terms[n][1], dv_errors[n])});
  return all;
}

TEST(NoiseOfAttention, OfQueriesKeysAndValues) {
  const Known dy{kOut, {kDy[0], kDy[1]}}, result{kPacked, {1, -2, 3, -4, 5, -6}};
  for (const Setting& s : kSettings) {
    SCOPED_TRACE(s.name);
    const Weights rows[] = {{s, kQ[0]}, {s, kQ[1]}};
    const Known out{kOut, {rows[0].out(), rows[1].out()}};
    const Known sums{{{'B', 1}, {'H', 1}, {'N', 2}},
                     {rows[0].log_sum() / std::log(2), rows[1].log_sum() / std::log(2)}};
    const Noise found = noise_of(s, AttentionGradOp(), {packed(s), dy}, {result})[0];
    const Noise kept = noise_of(s, AttentionSumsGradOp(), {packed(s), out, sums, dy}, {result})[0];
    const Values wanted = gradients(s, false), of_kept = gradients(s, true);
    for (size_t i = 0; i < wanted.size(); ++i) {
      expect_near(found.variance[i], wanted[i], "recomputed");
      expect_near(kept.variance[i], of_kept[i], "kept");
      for (const Noise* noise : {&found, &kept})
        expect_near(noise->bound[i], (kFunction + kU) * std::abs(result.values[i]), "bound");
    }
  }
}

// Of a long sequence the rows of some tokens are asked for: their noise is what it is among those of all.
TEST(NoiseOfAttention, OfChosenTokens) {
  const Setting& s = kSettings[2];
  const Known dy{kOut, {kDy[0], kDy[1]}}, result{kPacked, {1, -2, 3, -4, 5, -6}}, out{kOut, {0.5, -2}};
  const Known sums{{{'B', 1}, {'H', 1}, {'N', 2}}, {1.5, 2.25}};
  const auto expect_alike = [&](const Op& op, const std::vector<Known>& ins, const std::vector<Known>& outs) {
    const std::vector<Noise> all = noise_of(s, op, ins, outs);
    for (const int64_t token : {0, 1}) {
      const std::vector<Noise> chosen = noise_of(s, op, ins, outs, {&token, 1});
      for (size_t r = 0; r < outs.size(); ++r)
        for (size_t row = outs[r].values.size() / 2, i = token * row; i < (token + 1) * row; ++i)
          EXPECT_EQ(chosen[r].variance[i], all[r].variance[i]) << op.kind() << " " << r << " " << i;
    }
  };
  expect_alike(AttentionOp(), {packed(s)}, {out});
  expect_alike(AttentionSumsOp(), {packed(s)}, {out, sums});
  expect_alike(AttentionGradOp(), {packed(s), dy}, {result});
  expect_alike(AttentionSumsGradOp(), {packed(s), out, sums, dy}, {result});
}

// With a query of its own, dq and dkv are two results: here the query of the first token alone.
TEST(NoiseOfAttention, OfAPoolingQuery) {
  const Setting& s = kSettings[2];
  const Shape query{{'S', 1}, {'H', 1}, {'E', 1}}, pairs{{'B', 1}, {'M', 2}, {'T', 2}, {'H', 1}, {'E', 1}};
  const std::vector<Known> ins = {{query, {kQ[0]}},
                                  {pairs, {kK[0], kV[0], kK[1], kV[1]}},
                                  {{{'B', 1}, {'S', 1}, {'H', 1}, {'E', 1}}, {kDy[0]}}};
  const std::vector<Noise> found = noise_of(s, AttentionGradOp(), ins, {{query, {1}}, {pairs, {1, 2, 3, 4}}});
  expect_near(found[0].variance[0], gradients(s, false)[0], "dq");
  const Weights row(s, kQ[0]);
  for (size_t j = 0; j < 2; ++j)
    expect_near(found[1].variance[2 * j + 1],
                std::pow(row.w[j] * kDy[0], 2) * kSumSquare + row.e[j] * kDy[0] * kDy[0], "dv");
}

}  // namespace
}  // namespace vitrail
