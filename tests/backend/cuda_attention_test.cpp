#include <gtest/gtest.h>

#include <map>

#include "backend/cuda/kernels.h"
#include "backend/cuda/launch.h"
#include "ops/attention.h"
#include "ops/attention_bias_grad.h"
#include "ops/attention_sums.h"

namespace vitrail {
namespace {

// Returns the first kernel of an op's list that accepts the node; "" when none does.
std::string chosen(const Op& op, const std::vector<TensorDesc>& ins, int compute) {
  const DeviceInfo device = planned_cuda_device("GPU", compute);
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

struct ChoiceRow {
  DType dtype;
  int64_t tokens, size;
  int compute;
  const char* kernel;
};

TEST(CudaAttention, ChoosesByTypeLengthAndHeadSize) {
  const ChoiceRow rows[] = {
      {DType::kBF16, 1, 16, 90, "one_query"},
      {DType::kBF16, 2, 16, 90, "short_heads"},
      {DType::kBF16, 197, 64, 90, "short_heads"},
      {DType::kF16, 272, 64, 90, "short_heads"},
      {DType::kF16, 273, 64, 90, "stream_heads"},
      {DType::kF16, 273, 64, 89, "long_heads"},
      {DType::kBF16, 4097, 24, 90, "stream_heads"},
      {DType::kBF16, 272, 64, 89, "short_heads"},
      {DType::kBF16, 272, 64, 80, "short_heads"},
      {DType::kBF16, 192, 80, 90, "long_heads"},
      {DType::kBF16, 193, 80, 90, "stream_heads"},
      {DType::kF16, 257, 88, 90, "stream_heads"},
      {DType::kBF16, 1025, 128, 90, "stream_heads"},
      {DType::kBF16, 1025, 128, 80, "long_heads"},
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

TEST(CudaAttention, TakesAQueryThatAllImagesShare) {
  const auto query = [](DType dtype, int64_t rows) {
    return TensorDesc{dtype, {{'S', rows}, {'H', 3}, {'E', 64}}};
  };
  const TensorDesc kv = packed(DType::kBF16, 196, 2, 64);
  EXPECT_EQ(chosen(AttentionOp(), {query(DType::kBF16, 1), kv}, 90), "one_query");
  EXPECT_EQ(chosen(AttentionOp(), {query(DType::kBF16, 2), kv}, 90), "short_heads");
  EXPECT_EQ(chosen(AttentionOp(), {query(DType::kBF16, 200), kv}, 90), "long_heads");
  EXPECT_EQ(chosen(AttentionOp(), {query(DType::kF32, 2), kv}, 90), "plain_heads");
  EXPECT_EQ(chosen(AttentionOp(), {query(DType::kF32, 1), kv}, 90), "one_query");
  for (int64_t rows : {1, 2}) {
    const TensorDesc q = query(DType::kBF16, rows), dout = AttentionOp().infer(std::vector{q, kv})[0];
    EXPECT_EQ(chosen(AttentionGradOp(), {q, kv, dout}, 90), "heads") << rows;
  }
}

TEST(CudaAttention, HasAKernelForTheFirstTokenAlone) {
  const AttentionOp first(QueryScope::kClassToken);
  const AttentionGradOp grad(QueryScope::kClassToken);
  const struct {
    DType dtype;
    int64_t tokens, size;
    const char* kernel;
  } rows[] = {
      {DType::kBF16, 197, 64, "one_query"},
      {DType::kF32, 197, 64, "one_query"},
      {DType::kF16, 50, 18, "one_query"},
      {DType::kBF16, 5000, 192, "one_query"},
      {DType::kF32, 1, 7, "one_query"},
      {DType::kBF16, 197, 200, ""},
      {DType::kF64, 5, 16, ""},
  };
  for (const auto& row : rows)
    for (int compute : {80, 90}) {
      const TensorDesc qkv = packed(row.dtype, row.tokens, 3, row.size);
      const TensorDesc dout = first.infer(std::vector{qkv})[0];
      EXPECT_EQ(chosen(first, {qkv}, compute), row.kernel) << row.tokens << " " << row.size;
      EXPECT_EQ(chosen(grad, {qkv, dout}, compute), row.kernel) << row.tokens << " " << row.size;
    }
  const TensorDesc qkv = packed(DType::kBF16, 197, 3, 64);
  EXPECT_EQ(chosen(AttentionGradOp(), {qkv, AttentionOp().infer(std::vector{qkv})[0]}, 90), "heads");
}

TEST(CudaAttention, ChoosesTheGradientByLengthAndGpu) {
  const ChoiceRow rows[] = {
      {DType::kBF16, 272, 64, 90, "heads"},        {DType::kBF16, 273, 64, 90, "stream_heads"},
      {DType::kF16, 4097, 48, 90, "stream_heads"}, {DType::kBF16, 577, 64, 80, "heads"},
      {DType::kBF16, 192, 80, 90, "heads"},        {DType::kBF16, 193, 72, 90, "stream_heads"},
      {DType::kF16, 577, 128, 90, "stream_heads"}, {DType::kBF16, 577, 136, 90, "heads"},
      {DType::kF32, 577, 64, 90, "heads"},
  };
  for (const auto& row : rows) {
    const TensorDesc qkv = packed(row.dtype, row.tokens, 3, row.size);
    const TensorDesc dout = AttentionOp().infer(std::vector{qkv})[0];
    EXPECT_EQ(chosen(AttentionGradOp(), {qkv, dout}, row.compute), row.kernel) << row.tokens;
  }
}

// A step keeps the sums only where both kernels take them, so they must take the same shapes.
TEST(CudaAttention, KeepsSumsWhereTheStreamKernelsRun) {
  const ChoiceRow rows[] = {
      {DType::kBF16, 272, 64, 90, ""},
      {DType::kBF16, 273, 64, 90, "stream_heads"},
      {DType::kF16, 4097, 48, 90, "stream_heads"},
      {DType::kBF16, 577, 64, 80, ""},
      {DType::kBF16, 192, 80, 90, ""},
      {DType::kBF16, 193, 80, 90, "stream_heads"},
      {DType::kF16, 577, 128, 90, "stream_heads"},
      {DType::kF32, 577, 64, 90, ""},
  };
  for (const auto& row : rows) {
    const TensorDesc qkv = packed(row.dtype, row.tokens, 3, row.size);
    const std::vector<TensorDesc> kept = AttentionSumsOp().infer(std::vector{qkv});
    const std::vector<TensorDesc> ins = {qkv, kept[0], kept[1], kept[0]};
    EXPECT_EQ(chosen(AttentionSumsOp(), {qkv}, row.compute), row.kernel) << row.tokens;
    EXPECT_EQ(chosen(AttentionSumsGradOp(), ins, row.compute), row.kernel) << row.tokens;
  }
}

// The kernel without rows for tokens that are no queries must not be tried where they have some.
TEST(CudaAttention, LeavesTheFirstTokensGradientToOneKernel) {
  const DeviceInfo device = planned_cuda_device("GPU", 90);
  const AttentionGradOp grad(QueryScope::kClassToken);
  for (int64_t tokens : {197, 5000}) {
    const TensorDesc qkv = packed(DType::kBF16, tokens, 3, 64);
    const std::vector<TensorDesc> ins = {qkv,
                                         AttentionOp(QueryScope::kClassToken).infer(std::vector{qkv})[0]};
    const std::vector<TensorDesc> outs = grad.infer(ins);
    for (const OpKernels& row : cuda::attention_kernels())
      for (const Kernel& kernel : row.kernels)
        if (row.op == "attention_grad") {
          const bool takes = kernel.declines({grad, ins, outs}, device).empty();
          EXPECT_EQ(takes, kernel.name == std::string("one_query")) << kernel.name;
          if (takes) {  // scores lie in shared memory while there are few
            EXPECT_EQ(kernel.scratch_bytes({grad, ins, outs}, device),
                      tokens == 197 ? 0u : 2u * 3 * 5000 * 8);
          }
        }
  }
}

// Bytes of scratch by the name of the kernel, for all that an op has.
std::map<std::string, size_t> scratch_of(const Op& op, const std::vector<TensorDesc>& ins) {
  const DeviceInfo device = planned_cuda_device("GPU", 90);
  const std::vector<TensorDesc> outs = op.infer(ins);
  std::map<std::string, size_t> bytes;
  for (const OpKernels& row : cuda::attention_kernels())
    if (row.op == op.kind())
      for (const Kernel& kernel : row.kernels)
        bytes[kernel.name] = kernel.scratch_bytes({op, ins, outs}, device);
  return bytes;
}

TEST(CudaAttention, AsksForScratchOfTheGradientAlone) {
  const TensorDesc qkv = packed(DType::kBF16, 197, 3, 64);
  const TensorDesc out = AttentionOp().infer(std::vector{qkv})[0];
  const auto forward = scratch_of(AttentionOp(), {qkv}), probs = scratch_of(AttentionProbsOp(), {qkv});
  EXPECT_EQ(forward.size(), 5u);
  EXPECT_EQ(probs.size(), 1u);
  for (const auto& kernels : {forward, probs})
    for (const auto& [name, bytes] : kernels) EXPECT_EQ(bytes, 0u) << name;
  const auto grad = scratch_of(AttentionGradOp(), {qkv, out});
  EXPECT_EQ(grad.size(), 3u);
  for (const auto& [name, bytes] : grad)
    if (name == "one_query") {
      EXPECT_EQ(bytes, 0u);
    } else {
      EXPECT_GE(bytes, 2u * 3 * 197 * 2 * sizeof(float)) << name;
    }
}

}  // namespace
}  // namespace vitrail
