// Attention of long sequences and its gradient on every backend. With all tokens as queries the reference in
// f64 is computed for some of them alone (attention_slices.h): outputs and dq of queries, dk and dv of keys,
// each bounded apart by the roundings that the kernels declare.
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "attention_slices.h"
#include "backend/cpu/host/levels.h"
#include "backend/cpu/kernels.h"
#include "backend/cuda/launch.h"
#include "cuda_test.h"
#include "judge_op.h"

namespace vitrail {
namespace {

constexpr DType kLongTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
constexpr AttentionFault kRight[] = {AttentionFault::kNone};

// The reference's results as OpJudge takes them.
std::vector<Result> in_double(const OpCase& c, const std::vector<Values>& values) {
  std::vector<Result> results;
  const std::vector<TensorDesc> outs = c.op->infer(input_descs(c, c.ins, {}));
  for (size_t o = 0; o < outs.size(); ++o) results.push_back({outs[o], values[o]});
  return results;
}

// An op with what its results must be, of some tokens or of all.
struct LongCase {
  LongCase(OpCase of, std::vector<Values> given, std::vector<Result> right, Tokens tokens)
      : c(std::move(of)),
        inputs(std::move(given)),
        wanted(std::move(right)),
        judge(c, inputs, wanted, std::move(tokens)) {}
  LongCase(const OpCase& of, const std::vector<Values>& given, const std::vector<Values>& right)
      : LongCase(of, given, in_double(of, right), tokens_to_judge(of.ins[0].local('N'))) {}
  LongCase(const OpCase& of, const std::vector<Values>& given)
      : LongCase(of, given, run_op(of, of.ins, given, {}), {}) {}

  // Runs it twice, the second time as often and on as many threads as said: the results must be the same.
  std::vector<Result> expect_near(const RunSettings& settings, int threads, int runs) {
    std::vector<Result> found = run_op(c, c.ins, inputs, settings);
    const Verdict verdict = judge.verdict(settings, found);
    EXPECT_LE(verdict.share, kAllowedShare) << c.name << " on " << settings.backend << " " << settings.isa
                                            << " in " << to_string(settings.dtype) << ": " << verdict.where;
    Margins::note(settings, verdict.share, c.name);
    RunSettings again = settings;
    again.threads = threads, again.runs = runs;
    EXPECT_TRUE(found == run_op(c, c.ins, inputs, again)) << c.name << " on " << settings.backend << " again";
    return found;
  }

  const OpCase c;
  const std::vector<Values> inputs;
  const std::vector<Result> wanted;
  OpJudge judge;
};

// Attention and its gradient in one type, all tokens being queries.
struct LongAttention {
  LongAttention(const SumsSize& s, DType dtype)
      : size(s),
        inputs(long_inputs(s, dtype)),
        right(attention_slices(s, {inputs[0], inputs[1]}, tokens_to_judge(s.tokens), kRight)[0]),
        forward(plain_case(s), {inputs[0]}, {right.out}),
        grad(plain_grad_case(s), inputs, {right.grads}) {}

  void expect_near(const RunSettings& settings, int threads, int runs) {
    forward.expect_near(settings, threads, runs);
    grad.expect_near(settings, threads, runs);
  }
  // The forward op that keeps its sums, and the gradient from what was kept.
  void expect_kept(const RunSettings& settings, int runs) const {
    LongCase keeping(sums_case(size), {inputs[0]}, {right.out, right.sums});
    const std::vector<Result> kept = keeping.expect_near(settings, settings.threads, runs);
    const Values &out = kept[0].values, &sums = kept[1].values;
    const AttentionSlices from_kept =
        attention_slices(size, {inputs[0], inputs[1], &out, &sums}, tokens_to_judge(size.tokens), kRight)[0];
    LongCase reading(sums_grad_case(size), {inputs[0], out, sums, inputs[1]}, {from_kept.grads});
    reading.expect_near(settings, settings.threads, runs);
  }

  const SumsSize size;
  const std::vector<Values> inputs;
  const AttentionSlices right;
  LongCase forward, grad;
};

using LongRun = std::tuple<SumsSize, DType>;

class LongAttentionTest : public testing::TestWithParam<LongRun> {
 protected:
  const SumsSize size_ = std::get<0>(GetParam());
  const DType dtype_ = std::get<1>(GetParam());
};

TEST_P(LongAttentionTest, OnTheCpu) {
  LongAttention attention(size_, dtype_);
  for (const IsaLevel level : available_isa_levels())
    if (size_.tokens == 1025 || level == best_isa())
      attention.expect_near({.backend = "cpu", .isa = to_string(level), .dtype = dtype_, .threads = 2}, 3, 1);
}

// On Hopper the kernels for older GPUs run, too.
TEST_P(LongAttentionTest, OnCudaAndReplayed) {
  if (const std::string problem = cuda_report().problem; !problem.empty()) GTEST_SKIP() << problem;
  LongAttention attention(size_, dtype_);
  attention.expect_near({.backend = "cuda", .dtype = dtype_}, 1, 3);
  if (!hopper_problem().empty() || dtype_ == DType::kF32) return;
  attention.expect_near({.backend = "cuda", .dtype = dtype_, .compute = 80}, 1, 3);
  attention.expect_kept({.backend = "cuda", .dtype = dtype_}, 3);
}

std::string name_of(const testing::TestParamInfo<LongRun>& test) {
  const auto& [size, dtype] = test.param;
  return strf("%lldOf%lldIn_%s", static_cast<long long>(size.tokens), static_cast<long long>(size.head_size),
              to_string(dtype));
}

INSTANTIATE_TEST_SUITE_P(Sizes, LongAttentionTest,
                         testing::Combine(testing::ValuesIn(long_sizes()), testing::ValuesIn(kLongTypes)),
                         name_of);

void expect_rows_of(const Values& whole, const Values& rows, const char* what) {
  ASSERT_EQ(whole.size(), rows.size());
  double largest = 0;
  size_t compared = 0;
  for (double value : whole) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == 0) continue;  // of another token
    ASSERT_NEAR(rows[i], whole[i], 1e-12 * largest) << what << " " << i;
    ++compared;
  }
  EXPECT_GE(compared, rows.size() / 64) << what;
}

// The reference itself: the slices are rows of what its kernels give, from scratch and from what was kept.
TEST(LongAttentionSlices, AreRowsOfTheReference) {
  for (const SumsSize& s : {SumsSize{1025, 1, 64, 1}, SumsSize{300, 3, 18, 2}}) {
    const OpCase grad = plain_grad_case(s), keeping = sums_case(s), reading = sums_grad_case(s);
    const std::vector<Values> ins = long_inputs(s, DType::kF32);
    const std::vector<Result> kept = run_op(keeping, keeping.ins, {ins[0]}, {});
    const Values &out = kept[0].values, &sums = kept[1].values;
    const Tokens tokens = tokens_to_judge(s.tokens);
    const AttentionSlices fresh = attention_slices(s, {ins[0], ins[1]}, tokens, kRight)[0];
    expect_rows_of(out, fresh.out, "output");
    expect_rows_of(sums, fresh.sums, "logarithm");
    expect_rows_of(run_op(grad, grad.ins, ins, {})[0].values, fresh.grads, "gradient");
    const AttentionSlices again = attention_slices(s, {ins[0], ins[1], &out, &sums}, tokens, kRight)[0];
    expect_rows_of(run_op(reading, reading.ins, {ins[0], out, sums, ins[1]}, {})[0].values, again.grads,
                   "kept");
  }
}

// What a GPU is tested by, where there is none: the reference in these types keeps its sums and reads them.
TEST(LongAttentionSlices, OfTheReferenceThatKeepsItsSums) {
  for (const DType dtype : kLongTypes) {
    const LongAttention attention({300, 2, 64, 1}, dtype);
    attention.expect_kept({.dtype = dtype}, 1);
  }
}

// One query, the class token or one that all images share, reads all tokens: the reference gives all results.
std::vector<OpCase> one_query_cases(int64_t tokens) {
  const auto name = [&](const char* what) {
    return strf("%s_of_%lld", what, static_cast<long long>(tokens));
  };
  const Dim b('B', 1), n('N', tokens), m('M', tokens), h('H', 2), e('E', 64), s('S', 1);
  const QueryScope first = QueryScope::kClassToken;
  return {{name("class_token"), make_op<AttentionOp>(first), {{b, n, {'T', 3}, h, e}}, {false}},
          {name("class_token_grad"),
           make_op<AttentionGradOp>(first),
           {{b, n, {'T', 3}, h, e}, {b, h, e}},
           {false, false}},
          {name("pooling"), make_op<AttentionOp>(), {{s, h, e}, {b, m, {'T', 2}, h, e}}, {false, false}},
          {name("pooling_grad"),
           make_op<AttentionGradOp>(),
           {{s, h, e}, {b, m, {'T', 2}, h, e}, {b, s, h, e}},
           {false, false, false}}};
}

void expect_one_query_near(const char* backend, int threads, int runs) {
  std::set<int64_t> lengths;
  for (const SumsSize& s : long_sizes()) lengths.insert(s.tokens);
  for (const int64_t tokens : lengths)
    for (const OpCase& c : one_query_cases(tokens))
      for (const DType dtype : kLongTypes)
        LongCase(c, make_inputs(c, {.dtype = dtype}))
            .expect_near({.backend = backend, .dtype = dtype, .threads = threads}, threads, runs);
}

TEST(LongAttentionOfOneQuery, CpuInEveryDtype) {
  expect_one_query_near("cpu", 2, 1);
}
TEST(LongAttentionOfOneQuery, CudaInEveryDtypeAndReplayed) {
  if (const std::string problem = cuda_report().problem; !problem.empty()) GTEST_SKIP() << problem;
  expect_one_query_near("cuda", 1, 3);
}

using KernelNames = std::set<std::string>;

// Adds the kernels that take a case on GPUs of both kinds: all of them, or the ones that run.
void add_kernels(const OpCase& c, bool all, KernelNames& names) {
  for (const int compute : {80, 90})
    for (const DType dtype : kLongTypes) {
      const DeviceInfo device = planned_cuda_device("GPU", compute);
      const std::vector<TensorDesc> ins = input_descs(c, c.ins, {.dtype = dtype}), outs = c.op->infer(ins);
      for (const OpKernels& row : cuda::attention_kernels())
        for (const Kernel& kernel : row.kernels) {
          if (row.op != c.op->kind() || !kernel.declines({*c.op, ins, outs}, device).empty()) continue;
          names.insert(std::string(row.op) + " " + kernel.name);
          if (!all) break;
        }
    }
}

// A kernel of attention that takes 4,097 tokens on some GPU, of heads of any size, is run by a case above.
TEST(LongAttentionOnCuda, RunsEveryKernelThatTakesIt) {
  KernelNames run, taking;
  for (const SumsSize& s : long_sizes())
    for (const OpCase& c : {plain_case(s), plain_grad_case(s), sums_case(s), sums_grad_case(s)})
      add_kernels(c, false, run);
  for (const OpCase& c : one_query_cases(4097)) add_kernels(c, false, run);
  for (int64_t head_size = 8; head_size <= 192; head_size += 4) {
    const SumsSize s{4097, 1, head_size, 1};
    for (const OpCase& c : {plain_case(s), plain_grad_case(s), sums_case(s), sums_grad_case(s)})
      add_kernels(c, true, taking);
  }
  for (const OpCase& c : one_query_cases(4097)) add_kernels(c, true, taking);
  EXPECT_EQ(run, taking);
  EXPECT_GE(run.size(), 7u);
}

}  // namespace
}  // namespace vitrail
