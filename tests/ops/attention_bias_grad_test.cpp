// Attention's gradient with that of the bias before it: against the two apart, and the kernel of the GPU
// against the reference.
#include <gtest/gtest.h>

#include "attention_sums_cases.h"
#include "backend/cuda/kernels.h"
#include "cuda_test.h"
#include "judge_op.h"
#include "ops/attention_bias_grad.h"

namespace vitrail {
namespace {

OpCase bias_grad_case(const SumsSize& s) {
  OpCase c = plain_grad_case(s);
  c.name = strf("attention_bias_grad_%lld_of_%lld", static_cast<long long>(s.tokens),
                static_cast<long long>(s.head_size));
  c.op = make_op<AttentionBiasGradOp>();
  return c;
}

TEST(AttentionBiasGrad, TheReferenceSumsWhatAttentionsGradientGives) {
  for (const SumsSize& s : {SumsSize{5, 3, 16}, SumsSize{50, 2, 18}}) {
    const OpCase c = bias_grad_case(s), apart = plain_grad_case(s);
    const std::vector<Values> inputs = make_inputs(apart, {});
    const std::vector<Result> both = run_op(c, c.ins, inputs, {});
    const Values dqkv = run_op(apart, apart.ins, inputs, {})[0].values;
    ASSERT_EQ(both.size(), 2u);
    EXPECT_EQ(both[0].values, dqkv);
    Values sums(static_cast<size_t>(3 * s.heads * s.head_size));
    for (size_t i = 0; i < dqkv.size(); ++i) sums[i % sums.size()] += dqkv[i];
    EXPECT_EQ(both[1].values, sums);
  }
}

TEST(AttentionBiasGrad, AGpuOfHopperTakes161To208TokensIn16Bits) {
  const auto reason = [](int64_t tokens, int64_t head_size, DType dtype, int compute = 90) {
    const Shape qkv = packed({tokens, 2, head_size}), out = output({tokens, 2, head_size});
    const std::vector<TensorDesc> ins = {{dtype, qkv}, {dtype, out}};
    const AttentionBiasGradOp op;
    const std::vector<TensorDesc> outs = op.infer(ins);
    const std::vector<Kernel>* kernels = cuda_backend().find("attention_bias_grad");
    return kernels->front().declines({op, ins, outs}, planned_cuda_device("a GPU", compute, 132));
  };
  EXPECT_EQ(reason(197, 64, DType::kBF16), "");
  EXPECT_EQ(reason(161, 8, DType::kF16), "");
  EXPECT_EQ(reason(208, 64, DType::kF16), "");
  EXPECT_EQ(reason(160, 64, DType::kBF16), "160 tokens; it takes 161 to 208");
  EXPECT_EQ(reason(209, 64, DType::kBF16), "209 tokens; it takes 161 to 208");
  EXPECT_EQ(reason(197, 72, DType::kBF16), "heads of 72 elements; it takes multiples of 8 up to 64");
  EXPECT_EQ(reason(197, 64, DType::kF32), "computes in bf16 and f16");
  EXPECT_EQ(reason(197, 64, DType::kBF16, 80), "needs compute capability 9.0");
}

class BiasGradSizes : public testing::TestWithParam<SumsSize> {};

// Whole last tiles and such of one row; heads narrower than the kernel's; more heads than run at once.
TEST_P(BiasGradSizes, CudaInBothTypesAndReplayed) {
  if (const std::string problem = hopper_problem(); !problem.empty()) GTEST_SKIP() << problem;
  const OpCase c = bias_grad_case(GetParam()), apart = plain_grad_case(GetParam());
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    RunSettings settings{.backend = "cuda", .dtype = dtype};
    const std::vector<Values> inputs = make_inputs(c, settings);
    const std::vector<Result> wanted = run_op(c, c.ins, inputs, {});
    OpJudge judge(c, inputs, wanted);
    const std::vector<Result> found = run_op(c, c.ins, inputs, settings);
    const Verdict verdict = judge.verdict(settings, found);
    EXPECT_LE(verdict.share, kAllowedShare) << c.name << " in " << to_string(dtype) << ": " << verdict.where;
    Margins::note(settings, verdict.share, c.name);
    EXPECT_EQ(found[0].values, run_op(apart, apart.ins, inputs, settings)[0].values) << c.name;
    settings.runs = 3;
    EXPECT_TRUE(found == run_op(c, c.ins, inputs, settings)) << "replayed: " << c.name;
  }
}

INSTANTIATE_TEST_SUITE_P(AttentionBiasGrad, BiasGradSizes,
                         testing::Values(SumsSize{161, 2, 64}, SumsSize{177, 1, 8}, SumsSize{193, 3, 24},
                                         SumsSize{197, 12, 64, 3}, SumsSize{208, 2, 64},
                                         SumsSize{200, 150, 16}));

}  // namespace
}  // namespace vitrail
