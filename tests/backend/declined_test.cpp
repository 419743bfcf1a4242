// What kernels of the CPU for single and fused GEMMs leave to others, and why.
#include <gtest/gtest.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/launch.h"
#include "ops/attention.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"
#include "ops/persistent.h"

namespace vitrail {
namespace {

const Dim kRows('B', 6), kTokens('N', 5), kIn('D', 32), kOut('F', 4), kParts('T', 3), kHeads('H', 2),
    kSize('E', 16);
constexpr DType kLow = DType::kBF16;
const TensorDesc kX{DType::kF32, {kRows, kIn}}, kDy{DType::kF32, {kRows, kOut}},
    kDw{DType::kF32, {kOut, kIn}}, kBias{DType::kF32, {kOut}};
const TensorDesc kLowX{kLow, {kRows, kIn}}, kLowW{kLow, {kOut, kIn}}, kLowY{kLow, {kRows, kOut}},
    kLowBias{kLow, {kOut}};

template <typename T, typename... Args>
OpPtr op_of(Args... args) {
  return std::make_shared<T>(args...);
}
OpPtr fused_of(std::vector<FusedOp::Member> members) {
  return std::make_shared<FusedOp>(std::move(members));
}
const FusedOp::Member kGemm{op_of<LinearOp>(), {0, 1}}, kPlusBias{op_of<BiasOp>(), {made_by(0), 2}};

struct DeclinedRow {
  std::string says;
  OpPtr op;
  std::vector<TensorDesc> ins, outs;
};

void expect_said(const Kernel& kernel, const std::vector<DeclinedRow>& rows, const char* isa = "amx") {
  const DeviceInfo device = planned_cpu_device(1, isa, 1 << 30);
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(kernel.declines({*rows[i].op, rows[i].ins, rows[i].outs}, device), rows[i].says)
        << kernel.name << ", row " << i;
}

TEST(DeclinedNodes, OfSumsByChunks) {
  const FusedOp::Member sum{op_of<LinearDwOp>(), {0, 1}}, add{op_of<AccumulateOp>(), {2, made_by(0)}};
  const std::string no_sum = "not a parameter's gradient added to its sum";
  expect_said(cpu::chunked_sum(),
              {{"", op_of<LinearDwOp>(), {kX, kDy}, {kDw}},
               {"", fused_of({sum, add}), {kX, kDy, kDw}, {}},
               {no_sum, fused_of({sum, add, {op_of<TanhOp>(), {0}}}), {kX, kDy, kDw}, {kX}},
               {no_sum, fused_of({sum, {op_of<TanhOp>(), {made_by(0)}}}), {kX, kDy}, {kDw}},
               {no_sum, fused_of({sum, {op_of<AccumulateOp>(), {made_by(0), 2}}}), {kX, kDy, kDw}, {}},
               {no_sum, fused_of({kGemm, add}), {kX, kDw, kDy}, {}}});
}

TEST(DeclinedNodes, OfOneQueryByTheTokens) {
  const TensorDesc tokens{DType::kF32, {kRows, kTokens, kIn}}, qkv{DType::kF32, {kParts, kHeads, kSize, kIn}},
      attended{DType::kF32, {kRows, kHeads, kSize}},
      images{DType::kF32, {kRows, {'C', 3}, {'Y', 8}, {'X', 8}}},
      patches{DType::kF32, {{'D', 96}, {'C', 3}, {'P', 4}, {'Q', 4}}};
  const OpPtr first = op_of<AttentionOp>(QueryScope::kClassToken);
  const FusedOp::Member asked{first, {made_by(0)}};
  const std::string none = "no attention of one token";
  expect_said(cpu::first_token_attention(),
              {{"", fused_of({kGemm, asked}), {tokens, qkv}, {attended}},
               {none, fused_of({kGemm, kPlusBias}), {kX, kDw, kBias}, {kDy}},
               {none, fused_of({kGemm, {op_of<AttentionOp>(), {made_by(0)}}}), {tokens, qkv}, {attended}},
               {none, fused_of({{op_of<PatchEmbedOp>(), {0, 1}}, asked}), {images, patches}, {attended}},
               {"the bias does not cover the GEMM's outputs",
                fused_of({kGemm, kPlusBias, {first, {made_by(1)}}}),
                {tokens, qkv, kBias},
                {attended}},
               {"computes in f32, not bf16",
                fused_of({{op_of<LinearOp>(Arithmetic::kBF16), {0, 1}}, asked}),
                {tokens, qkv},
                {attended}}});
}

TEST(DeclinedNodes, OfGemmsOfBf16Tensors) {
  const OpPtr residual = fused_of({kGemm, {op_of<AddOp>(), {2, made_by(0)}}}),
              biased = fused_of({kGemm, kPlusBias});
  expect_said(
      cpu::bf16_tensor_gemm(),
      {{"", op_of<LinearOp>(), {kLowX, kLowW}, {kLowY}},
       {"does not write f32", op_of<LinearOp>(), {kLowX, kLowW}, {kDy}},
       {"", residual, {kLowX, kLowW, kDy}, {kDy}},
       {"does not write bf16", residual, {kLowX, kLowW, kDy}, {kLowY}},
       {"", biased, {kLowX, kLowW, kBias}, {kLowY}},
       {"takes bias and residual in f32", biased, {kLowX, kLowW, kLowBias}, {kLowY}},
       {"the bias does not cover the GEMM's outputs", biased, {kLowX, kLowW, {DType::kF32, {kIn}}}, {kLowY}},
       {"takes row-major bf16 only, not f32[B6 D32]", op_of<LinearOp>(), {kX, kLowW}, {kLowY}}});
  expect_said(cpu::bf16_tensor_gemm(),
              {{"this instruction set has no bf16 GEMMs", op_of<LinearOp>(), {kLowX, kLowW}, {kLowY}}},
              "avx2");
  expect_said(cpu::bf16_tensor_input_grad(),
              {{"does not write f32", op_of<LinearDxOp>(), {kLowY, kLowW}, {kX}}});
}

TEST(DeclinedNodes, OfWhatIsComputedInF32) {
  const OpPtr biased = fused_of({kGemm, kPlusBias});
  expect_said(cpu::widened(),
              {{"there is no 16-bit float to widen", biased, {kX, kDw, kBias}, {kDy}},
               {"its members round to 16 bits in between", biased, {kLowX, kLowW, kLowBias}, {kLowY}},
               {"", fused_of({kGemm}), {kLowX, kLowW}, {kLowY}},
               {"", op_of<LinearOp>(), {kLowX, kLowW}, {kLowY}}});
}

}  // namespace
}  // namespace vitrail
