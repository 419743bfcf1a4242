// Attention that keeps its softmax's sums, and the gradient that reads them: against attention without, and
// every backend that has kernels for it against the reference.
#include <gtest/gtest.h>

#include <cmath>

#include "attention_sums_cases.h"
#include "cuda_test.h"
#include "judge_op.h"
#include "ops/attention.h"

namespace vitrail {
namespace {

constexpr SumsSize kSizes[] = {{5, 3, 16}, {50, 2, 18}};
// Sizes of the kernels for Hopper: every width they are made for and heads between two of them, last tiles of
// all kinds, and more tasks than a GPU has blocks, in which one of two groups has no rows.
constexpr SumsSize kStreamSizes[] = {{273, 2, 64},    {290, 3, 64},     {384, 2, 24},    {577, 2, 64},
                                     {273, 60, 8},    {193, 2, 80},     {257, 2, 80},    {577, 1, 80, 1},
                                     {769, 1, 80, 1}, {300, 2, 88},     {197, 2, 96},    {257, 2, 104},
                                     {310, 1, 120},   {577, 1, 128, 1}, {257, 50, 72, 1}};

void expect_close(const Values& found, const Values& wanted, double relative) {
  ASSERT_EQ(found.size(), wanted.size());
  double largest = 0;
  for (double value : wanted) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], wanted[i], relative * largest) << i;
}

TEST(AttentionSums, TheReferenceGivesWhatAttentionGives) {
  for (const SumsSize& s : kSizes) {
    const OpCase keeping = sums_case(s);
    const std::vector<Values> qkv = make_inputs(keeping, {});
    const OpCase plain = plain_case(s);
    const std::vector<Result> kept = run_op(keeping, keeping.ins, qkv, {});
    EXPECT_EQ(kept[0].values, run_op(plain, plain.ins, qkv, {})[0].values);

    const OpCase from_kept = sums_grad_case(s);
    const OpCase again = plain_grad_case(s);
    const Values dout = make_inputs(again, {})[1];
    expect_close(
        run_op(from_kept, from_kept.ins, {qkv[0], kept[0].values, kept[1].values, dout}, {})[0].values,
        run_op(again, again.ins, {qkv[0], dout}, {})[0].values, 1e-12);
  }
}

// The sum of exponentials, written out for scores that are all equal.
TEST(AttentionSums, KeepsTheBaseTwoLogarithm) {
  const SumsSize s{8, 1, 4};
  const OpCase c = sums_case(s);
  const Values ones(static_cast<size_t>(packed(s).elems()), 1.0);
  const std::vector<Result> kept = run_op(c, c.ins, {ones}, {});
  for (double value : kept[1].values)
    EXPECT_NEAR(value, 3 + 2 / std::log(2.0), 1e-12);  // 8 times exp(4 / sqrt(4))
}

void expect_near(const OpCase& c, const RunSettings& settings, bool replay) {
  const std::vector<Values> inputs = make_inputs(c, settings);
  const std::vector<Result> wanted = run_op(c, c.ins, inputs, {});
  OpJudge judge(c, inputs, wanted);
  const std::vector<Result> found = run_op(c, c.ins, inputs, settings);
  const Verdict verdict = judge.verdict(settings, found);
  EXPECT_LE(verdict.share, kAllowedShare)
      << c.name << " on " << settings.backend << " in " << to_string(settings.dtype) << ": " << verdict.where;
  Margins::note(settings, verdict.share, c.name);
  if (!replay) return;
  RunSettings again = settings;
  again.runs = 3;
  EXPECT_TRUE(found == run_op(c, c.ins, inputs, again)) << "replayed: " << c.name;
}

TEST(AttentionSums, ReferenceInEveryDtype) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    for (const SumsSize& s : kSizes)
      for (const OpCase& c : {sums_case(s), sums_grad_case(s)}) expect_near(c, {.dtype = dtype}, false);
}

class StreamSizes : public testing::TestWithParam<SumsSize> {};

TEST_P(StreamSizes, CudaInBothTypesAndReplayed) {
  if (const std::string problem = hopper_problem(); !problem.empty()) GTEST_SKIP() << problem;
  const SumsSize& s = GetParam();
  for (const DType dtype : {DType::kF16, DType::kBF16})
    for (const OpCase& c : {sums_case(s), sums_grad_case(s), plain_case(s), plain_grad_case(s)})
      expect_near(c, {.backend = "cuda", .dtype = dtype}, true);
}

INSTANTIATE_TEST_SUITE_P(AttentionSums, StreamSizes, testing::ValuesIn(kStreamSizes), [](const auto& test) {
  return strf("%lldOf%lld", static_cast<long long>(test.param.tokens),
              static_cast<long long>(test.param.head_size));
});

// So many heads that a Hopper GPU has two or three blocks for each: they take its four tiles in turns.
TEST(AttentionOfSharedHeads, CudaInBothTypesAndReplayed) {
  if (const std::string problem = hopper_problem(); !problem.empty()) GTEST_SKIP() << problem;
  for (const int64_t heads : {120, 150})
    for (const DType dtype : {DType::kF16, DType::kBF16})
      expect_near(plain_case({197, heads, 8, 1}), {.backend = "cuda", .dtype = dtype}, true);
}

// A wrong sum or a wrong output must be seen: one key too few, and a mean that is 5 % off.
TEST(AttentionSums, TheBoundsAreTight) {
  const SumsSize s{273, 1, 16};
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const RunSettings settings{.dtype = dtype};
    const OpCase forward = sums_case(s), grad = sums_grad_case(s);
    const std::vector<Values> qkv = make_inputs(forward, settings);
    const std::vector<Result> kept = run_op(forward, forward.ins, qkv, {});
    OpJudge sums(forward, qkv, kept);
    std::vector<Result> found = run_op(forward, forward.ins, qkv, settings);
    for (double& value : found[1].values) value += std::log2(1 - 1 / static_cast<double>(s.tokens));
    EXPECT_GT(sums.verdict(settings, found).share, 1) << to_string(dtype);

    const std::vector<Values> inputs = make_inputs(grad, settings);
    const std::vector<Result> gradients = run_op(grad, grad.ins, inputs, {});
    OpJudge grads(grad, inputs, gradients);
    std::vector<Values> off = inputs;
    for (double& value : off[1]) value *= 1.05;
    EXPECT_GT(grads.verdict(settings, run_op(grad, grad.ins, off, settings)).share, 1) << to_string(dtype);
  }
}

}  // namespace
}  // namespace vitrail
