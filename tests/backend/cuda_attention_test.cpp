#include <gtest/gtest.h>

#include "backend/cuda/launch.h"
#include "ops/attention.h"

namespace vitrail {
namespace {

// The first kernel of an op's list that takes the node; "" when none does.
std::string chosen(const Op& op, const std::vector<TensorDesc>& ins, int compute) {
  const DeviceInfo device{.kind = DeviceKind::kCuda, .compute = compute};
  const std::vector<TensorDesc> outs = op.infer(ins);
  for (const OpKernels& row : cuda::attention_kernels())
    if (row.op == op.kind())
      for (const Kernel& kernel : row.kernels)
        if (kernel.declines({op, ins, outs}, device).empty()) return kernel.name;
  return "";
}

TensorDesc packed(DType dtype, int64_t tokens, int64_t parts, int64_t size) {
  return {dtype, {{'B', 2}, {'N', tokens}, {'T', parts}, {'H', 3}, {'E', size}}};
}

TEST(CudaAttention, ChoosesByTypeLengthAndHeadSize) {
  const struct {
    DType dtype;
    int64_t tokens, size;
    int compute;
    const char* kernel;
  } rows[] = {
      {DType::kBF16, 1, 16, 90, "short_heads"},
      {DType::kBF16, 197, 64, 90, "short_heads"},
      {DType::kF16, 272, 64, 90, "short_heads"},
      {DType::kF16, 273, 64, 90, "long_heads"},
      {DType::kBF16, 272, 64, 89, "short_heads"},
      {DType::kBF16, 272, 64, 80, "short_heads"},
      {DType::kBF16, 197, 80, 90, "long_heads"},
      {DType::kBF16, 1025, 128, 90, "long_heads"},
      {DType::kBF16, 197, 136, 90, "plain_heads"},
      {DType::kBF16, 50, 18, 90, "plain_heads"},
      {DType::kF32, 197, 64, 90, "plain_heads"},
      {DType::kF32, 197, 200, 90, ""},
      {DType::kF64, 5, 16, 90, ""},
  };
  for (const auto& row : rows)
    EXPECT_EQ(chosen(AttentionOp(), {packed(row.dtype, row.tokens, 3, row.size)}, row.compute), row.kernel)
        << to_string(row.dtype) << " " << row.tokens << " " << row.size << " " << row.compute;
}

TEST(CudaAttention, TakesAQueryThatAllPicturesShare) {
  const auto query = [](DType dtype, int64_t rows) {
    return TensorDesc{dtype, {{'S', rows}, {'H', 3}, {'E', 64}}};
  };
  const TensorDesc kv = packed(DType::kBF16, 196, 2, 64);
  EXPECT_EQ(chosen(AttentionOp(), {query(DType::kBF16, 1), kv}, 90), "short_heads");
  EXPECT_EQ(chosen(AttentionOp(), {query(DType::kBF16, 200), kv}, 90), "long_heads");
  EXPECT_EQ(chosen(AttentionOp(), {query(DType::kF32, 1), kv}, 90), "plain_heads");
}

TEST(CudaAttention, AsksForScratchOfTheGradientAlone) {
  const DeviceInfo device{.kind = DeviceKind::kCuda, .compute = 90};
  const AttentionGradOp grad;
  const TensorDesc qkv = packed(DType::kBF16, 197, 3, 64);
  const std::vector<TensorDesc> ins = {qkv, AttentionOp().infer(std::vector{qkv})[0]}, outs = grad.infer(ins);
  for (const OpKernels& row : cuda::attention_kernels())
    for (const Kernel& kernel : row.kernels)
      if (row.op == "attention_grad")
        EXPECT_GE(kernel.scratch_bytes({grad, ins, outs}, device), 2u * 3 * 197 * 2 * sizeof(float));
      else
        EXPECT_EQ(kernel.scratch_bytes({grad, ins, outs}, device), 0u);
}

}  // namespace
}  // namespace vitrail
