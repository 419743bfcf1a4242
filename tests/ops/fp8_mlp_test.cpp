// The MLP in fp8 whose first GEMM writes codes for the second: a bound sets their scales before they are
// known.
#include "fp8_mlp.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backend/cuda/kernels.h"
#include "cuda_calls.h"
#include "cuda_test.h"
#include "run_op.h"

namespace vitrail {
namespace {

const Dim kFewTokens('N', 3), kPair('B', 2);

OpCase mlp_of_width(int64_t width, int64_t inner) {
  const Dim own('D', width);
  return mlp_case("mlp", {kPair, kFewTokens, own}, own, {'F', inner});
}

struct Range {
  const void* at;
  int64_t bytes;

  bool meets(const Range& other) const {
    const auto *first = static_cast<const std::byte*>(at), *second = static_cast<const std::byte*>(other.at);
    return first < second + other.bytes && second < first + bytes;
  }
};

// A tile may be written before another is read.
TEST(Fp8Mlp, TheFirstGemmWritesNothingThatItReads) {
  const OpCase c = mlp_of_width(192, 576);
  const DeviceInfo hopper = planned_cuda_device("H200", 90, 132);
  const std::vector<TensorDesc> ins = input_descs(c, c.ins, {.dtype = DType::kBF16});
  const std::vector<TensorDesc> outs = c.op->infer(ins);
  const NodeView node{*c.op, ins, outs};
  const Kernel* kernel = cuda_backend().choose(node, hopper).kernel;
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(std::string(kernel->name), "hopper and cublaslt fp8, weights rounded too");
  const auto gemms =
      calls_to(&cuda::GemmApi::hopper_fp8_gemm,
               calls_of(kernel->prepare(node, hopper), node, hopper, separate_operands(node), 0, false));
  ASSERT_EQ(gemms.size(), 1u);
  const cuda::FusedGemmCall& gemm = gemms[0];
  const int64_t rows = gemm.m * 4, columns = gemm.n * 4;
  const Range written[] = {{gemm.d.data, gemm.m * gemm.n}, {gemm.codes.scales, rows}};
  const Range read[] = {{gemm.a.data, gemm.m * gemm.k}, {gemm.b.data, gemm.n * gemm.k}, {gemm.a_scales, rows},
                        {gemm.b_scales, columns},       {gemm.codes.norms, rows},       {gemm.codes.tops, 8}};
  EXPECT_FALSE(written[0].meets(written[1]));
  for (const Range& from : read)
    for (const Range& to : written) EXPECT_FALSE(from.meets(to));
}

// Rows whose norm is far from 1, after a layernorm with such a weight: a scale that is too small loses the
// large codes, one that is far too large the small ones. No bias and no residual hides it.
void expect_codes_of_rows(const OpCase& c, double factor) {
  RunSettings settings{.dtype = DType::kBF16};
  std::vector<Values> inputs = make_inputs(c, settings);
  for (double& weight : inputs[1]) weight = factor;
  for (int none : {2, 4, 6, 7}) std::fill(inputs[none].begin(), inputs[none].end(), 0.0);
  const Values wanted = run_op(c, c.ins, inputs, settings)[0].values;
  settings.backend = "cuda";
  const Values found = run_op(c, c.ins, inputs, settings)[0].values;
  double off = 0, all = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    off += (found[i] - wanted[i]) * (found[i] - wanted[i]);
    all += wanted[i] * wanted[i];
  }
  EXPECT_GT(all, 0);
  EXPECT_LT(std::sqrt(off / all), 0.02) << c.ins[1][0].local << " inputs, weight " << factor;
}

TEST(Fp8MlpCuda, ScalesOfCodesFollowTheNormsOfRows) {
  if (const std::string problem = hopper_problem(); !problem.empty()) GTEST_SKIP() << problem;
  // A row of 1664 has a kernel of its own.
  for (int64_t width : {192, 1664})
    for (double factor : {0x1p-10, 1.0}) expect_codes_of_rows(mlp_of_width(width, 576), factor);
}

}  // namespace
}  // namespace vitrail
