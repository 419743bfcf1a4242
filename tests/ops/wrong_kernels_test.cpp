// The results of wrong kernels are refused in 16 bits at every length, and right ones are not: this tests the
// judgement of the op tests and of --check ref.
#include <gtest/gtest.h>

#include <cmath>

#include "attention_sums_cases.h"
#include "faulty_attention.h"
#include "judge_op.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/linear.h"

namespace vitrail {
namespace {

// The least exact rounding that a kernel may have: every one that some kernel declares, at once.
constexpr Rounding kCoarsest{
    .gemm = true, .members = true, .weights = true, .residual = true, .bias = true, .gelu = true};

// What kernels of a GEMM declare, each alone and all at once. One that declares `residual` adds it inside the
// GEMM, before which there is no gelu (plan_gemm), so its noise is none of a gelu's.
constexpr Rounding kOfSums[] = {{},
                                {.gemm = true},
                                {.members = true},
                                {.residual = true},
                                {.bias = true},
                                {.gemm = true, .members = true, .residual = true, .bias = true}};
constexpr Rounding kOfGelus[] = {{},
                                 {.gemm = true},
                                 {.members = true},
                                 {.bias = true},
                                 {.gelu = true},
                                 {.gemm = true, .members = true, .bias = true, .gelu = true}};
std::string said(const Rounding& rounding) {
  return strf("gemm %d, members %d, residual %d, bias %d, gelu %d", rounding.gemm, rounding.members,
              rounding.residual, rounding.bias, rounding.gelu);
}

// A case with its right results and the noise that kernels may leave in them.
struct Judged {
  Judged(const OpCase& of, const RunSettings& settings, const Rounding& rounding = kCoarsest)
      : Judged(of, settings, make_inputs(of, settings), rounding) {}
  Judged(const OpCase& of, const RunSettings& settings, std::vector<Values> given,
         const Rounding& rounding = kCoarsest)
      : c(of), inputs(std::move(given)) {
    for (const TensorDesc& out : c.op->infer(input_descs(c, c.ins, settings))) types.push_back(out.dtype);
    for (int updated : c.op->updates()) types.push_back(input_descs(c, c.ins, settings)[updated].dtype);
    known = with_noise(c, settings, rounding, inputs, run_op(c, c.ins, inputs, {}), types);
  }
  // Returns the error of these results as a share of what is allowed.
  double share(const std::vector<Values>& results) const {
    double worst = 0;
    for (size_t r = 0; r < results.size(); ++r)
      worst = std::max(worst, judge(known[r], rounded(results[r], types[r])).share);
    return worst;
  }

  OpCase c;
  std::vector<Values> inputs;
  std::vector<DType> types;
  std::vector<Known> known;
};

struct Length {
  int64_t terms;
  DType type;
};
void PrintTo(const Length& length, std::ostream* os) {
  *os << length.terms << to_string(length.type);
}

class WrongKernels : public testing::TestWithParam<Length> {
 protected:
  const int64_t terms_ = GetParam().terms;
  const RunSettings settings_{.dtype = GetParam().type};
};

// So many keys and so many queries: packed, or with fewer queries for the longest, since the reference is
// slow.
std::vector<std::vector<Shape>> tokens_of(int64_t tokens) {
  const Dim b('B', 1), h('H', 2), e('E', tokens > 197 ? 16 : 64), few('S', 12);
  if (tokens <= 1024) return {{{b, {'N', tokens}, {'T', 3}, h, e}}};
  return {{{few, h, e}, {b, {'M', tokens}, {'T', 2}, h, e}},
          {{{'S', tokens}, h, e}, {b, {'M', few.local}, {'T', 2}, h, e}}};
}

constexpr AttentionFault kWrongKeys[] = {AttentionFault::kScoresTooLarge, AttentionFault::kLastKeyLeftOut,
                                         AttentionFault::kOneKeyTooMany};

TEST_P(WrongKernels, OfAttention) {
  for (const std::vector<Shape>& shapes : tokens_of(terms_)) {
    const OpCase c{"wrong_attention", make_op<AttentionOp>(), shapes, std::vector<bool>(shapes.size())};
    const Judged judged(c, settings_);
    const auto share = [&](AttentionFault fault) {
      return judged.share({faulty_attention(fault, shapes, judged.inputs)});
    };
    EXPECT_LE(share(AttentionFault::kNone), 0.5);
    for (AttentionFault fault : kWrongKeys) EXPECT_GT(share(fault), 1) << static_cast<int>(fault);
  }
}

TEST_P(WrongKernels, OfAttentionsGradient) {
  for (std::vector<Shape> shapes : tokens_of(terms_)) {
    const Shape &q = shapes[0], &kv = shapes.back();
    shapes.push_back(shapes.size() == 1 ? Shape({q[0], q[1], q[3], q[4]}) : Shape({kv[0], q[0], q[1], q[2]}));
    const OpCase c{"wrong_attention_grad", make_op<AttentionGradOp>(), shapes,
                   std::vector<bool>(shapes.size())};
    const Judged judged(c, settings_);
    const auto share = [&](AttentionFault fault) {
      return judged.share(faulty_attention_grad(fault, shapes, judged.inputs));
    };
    EXPECT_LE(share(AttentionFault::kNone), kAllowedShare);
    for (AttentionFault fault :
         {AttentionFault::kScoresTooLarge, AttentionFault::kLastKeyLeftOut, AttentionFault::kOneKeyTooMany,
          AttentionFault::kNoMeanInDq, AttentionFault::kNoMeanInDk, AttentionFault::kNoDq,
          AttentionFault::kNoDk, AttentionFault::kLastQueryLeftOut})
      EXPECT_GT(share(fault), 1) << static_cast<int>(fault);
  }
}

// All tokens are queries, so the longest have small heads.
SumsSize sums_size(int64_t tokens) {
  return {tokens, 1, tokens <= 197 ? 64 : tokens <= 1024 ? 16 : 4, 1};
}

// The output and the sums are judged apart: a wrong one must be seen beside a right other.
TEST_P(WrongKernels, OfAttentionThatKeepsItsSums) {
  const OpCase c = sums_case(sums_size(terms_));
  const Judged judged(c, settings_);
  const auto right = faulty_attention_sums(AttentionFault::kNone, c.ins[0], judged.inputs[0]);
  EXPECT_LE(judged.share(right), 0.5);
  for (AttentionFault fault : kWrongKeys) {
    const auto wrong = faulty_attention_sums(fault, c.ins[0], judged.inputs[0]);
    EXPECT_GT(judged.share({wrong[0], right[1]}), 1) << "output, " << static_cast<int>(fault);
    EXPECT_GT(judged.share({right[0], wrong[1]}), 1) << "sums, " << static_cast<int>(fault);
  }
}

// A mean that is 5 % too large would pass in bf16 where all intermediates are rounded (0.80 of what is
// allowed for 577 keys).
TEST_P(WrongKernels, OfTheGradientThatReadsKeptSums) {
  const SumsSize size = sums_size(terms_);
  const OpCase c = sums_grad_case(size);
  std::vector<Values> inputs = make_inputs(c, settings_);
  const auto kept = faulty_attention_sums(AttentionFault::kNone, c.ins[0], inputs[0]);
  inputs[1] = rounded(kept[0], settings_.dtype);
  inputs[2] = rounded(kept[1], DType::kF32);
  const Judged judged(c, settings_, inputs);
  const auto share = [&](AttentionFault fault) {
    return judged.share({faulty_attention_sums_grad(fault, c.ins[0], inputs)});
  };
  EXPECT_LE(share(AttentionFault::kNone), kAllowedShare);
  for (AttentionFault fault :
       {AttentionFault::kScoresTooLarge, AttentionFault::kLastKeyLeftOut, AttentionFault::kOneKeyTooMany,
        AttentionFault::kNoMeanInDq, AttentionFault::kNoMeanInDk, AttentionFault::kNoDq,
        AttentionFault::kNoDk, AttentionFault::kLastQueryLeftOut, AttentionFault::kMeanTooLarge})
    EXPECT_GT(share(fault), 1) << static_cast<int>(fault);
}

OpPtr chain(OpPtr last) {
  std::vector<FusedOp::Member> members = {{make_op<LinearOp>(), {0, 1}},
                                          {make_op<BiasOp>(), {made_by(0), 2}}};
  if (last) members.push_back({std::move(last), {made_by(1)}});
  return std::make_shared<FusedOp>(std::move(members));
}

OpCase gemm_case(int64_t terms, OpPtr op) {
  const Dim d('D', terms), f('F', 64);
  return {"wrong_gemm", std::move(op), {{{'B', 1}, {'N', 48}, d}, {f, d}, {f}}, {false, false, false}};
}

TEST_P(WrongKernels, OfAProductWithoutItsBias) {
  for (const Rounding& rounding : kOfSums) {
    SCOPED_TRACE(said(rounding));
    const Judged judged(gemm_case(terms_, chain(nullptr)), settings_, rounding);
    std::vector<Values> without = judged.inputs;
    without[2].assign(without[2].size(), 0);
    EXPECT_LE(judged.share({judged.known[0].values}), kAllowedShare);
    EXPECT_GT(judged.share({run_op(judged.c, judged.c.ins, without, {})[0].values}), 1);
  }
}

// The residual is as large as the product and the bias: each of them is missed.
TEST_P(WrongKernels, OfASumWithoutItsBiasOrItsResidual) {
  OpCase c = gemm_case(
      terms_, std::make_shared<FusedOp>(std::vector<FusedOp::Member>{{make_op<LinearOp>(), {0, 1}},
                                                                     {make_op<BiasOp>(), {made_by(0), 2}},
                                                                     {make_op<AddOp>(), {made_by(1), 3}}}));
  c.ins.push_back({c.ins[0][0], c.ins[0][1], c.ins[2][0]});
  c.is_parameter.push_back(false);
  for (const Rounding& rounding : kOfSums) {
    SCOPED_TRACE(said(rounding));
    const Judged judged(c, settings_, rounding);
    EXPECT_LE(judged.share({judged.known[0].values}), kAllowedShare);
    for (const size_t missed : {2, 3}) {
      std::vector<Values> without = judged.inputs;
      without[missed].assign(without[missed].size(), 0);
      EXPECT_GT(judged.share({run_op(c, c.ins, without, {})[0].values}), 1) << "input " << missed;
    }
  }
}

// The gelu's input is about 1.5 in size: values in [-4, -2.3], where its two forms differ, are among it.
TEST_P(WrongKernels, OfAGelu) {
  const OpCase c = gemm_case(terms_, chain(make_op<GeluOp>(false)));
  std::vector<Values> inputs = make_inputs(c, settings_);
  const double size = 4.5 / std::sqrt(static_cast<double>(terms_));
  for (double& x : inputs[0]) x *= size;
  inputs[0] = rounded(inputs[0], settings_.dtype);
  const Values tanh = run_op(gemm_case(terms_, chain(make_op<GeluOp>(true))), c.ins, inputs, {})[0].values;
  Values sigmoid = run_op(gemm_case(terms_, chain(nullptr)), c.ins, inputs, {})[0].values;
  for (double& x : sigmoid) x /= 1 + std::exp(-1.702 * x);
  for (const Rounding& rounding : kOfGelus) {
    SCOPED_TRACE(said(rounding));
    const Judged judged(c, settings_, inputs, rounding);
    EXPECT_LE(judged.share({judged.known[0].values}), kAllowedShare);
    EXPECT_GT(judged.share({tanh}), 1);
    EXPECT_GT(judged.share({sigmoid}), 1);
  }
}

const Length kLengths[] = {{64, DType::kF16},   {64, DType::kBF16},   {197, DType::kF16},
                           {197, DType::kBF16}, {577, DType::kF16},   {577, DType::kBF16},
                           {1024, DType::kF16}, {1024, DType::kBF16}, {4096, DType::kF16},
                           {4096, DType::kBF16}};
INSTANTIATE_TEST_SUITE_P(Lengths, WrongKernels, testing::ValuesIn(kLengths),
                         [](const auto& test) { return testing::PrintToString(test.param); });

// GEMMs of rounded factors, as on a GPU: single elements may be far off, the root mean square may not.
class WrongRoundedKernels : public testing::TestWithParam<Arithmetic> {};

TEST_P(WrongRoundedKernels, WithoutTheirBias) {
  for (const int64_t terms : {64, 768, 3072})
    for (const DType type : {DType::kF32, DType::kBF16}) {
      const OpCase c = gemm_case(
          terms, std::make_shared<FusedOp>(std::vector<FusedOp::Member>{
                     {make_op<LinearOp>(GetParam()), {0, 1}}, {make_op<BiasOp>(), {made_by(0), 2}}}));
      const Judged judged(c, {.dtype = type});
      std::vector<Values> without = judged.inputs;
      without[2].assign(without[2].size(), 0);
      EXPECT_LE(judged.share({judged.known[0].values}), kAllowedShare) << terms << " in " << to_string(type);
      EXPECT_GT(judged.share({run_op(c, c.ins, without, {})[0].values}), 1)
          << terms << " in " << to_string(type);
    }
}

INSTANTIATE_TEST_SUITE_P(Types, WrongRoundedKernels, testing::Values(Arithmetic::kFp8, Arithmetic::kTF32),
                         [](const auto& test) { return std::string(enum_name(test.param)); });

// A result of any op that is a tenth too large, or half as large, is wrong.
class WrongSizes : public testing::TestWithParam<OpCaseRef> {};

TEST_P(WrongSizes, AreRefused) {
  for (DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    const Judged judged(GetParam(), {.dtype = type});
    for (size_t r = 0; r < judged.known.size(); ++r)
      for (double size : {1.1, 0.5}) {
        Values values = judged.known[r].values;
        for (double& value : values) value *= size;
        if (!is_float(judged.types[r]) || values == judged.known[r].values) continue;  // nothing but zeros
        EXPECT_GT(judge(judged.known[r], rounded(values, judged.types[r])).share, 1)
            << to_string(type) << ", result " << r << " times " << size;
      }
  }
}

std::vector<OpCaseRef> sized_cases() {
  constexpr SumsSize kSmall{50, 2, 18}, kLarge{273, 1, 16};
  static const std::vector<OpCase> sums = {sums_case(kSmall), sums_grad_case(kSmall), sums_case(kLarge),
                                           sums_grad_case(kLarge)};
  std::vector<OpCaseRef> cases = op_case_refs();
  cases.insert(cases.end(), sums.begin(), sums.end());
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Ops, WrongSizes, testing::ValuesIn(sized_cases()),
                         [](const auto& test) { return test.param.get().name; });

}  // namespace
}  // namespace vitrail
