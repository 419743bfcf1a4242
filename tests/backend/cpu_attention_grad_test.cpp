// The gradient of attention by blocks against plain loops in double.
#include <gtest/gtest.h>

#include "backend/cpu/attention/attention.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu_test_util.h"
#include "tolerance.h"

namespace vitrail {
namespace {

using namespace testing;

struct AttentionGradCase {
  int64_t batch, heads, tokens, head_size;
  float spread = 1;  // of q and k: large makes the softmax nearly one-hot
};

const AttentionGradCase kAttentionGradCases[] = {
    {1, 1, 1, 1},    {1, 2, 5, 3},    {2, 3, 50, 32},   {1, 2, 65, 72}, {1, 3, 197, 64},
    {1, 1, 257, 80}, {1, 1, 577, 17}, {2, 2, 33, 8, 6}, {1, 2, 97, 16}, {1, 1, 196, 40, 3}};

// Packed qkv [B, N, 3, H, E] and dout [B, N, H, E].
struct AttentionGradProblem {
  AttentionGradCase c;
  Floats qkv, dout;

  explicit AttentionGradProblem(const AttentionGradCase& shape)
      : c(shape),
        qkv(random_floats(c.batch * c.tokens * 3 * c.heads * c.head_size, 1, c.spread)),
        dout(random_floats(c.batch * c.tokens * c.heads * c.head_size, 2)) {}

  int64_t width() const { return c.heads * c.head_size; }
  float scale() const { return 1 / std::sqrt(static_cast<float>(c.head_size)); }
  size_t at(int64_t b, int64_t token, int64_t part, int64_t head) const {
    return static_cast<size_t>(((b * c.tokens + token) * 3 + part) * width() + head * c.head_size);
  }
  double dot(const float* a, const float* b) const {
    double sum = 0;
    for (int64_t e = 0; e < c.head_size; ++e) sum += static_cast<double>(a[e]) * static_cast<double>(b[e]);
    return sum;
  }

  AttentionGradArgs args(float* dqkv) const {
    const AttentionView packed{c.tokens * 3 * width(), 3 * width(), c.head_size};
    AttentionGradArgs grad;
    grad.forward = {.q = qkv.data(),
                    .k = qkv.data() + width(),
                    .v = qkv.data() + 2 * width(),
                    .q_strides = packed,
                    .k_strides = packed,
                    .v_strides = packed,
                    .out = nullptr,
                    .out_strides = {c.tokens * width(), width(), c.head_size},
                    .batch = c.batch,
                    .heads = c.heads,
                    .queries = c.tokens,
                    .keys = c.tokens,
                    .head_size = c.head_size,
                    .scale = scale()};
    grad.dout = dout.data();
    grad.dq = dqkv, grad.dk = dqkv + width(), grad.dv = dqkv + 2 * width();
    return grad;
  }

  std::vector<double> expected() const {
    std::vector<double> dqkv(qkv.size());
    for (int64_t b = 0; b < c.batch; ++b)
      for (int64_t head = 0; head < c.heads; ++head)
        for (int64_t i = 0; i < c.tokens; ++i) add_query(b, head, i, dqkv);
    return dqkv;
  }

  void add_query(int64_t b, int64_t head, int64_t i, std::vector<double>& dqkv) const {
    const auto tokens = static_cast<size_t>(c.tokens);
    const float *q = qkv.data() + at(b, i, 0, head),
                *d = dout.data() + (b * c.tokens + i) * width() + head * c.head_size;
    std::vector<double> p(tokens), dp(tokens);
    double top = -INFINITY, total = 0, mean = 0;
    for (size_t j = 0; j < tokens; ++j) {
      const auto key = static_cast<int64_t>(j);
      p[j] = dot(q, qkv.data() + at(b, key, 1, head)) * static_cast<double>(scale());
      dp[j] = dot(d, qkv.data() + at(b, key, 2, head));
      top = std::max(top, p[j]);
    }
    for (double& value : p) total += value = std::exp(value - top);
    for (size_t j = 0; j < tokens; ++j) mean += (p[j] /= total) * dp[j];
    for (size_t j = 0; j < tokens; ++j) {
      const auto key = static_cast<int64_t>(j);
      const double ds = p[j] * (dp[j] - mean) * static_cast<double>(scale());
      for (size_t e = 0; e < static_cast<size_t>(c.head_size); ++e) {
        dqkv[at(b, i, 0, head) + e] += ds * static_cast<double>(qkv[at(b, key, 1, head) + e]);
        dqkv[at(b, key, 1, head) + e] += ds * static_cast<double>(q[e]);
        dqkv[at(b, key, 2, head) + e] += p[j] * static_cast<double>(d[e]);
      }
    }
  }

  // A score's error moves its weight by the same relative amount, and the sums over keys and queries add
  // terms of the size of the softmax weights: 1 in all for a query, a few for a key.
  double tolerance() const {
    const double score = c.spread * c.spread * std::sqrt(static_cast<double>(c.head_size)) + 1;
    const double gradient = c.spread * (1 + std::sqrt(static_cast<double>(c.head_size)));
    return gradient *
           (sum_tolerance(DType::kF32, c.head_size, score) + sum_tolerance(DType::kF32, c.tokens, 1));
  }
};

Floats grad(const AttentionGradProblem& p, const IsaKernels& isa, int threads, CpuParallelism parallel = {}) {
  TestContext test(threads, isa, attention_grad_scratch(isa, p.c.tokens, p.c.tokens, p.c.head_size));
  Floats dqkv(p.qkv.size(), std::nanf(""));
  parallel_attention_grad(test.context(parallel), p.args(dqkv.data()));
  return dqkv;
}

class CpuAttentionGrad : public ::testing::TestWithParam<AttentionGradCase> {};

TEST_P(CpuAttentionGrad, EveryLevelAgreesWithDoubleForAnyNumberOfThreads) {
  const AttentionGradProblem p(GetParam());
  const std::vector<double> want = p.expected();
  for_every_level([&](const IsaKernels& isa) {
    const Floats one = grad(p, isa, 1);
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(one[i], want[i], p.tolerance()) << isa.name << i;
    for (int threads : {2, 3, 8}) EXPECT_TRUE(same_bits(one, grad(p, isa, threads))) << threads;
    EXPECT_TRUE(same_bits(one, grad(p, isa, 3, {.heads = false})));
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, CpuAttentionGrad, ::testing::ValuesIn(kAttentionGradCases),
                         [](const auto& test) {
                           return std::to_string(test.param.tokens) + "x" +
                                  std::to_string(test.param.head_size);
                         });

TEST(CpuAttentionGradValues, NanInAKeyReachesTheQueries) {
  AttentionGradProblem p({1, 1, 9, 8});
  p.qkv[p.at(0, 4, 1, 0) + 3] = std::nanf("");
  for_every_level([&](const IsaKernels& isa) {
    const Floats dqkv = grad(p, isa, 1);
    for (int64_t token = 0; token < 9; ++token) EXPECT_TRUE(std::isnan(dqkv[p.at(0, token, 0, 0)]));
  });
}

}  // namespace
}  // namespace vitrail
