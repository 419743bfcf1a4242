// GEMMs that round their factors, fp8 and tf32: the reference near the exact result, a GPU near the
// reference.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/cuda/kernels.h"
#include "cuda_calls.h"
#include "cuda_test.h"
#include "fp8_mlp.h"
#include "judge_op.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/gelu_slope.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/scale.h"

namespace vitrail {
namespace {

const Dim kImages('B', 3), kTokens('N', 65), kWidth('D', 192), kInner('F', 576), kParts('T', 3),
    kHeads('H', 3), kHeadSize('E', 64);
const Shape kRows = {kImages, kTokens, kWidth}, kHidden = {kImages, kTokens, kInner},
            kQkv = {kImages, kTokens, kParts, kHeads, kHeadSize};

OpCase norm_case(const char* name, const Shape& rows, const Dim& width, const Dim& outputs) {
  return {name,
          joined({kNorm, {make_op<LinearOp>(Arithmetic::kFp8), {made_by(0), 3}}}),
          {rows, {width}, {width}, {outputs, width}},
          {false, true, true, true},
          {Role::kPlain, Role::kVector, Role::kVector, Role::kPlain}};
}

std::vector<OpCase> fp8_cases() {
  const Arithmetic fp8 = Arithmetic::kFp8;
  const OpPtr linear = make_op<LinearOp>(fp8), bias = make_op<BiasOp>(), add = make_op<AddOp>();
  const Dim d128('D', 128), d768('D', 768), d1280('D', 1280), f32('F', 32), f3072('F', 3072);
  const auto vector = Role::kVector, plain = Role::kPlain;
  return {
      {"linear", linear, {kRows, {kInner, kWidth}}, {false, true}},
      {"one_row", linear, {{kWidth}, {kInner, kWidth}}, {false, true}},
      {"wide", linear, {{kImages, {'D', 3072}}, {{'F', 768}, {'D', 3072}}}, {false, true}},
      {"learning", linear, {kRows, {kInner, kWidth}}, {false, false}},
      {"packed_qkv", linear, {kRows, {kParts, kHeads, kHeadSize, kWidth}}, {false, true}},
      {"bias",
       joined({{linear, {0, 1}}, {bias, {made_by(0), 2}}}),
       {kRows, {kInner, kWidth}, {kInner}},
       {false, true, true},
       {plain, plain, vector}},
      {"bias_gelu",
       joined({{linear, {0, 1}}, {bias, {made_by(0), 2}}, {make_op<GeluOp>(false), {made_by(1)}}}),
       {kRows, {kInner, kWidth}, {kInner}},
       {false, true, true},
       {plain, plain, vector}},
      {"bias_residual",
       joined({{linear, {0, 1}}, {bias, {made_by(0), 2}}, {add, {3, made_by(1)}}}),
       {kRows, {kInner, kWidth}, {kInner}, kHidden},
       {false, true, true, false},
       {plain, plain, vector, Role::kSum}},
      {"scaled_residual",
       joined({{linear, {0, 1}},
               {bias, {made_by(0), 2}},
               {make_op<ScaleOp>(), {made_by(1), 3}},
               {add, {4, made_by(2)}}}),
       {kRows, {kInner, kWidth}, {kInner}, {kInner}, kHidden},
       {false, true, true, true, false},
       {plain, plain, vector, vector}},
      {"norm_bias",
       joined({kNorm, {linear, {made_by(0), 3}}, {bias, {made_by(1), 4}}}),
       {kRows, {kWidth}, {kWidth}, {kInner, kWidth}, {kInner}},
       {false, true, true, true, true},
       {plain, vector, vector, plain, vector}},
      // More rows than a GPU holds at once.
      norm_case("norm_of_many_rows", {{'B', 150}, kTokens, kWidth}, kWidth, {'F', 16}),
      norm_case("norm_768", {kImages, {'N', 3}, d768}, d768, f32),
      norm_case("norm_1280", {kImages, {'N', 3}, d1280}, d1280, f32),
      mlp_case("mlp", kRows, kWidth, kInner),
      mlp_case("mlp_inner_3072", {kImages, {'N', 3}, d128}, d128, f3072),
      // Tiles of 128 rows, the last of them not whole.
      mlp_case("mlp_of_many_rows", {{'B', 5}, kTokens, kWidth}, kWidth, kInner),
      {"bias_gelu_kept",
       std::make_shared<FusedOp>(
           std::vector<FusedOp::Member>{
               {linear, {0, 1}}, {bias, {made_by(0), 2}}, {make_op<GeluOp>(false), {made_by(1)}}},
           1),
       {kRows, {kInner, kWidth}, {kInner}},
       {false, false, false},
       {plain, plain, vector}},
      {"dx_gelu_grad",
       joined({{make_op<LinearDxOp>(fp8), {0, 1}}, {make_op<GeluGradOp>(false, true), {2, made_by(0)}}}),
       {kRows, {kWidth, kInner}, kHidden},
       {false, false, false}},
      {"bias_gelu_slope",
       joined({{linear, {0, 1}}, {bias, {made_by(0), 2}}, {make_op<GeluSlopeOp>(false), {made_by(1)}}}),
       {kRows, {kInner, kWidth}, {kInner}},
       {false, false, false},
       {plain, plain, vector}},
      {"dx_slope_grad",
       joined({{make_op<LinearDxOp>(fp8), {0, 1}}, {make_op<GeluSlopeGradOp>(true), {2, made_by(0)}}}),
       {kRows, {kWidth, kInner}, kHidden},
       {false, false, false}},
      {"mlp_learning",
       joined({{linear, {0, 1}}, {make_op<GeluOp>(true), {made_by(0)}}, {linear, {made_by(1), 2}}}),
       {kRows, {kInner, kWidth}, {kWidth, kInner}},
       {false, false, false}},
      {"dx", make_op<LinearDxOp>(fp8), {kHidden, {kInner, kWidth}}, {false, false}},
      {"dx_of_qkv", make_op<LinearDxOp>(fp8), {kQkv, {kParts, kHeads, kHeadSize, kWidth}}, {false, false}},
  };
}

std::vector<OpCase> tf32_cases() {
  const Arithmetic tf32 = Arithmetic::kTF32;
  return {{"linear_tf32", make_op<LinearOp>(tf32), {kRows, {kInner, kWidth}}, {false, true}},
          {"dx_tf32", make_op<LinearDxOp>(tf32), {kHidden, {kInner, kWidth}}, {false, false}},
          {"dw_tf32", make_op<LinearDwOp>(tf32), {kRows, kHidden}, {false, false}}};
}

OpCase exactly(OpCase c) {
  if (is<LinearOp>(*c.op)) c.op = make_op<LinearOp>();
  if (is<LinearDxOp>(*c.op)) c.op = make_op<LinearDxOp>();
  if (is<LinearDwOp>(*c.op)) c.op = make_op<LinearDwOp>();
  return c;
}

// Returns the root mean square of the difference relative to that of the expected values.
double share_off(const Values& found, const Values& wanted) {
  double off = 0, all = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    off += (found[i] - wanted[i]) * (found[i] - wanted[i]);
    all += wanted[i] * wanted[i];
  }
  return std::sqrt(off / all);
}

// A number's own rounding is off by up to 2^-4 in e4m3 and 2^-11 in tf32; the root mean square over two
// factors is half of that.
TEST(RoundedGemms, TheReferenceIsNearTheExactResult) {
  const auto check = [](const OpCase& c, double least, double most) {
    const std::vector<Values> inputs = make_inputs(c, {});
    const OpCase exact = exactly(c);
    const double off =
        share_off(run_op(c, c.ins, inputs, {})[0].values, run_op(exact, c.ins, inputs, {})[0].values);
    EXPECT_GT(off, least) << c.name;
    EXPECT_LT(off, most) << c.name;
  };
  for (const char* name : {"linear", "wide", "dx", "dx_of_qkv"})
    for (const OpCase& c : fp8_cases())
      if (c.name == name) check(c, 0.01, 0.045);
  for (const OpCase& c : tf32_cases()) check(c, 1e-5, 5e-4);
}

std::vector<Values> with_row(const OpCase& c, const std::vector<double>& row) {
  std::vector<Values> inputs = make_inputs(c, {});
  std::copy(row.begin(), row.end(), inputs[0].begin());
  return inputs;
}

TEST(RoundedGemms, RowsAreScaledApart) {
  const OpCase c = fp8_cases()[0];
  const auto width = static_cast<size_t>(kWidth.local), outputs = static_cast<size_t>(kInner.local);
  const Values plain = run_op(c, c.ins, make_inputs(c, {}), {})[0].values;
  std::vector<Values> scaled = make_inputs(c, {});
  for (size_t i = 0; i < width; ++i) scaled[0][i] *= 1024;
  const Values larger = run_op(c, c.ins, scaled, {})[0].values;
  for (size_t i = 0; i < outputs; ++i) EXPECT_NEAR(larger[i] / 1024, plain[i], 1e-6 * std::abs(plain[i]));
  for (size_t i = outputs; i < plain.size(); ++i) ASSERT_EQ(larger[i], plain[i]);
}

// Rows of the first factor and outputs of the second, each times a power of two of its own: since each has a
// scale of its own, codes are the same and the results are the plain ones times both, to the bit.
void expect_scales_apart(const OpCase& c, const RunSettings& settings) {
  const std::vector<Values> plain = make_inputs(c, settings);
  const bool gradient = is<LinearDxOp>(*c.op);
  const MatmulExtents e =
      gradient ? linear_dx_extents(c.ins[0], c.ins[1]) : linear_extents(c.ins[0], c.ins[1]);
  const int64_t terms = gradient ? e.n : e.k, outputs = gradient ? e.k : e.n;
  const auto of_row = [](int64_t row) { return static_cast<double>(1 << row % 5); };
  const auto of_output = [](int64_t output) { return static_cast<double>(1 << output % 7); };
  std::vector<Values> scaled = plain;
  for (int64_t i = 0; i < e.m * terms; ++i) scaled[0][static_cast<size_t>(i)] *= of_row(i / terms);
  for (int64_t i = 0; i < e.n * e.k; ++i)
    scaled[1][static_cast<size_t>(i)] *= of_output(gradient ? i % e.k : i / e.k);
  Values wanted = run_op(c, c.ins, plain, settings)[0].values;
  for (int64_t i = 0; i < e.m * outputs; ++i)
    wanted[static_cast<size_t>(i)] *= of_row(i / outputs) * of_output(i % outputs);
  EXPECT_TRUE(run_op(c, c.ins, scaled, settings)[0].values == wanted)
      << c.name << " on " << settings.backend << " in " << to_string(settings.dtype);
}

void expect_scales_apart(const char* backend) {
  for (const char* name : {"linear", "wide", "learning", "packed_qkv", "dx", "dx_of_qkv"})
    for (const OpCase& c : fp8_cases())
      for (DType dtype : {DType::kF32, DType::kBF16})
        if (c.name == name) expect_scales_apart(c, {.backend = backend, .dtype = dtype});
}

TEST(RoundedGemms, OutputsAreScaledApart) {
  expect_scales_apart("ref");
}

void expect_odd_rows(const OpCase& c, const RunSettings& settings) {
  const auto width = static_cast<size_t>(kWidth.local), outputs = static_cast<size_t>(kInner.local);
  std::vector<double> row(width, 0.0);
  const auto first = [&] { return run_op(c, c.ins, with_row(c, row), settings)[0].values; };
  const Values zeros = first();
  for (size_t i = 0; i < outputs; ++i) EXPECT_EQ(zeros[i], 0);
  for (double odd : std::initializer_list<double>{INFINITY, -INFINITY, NAN}) {
    row[5] = odd;
    const Values found = first();
    for (size_t i = 0; i < outputs; ++i) EXPECT_TRUE(std::isnan(found[i])) << odd;
    for (size_t i = outputs; i < found.size(); ++i) ASSERT_TRUE(std::isfinite(found[i])) << odd;
  }
}

TEST(RoundedGemms, ZerosStayAndWhatIsNotFiniteShows) {
  expect_odd_rows(fp8_cases()[0], {.dtype = DType::kF32});
}

struct Mode {
  DType dtype;
  bool full_vectors;
};
constexpr Mode kModes[] = {
    {DType::kF32, false}, {DType::kF16, false}, {DType::kBF16, false}, {DType::kBF16, true}};

class RoundedCuda : public testing::TestWithParam<OpCase> {};

TEST_P(RoundedCuda, CudaAgreesWithTheReferenceAndReplays) {
  const OpCase& c = GetParam();
  const bool anywhere = arithmetic_of(*c.op) == Arithmetic::kTF32;
  if (const std::string problem = anywhere ? cuda_report().problem : hopper_problem(); !problem.empty())
    GTEST_SKIP() << problem;
  for (const Mode& mode : kModes) {
    RunSettings settings{.dtype = mode.dtype, .full_vectors = mode.full_vectors};
    const std::vector<Values> inputs = make_inputs(c, settings);
    const std::vector<Result> wanted = run_op(c, c.ins, inputs, settings);
    settings.backend = "cuda";
    const std::vector<Result> found = run_op(c, c.ins, inputs, settings);
    const Verdict verdict = OpJudge(c, inputs, wanted).verdict(settings, found);
    EXPECT_LE(verdict.share, 1) << to_string(mode.dtype) << ": " << verdict.where;
    Margins::note(settings, verdict.share, c.name, ", rounded factors");
    // The bound is far closer than fp8 is to the exact result; a value that a member rounds to 16 bits may
    // fall to another code.
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_LT(share_off(found[i].values, wanted[i].values), c.name.starts_with("mlp") ? 0.02 : 0.005)
          << to_string(mode.dtype) << ", result " << i;
    settings.runs = 3;
    EXPECT_TRUE(found == run_op(c, c.ins, inputs, settings)) << "replayed in " << to_string(mode.dtype);
  }
}

TEST_P(RoundedCuda, CudaHasAKernel) {
  const OpCase& c = GetParam();
  const DeviceInfo hopper = planned_cuda_device("H200", 90, 132);
  for (const Mode& mode : kModes) {
    const std::vector<TensorDesc> ins =
        input_descs(c, c.ins, {.dtype = mode.dtype, .full_vectors = mode.full_vectors});
    const std::vector<TensorDesc> outs = c.op->infer(ins);
    if (outs.size() > 1 && mode.dtype != DType::kBF16) continue;  // they run member by member
    EXPECT_NE(cuda_backend().choose({*c.op, ins, outs}, hopper).kernel, nullptr) << to_string(mode.dtype);
  }
}

TEST_P(RoundedCuda, ALaunchOnCudaAsksForTheSameByAddressesAlone) {
  const OpCase& c = GetParam();
  for (const Mode& mode : kModes) {
    const std::vector<TensorDesc> ins =
        input_descs(c, c.ins, {.dtype = mode.dtype, .full_vectors = mode.full_vectors});
    const std::vector<TensorDesc> outs = c.op->infer(ins);
    if (outs.size() > 1 && mode.dtype != DType::kBF16) continue;  // they run member by member
    const NodeView node{*c.op, ins, outs};
    EXPECT_GT(expect_blind_launches(c.name, node, separate_operands(node)), 0) << to_string(mode.dtype);
  }
}

std::vector<OpCase> all_cases() {
  std::vector<OpCase> all = fp8_cases();
  for (const OpCase& c : tf32_cases()) all.push_back(c);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ops, RoundedCuda, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(RoundedGemmsCuda, ZerosStayAndWhatIsNotFiniteShows) {
  if (const std::string problem = hopper_problem(); !problem.empty()) GTEST_SKIP() << problem;
  for (DType dtype : {DType::kF32, DType::kBF16})
    expect_odd_rows(fp8_cases()[0], {.backend = "cuda", .dtype = dtype});
}

TEST(RoundedGemmsCuda, OutputsAreScaledApart) {
  if (const std::string problem = hopper_problem(); !problem.empty()) GTEST_SKIP() << problem;
  expect_scales_apart("cuda");
}

}  // namespace
}  // namespace vitrail
