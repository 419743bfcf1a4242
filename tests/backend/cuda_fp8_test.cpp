// Which GEMMs run in fp8 on which GPU, and what memory they need: decided from descriptions, no device is
// touched.
#include <gtest/gtest.h>

#include "backend/cuda/api/fp8.h"
#include "backend/cuda/gemm_parse.h"
#include "backend/cuda/kernels.h"
#include "backend/sketch.h"
#include "ops/bias.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/persistent.h"

namespace vitrail::cuda {
namespace {

const DeviceInfo kHopper = planned_cuda_device("H200", 90, 132);
const Dim kImages('B', 2), kTokens('N', 37);

Sketch linear(int64_t inputs, int64_t outputs, DType dtype = DType::kBF16) {
  const Dim d('D', inputs), f('F', outputs);
  return {std::make_shared<LinearOp>(Arithmetic::kFp8), {{dtype, {kImages, kTokens, d}}, {dtype, {f, d}}}};
}

Sketch dx(int64_t inputs, int64_t outputs) {
  const Dim d('D', inputs), f('F', outputs);
  return {std::make_shared<LinearDxOp>(Arithmetic::kFp8),
          {{DType::kBF16, {kImages, kTokens, f}}, {DType::kBF16, {f, d}}}};
}

std::string chosen(const Sketch& node, const DeviceInfo& device = kHopper) {
  try {
    const Kernel* kernel = cuda_backend().choose(node.view(), device).kernel;
    return kernel ? kernel->name : "members";
  } catch (const Error& error) {
    return error.message();
  }
}

TEST(CudaFp8, AWeightIsRoundedAtLoadWhereItMayBePacked) {
  Sketch node = linear(64, 96);
  EXPECT_EQ(chosen(node), "cublaslt fp8, weight rounded too");
  const std::vector<const Kernel*> candidates = cuda_backend().candidates(node.view(), kHopper);
  for (const Kernel* kernel : candidates) {
    if (!kernel->packing) continue;
    const Packing packing = kernel->packing(node.view(), kHopper);
    EXPECT_EQ(packing.input, 1);
    EXPECT_EQ(packing.bytes, 96u * 64 + 2 * 96 * 4);
    TensorDesc& weight = node.ins[1];
    weight.packing = packing.name, weight.packed_rows = packing.rows, weight.packed_bytes = packing.bytes;
  }
  EXPECT_EQ(chosen(node), "cublaslt fp8");
  const Sketch loading(std::make_shared<LoadParamOp>(node.ins[1]), {{DType::kF32, node.ins[1].shape}});
  EXPECT_EQ(chosen(loading), "fp8 rows");
  EXPECT_EQ(chosen(dx(64, 96)), "cublaslt fp8, weight rounded too");
}

TEST(CudaFp8, SizesAndGpusThatDoNotFitAreTold) {
  for (const auto& [node, device, part] : std::vector<std::tuple<Sketch, DeviceInfo, const char*>>{
           {linear(72, 96), kHopper, "rows of 72 fp8 elements"},
           {linear(64, 100), kHopper, "rows of 100 fp8 elements"},
           {linear(kLongestFp8Row + 16, 32), kHopper, "sums 16400 elements"},
           {dx(96, 40), kHopper, "rows of 40 fp8 elements"},
           {linear(64, 96), planned_cuda_device("A100", 80), "A100 has 8.0"},
           {linear(64, 96, DType::kF64), kHopper, "computes in f32, bf16 and f16"}})
    EXPECT_NE(chosen(node, device).find(part), std::string::npos) << chosen(node, device);
  const auto lacks = [](Arithmetic arithmetic, int compute) {
    return cuda_backend().unsupported_reason(arithmetic, planned_cuda_device("card", compute));
  };
  EXPECT_EQ(lacks(Arithmetic::kFp8, 90), "");
  EXPECT_EQ(lacks(Arithmetic::kTF32, 80), "");
  EXPECT_NE(lacks(Arithmetic::kFp8, 86).find("8.6"), std::string::npos);
  EXPECT_NE(lacks(Arithmetic::kInt8, 90), "");
}

TEST(CudaFp8, NormsJoinFp8GemmsAlone) {
  EXPECT_TRUE(cuda_backend().traits().norms(LinearOp(Arithmetic::kFp8)));
  EXPECT_FALSE(cuda_backend().traits().norms(LinearOp()));
  const Dim d('D', 64), f('F', 96);
  const auto normed = [&](Arithmetic arithmetic) {
    return Sketch(std::make_shared<FusedOp>(std::vector<FusedOp::Member>{
                      {std::make_shared<LayernormOp>(1e-6), {0, 1, 2}},
                      {std::make_shared<LinearOp>(arithmetic), {made_by(0), 3}}}),
                  {{DType::kBF16, {kImages, kTokens, d}},
                   {DType::kF32, {d}},
                   {DType::kF32, {d}},
                   {DType::kBF16, {f, d}}});
  };
  EXPECT_EQ(chosen(normed(Arithmetic::kFp8)), "cublaslt fp8, weight rounded too");
  EXPECT_EQ(chosen(normed(Arithmetic::kExact)), "members");
}

Sketch mlp(DType dtype) {
  const Dim d('D', 64), f('F', 96);
  const OpPtr gemm = std::make_shared<LinearOp>(Arithmetic::kFp8), bias = std::make_shared<BiasOp>();
  return {
      std::make_shared<FusedOp>(std::vector<FusedOp::Member>{{gemm, {0, 1}},
                                                             {bias, {made_by(0), 2}},
                                                             {std::make_shared<GeluOp>(false), {made_by(1)}},
                                                             {gemm, {made_by(2), 3}},
                                                             {bias, {made_by(3), 4}}}),
      {{dtype, {kImages, kTokens, d}}, {dtype, {f, d}}, {dtype, {f}}, {dtype, {d, f}}, {dtype, {d}}}};
}

// The weights of both GEMMs are packed, one after the other.
TEST(CudaFp8, TwoGemmsWithAGeluBetweenRunAsOne) {
  Sketch node = mlp(DType::kBF16);
  EXPECT_EQ(chosen(node), "hopper and cublaslt fp8, weights rounded too");
  EXPECT_EQ(chosen(mlp(DType::kF16)), "cublaslt fp8 twice, weights rounded too");
  for (const Kernel* kernel : cuda_backend().candidates(node.view(), kHopper)) {
    if (!kernel->packing || kernel->packing(node.view(), kHopper).input < 0) continue;
    for (int wanted : {1, 3, 3}) {
      const Packing packing = kernel->packing(node.view(), kHopper);
      EXPECT_EQ(packing.input, wanted);
      TensorDesc& weight = node.ins[packing.input];
      weight.packing = packing.name, weight.packed_rows = packing.rows, weight.packed_bytes = packing.bytes;
    }
    break;
  }
  EXPECT_EQ(chosen(node), "hopper and cublaslt fp8");
  const size_t codes = 74 * 64 + 74 * 96, hidden = 74 * 96 * 2;
  const Kernel* kernel = cuda_backend().choose(node.view(), kHopper).kernel;
  EXPECT_GE(kernel->scratch_bytes(node.view(), kHopper), 2 * kWorkspaceBytes + codes + hidden);
  EXPECT_EQ(chosen(mlp(DType::kBF16), planned_cuda_device("A100", 80)), "members");
}

TEST(CudaFp8, CodesScalesAndWorkspaceLieApart) {
  for (const Sketch& node : {linear(64, 96), dx(64, 96)}) {
    const GemmPlan p = plan_gemm(node.view(), Multiplier::kFp8);
    ASSERT_EQ(p.unsupported, "");
    const auto bytes = [](int64_t count) { return static_cast<size_t>(count); };
    EXPECT_GE(p.a_codes_at, kWorkspaceBytes);
    EXPECT_GE(p.a_scales_at, p.a_codes_at + bytes(p.m * p.k));
    EXPECT_GE(p.b_codes_at, p.a_scales_at + 4 * bytes(p.m));
    EXPECT_GE(p.b_scales_at, p.b_codes_at + bytes(p.n * p.k));
    EXPECT_GE(p.tops_at, p.b_scales_at + 4 * bytes(p.n));
    EXPECT_GE(p.scratch_bytes, p.tops_at + (p.b_transposed ? 0 : 4 * bytes(fp8_slices(p.k) * p.n)) + 256);
    for (size_t at : {p.a_codes_at, p.a_scales_at, p.b_codes_at, p.b_scales_at, p.tops_at})
      EXPECT_EQ(at % 256, 0u);
  }
}

// cuBLASLt's fp8 GEMMs add a 16-bit bias.
TEST(CudaFp8, ABiasIsAddedByTheGemmWhereItsTypeSuffices) {
  const Dim d('D', 64), f('F', 96);
  const auto with_bias = [&](DType in, DType bias) {
    const Sketch node(std::make_shared<FusedOp>(
                          std::vector<FusedOp::Member>{{std::make_shared<LinearOp>(Arithmetic::kFp8), {0, 1}},
                                                       {std::make_shared<BiasOp>(), {made_by(0), 2}}}),
                      {{in, {kImages, kTokens, d}}, {in, {f, d}}, {bias, {f}}});
    return plan_gemm(node.view(), Multiplier::kFp8);
  };
  const GemmPlan same = with_bias(DType::kBF16, DType::kBF16), cast = with_bias(DType::kBF16, DType::kF32),
                 full = with_bias(DType::kF32, DType::kF32);
  EXPECT_FALSE(same.finished || same.casts_bias);
  EXPECT_TRUE(!cast.finished && cast.casts_bias && cast.bias_type == DType::kBF16);
  EXPECT_TRUE(full.finished);
}

}  // namespace
}  // namespace vitrail::cuda
