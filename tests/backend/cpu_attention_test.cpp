// Attention by blocks against plain loops in double.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/attention/attention.h"
#include "backend/cpu_test_util.h"
#include "tolerance.h"

namespace vitrail {
namespace {

using namespace testing;

struct AttentionCase {
  int64_t batch, heads, queries, keys, head_size;
  float spread = 1;  // of q and k: large makes the softmax nearly one-hot
};

// Token counts of real models, several key blocks, head sizes that fill no panel.
const AttentionCase kAttentionCases[] = {{1, 1, 1, 1, 1},       {1, 2, 5, 5, 3},         {2, 3, 50, 50, 64},
                                         {1, 12, 197, 197, 64}, {1, 3, 65, 65, 72},      {1, 2, 257, 257, 80},
                                         {1, 1, 577, 577, 88},  {2, 7, 40, 300, 104},    {3, 4, 1, 197, 16},
                                         {1, 1, 700, 33, 8},    {1, 2, 100, 600, 64, 9}, {1, 1, 10, 513, 17}};

// q, k, v side by side, [B, N, H, E] each; q has its own N.
struct AttentionProblem {
  AttentionCase c;
  Floats q, k, v;

  explicit AttentionProblem(const AttentionCase& shape)
      : c(shape),
        q(random_floats(c.batch * c.queries * c.heads * c.head_size, 1, c.spread)),
        k(random_floats(c.batch * c.keys * c.heads * c.head_size, 2, c.spread)),
        v(random_floats(c.batch * c.keys * c.heads * c.head_size, 3)) {}

  AttentionArgs args(float* out) const {
    const int64_t width = c.heads * c.head_size;
    const AttentionView mine{c.queries * width, width, c.head_size},
        theirs{c.keys * width, width, c.head_size};
    return {q.data(), k.data(), v.data(), mine,      theirs, theirs,      out,
            mine,     c.batch,  c.heads,  c.queries, c.keys, c.head_size, scale()};
  }
  float scale() const { return 1 / std::sqrt(static_cast<float>(c.head_size)); }

  const float* at(const Floats& x, int64_t tokens, int64_t b, int64_t token, int64_t head) const {
    return x.data() + ((b * tokens + token) * c.heads + head) * c.head_size;
  }

  std::vector<double> expected_row(int64_t b, int64_t head, int64_t query) const {
    std::vector<double> score(static_cast<size_t>(c.keys)), out(static_cast<size_t>(c.head_size));
    double top = -INFINITY, total = 0;
    for (int64_t j = 0; j < c.keys; ++j) {
      double sum = 0;
      for (int64_t e = 0; e < c.head_size; ++e)
        sum += static_cast<double>(at(q, c.queries, b, query, head)[e]) * at(k, c.keys, b, j, head)[e];
      score[static_cast<size_t>(j)] = sum * static_cast<double>(scale());
      top = std::max(top, score[static_cast<size_t>(j)]);
    }
    for (double& s : score) total += s = std::exp(s - top);
    for (int64_t j = 0; j < c.keys; ++j)
      for (size_t e = 0; e < out.size(); ++e)
        out[e] += score[static_cast<size_t>(j)] / total * static_cast<double>(at(v, c.keys, b, j, head)[e]);
    return out;
  }

  // A score's error moves its weight by the same relative amount: its size and length count.
  double tolerance() const {
    const double score = c.spread * c.spread * std::sqrt(static_cast<double>(c.head_size)) + 1;
    return sum_tolerance(DType::kF32, c.head_size, score) + sum_tolerance(DType::kF32, c.keys, 1);
  }
};

Floats attend(const AttentionProblem& p, const IsaKernels& isa, int threads, CpuParallelism parallel = {}) {
  const AttentionCase& c = p.c;
  TestContext test(threads, isa, attention_scratch(isa, c.queries, c.keys, c.head_size));
  Floats out(p.q.size(), std::nanf(""));
  parallel_attention(test.context(parallel), p.args(out.data()));
  return out;
}

class CpuAttention : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(CpuAttention, EveryLevelAgreesWithDoubleForAnyNumberOfThreads) {
  const AttentionProblem p(GetParam());
  for (IsaLevel level : available_isa_levels()) {
    const IsaKernels& isa = isa_kernels(level);
    const Floats one = attend(p, isa, 1);
    for (int64_t b = 0; b < p.c.batch; ++b) {
      for (int64_t head = 0; head < p.c.heads; ++head) {
        for (int64_t query = 0; query < p.c.queries; query += 3) {
          const std::vector<double> want = p.expected_row(b, head, query);
          const float* got = p.at(one, p.c.queries, b, query, head);
          for (size_t e = 0; e < want.size(); ++e)
            ASSERT_NEAR(got[e], want[e], p.tolerance()) << isa.name << " head " << head << " query " << query;
        }
      }
    }
    for (int threads : {2, 3, 8}) EXPECT_TRUE(same_bits(one, attend(p, isa, threads))) << isa.name << threads;
    EXPECT_TRUE(same_bits(one, attend(p, isa, 3, {.heads = false})));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CpuAttention, ::testing::ValuesIn(kAttentionCases), [](const auto& test) {
  const AttentionCase& c = test.param;
  return std::to_string(c.queries) + "x" + std::to_string(c.keys) + "x" + std::to_string(c.head_size);
});

// Scores of a later block of keys so far above the earlier ones that only a maximum renewed there keeps their
// exponentials finite.
TEST(CpuAttentionBlocks, LaterKeysMayScoreFarHigher) {
  AttentionProblem p({1, 1, 9, 600, 16});
  std::fill(p.q.begin(), p.q.end(), 1.0f);
  std::fill(p.k.begin(), p.k.end(), 0.0f);
  std::fill(p.k.end() - 50 * 16, p.k.end(), 40.0f);
  for (IsaLevel level : available_isa_levels()) {
    const Floats found = attend(p, isa_kernels(level), 1);
    const std::vector<double> want = p.expected_row(0, 0, 0);
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], want[i % 16], sum_tolerance(DType::kF32, 50, 1)) << isa_kernels(level).name;
  }
}

// The layout a qkv projection leaves behind: one buffer [B, N, 3, H, E].
TEST(CpuAttentionLayout, ReadsPackedQkvInPlace) {
  const int64_t batch = 2, heads = 3, tokens = 37, size = 24, width = heads * size;
  AttentionProblem p({batch, heads, tokens, tokens, size});
  Floats qkv(static_cast<size_t>(batch * tokens * 3 * width)), out(p.q.size());
  for (int64_t token = 0; token < batch * tokens; ++token) {
    for (int64_t part = 0; part < 3; ++part) {
      const Floats& from = part == 0 ? p.q : part == 1 ? p.k : p.v;
      std::copy_n(from.data() + token * width, width, qkv.data() + (token * 3 + part) * width);
    }
  }
  const IsaKernels& isa = isa_kernels(best_isa());
  TestContext test(2, isa, attention_scratch(isa, tokens, tokens, size));
  AttentionArgs args = p.args(out.data());
  args.q = qkv.data(), args.k = args.q + width, args.v = args.k + width;
  args.q_strides = args.k_strides = args.v_strides = {tokens * 3 * width, 3 * width, size};
  parallel_attention(test.context(), args);
  EXPECT_TRUE(same_bits(out, attend(p, isa, 1)));
}

// Broken input must not look healthy.
TEST(CpuAttentionLayout, NanInAKeyReachesEveryQuery) {
  AttentionProblem p({1, 1, 9, 30, 8});
  p.k[20 * 8 + 3] = std::nanf("");
  for (IsaLevel level : available_isa_levels())
    for (float value : attend(p, isa_kernels(level), 1)) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace vitrail
