// Where a GPU's kernels begin and end, row by row at the limit, and the scratch that they ask for. No GPU is
// needed.
#include <gtest/gtest.h>

#include "backend/cuda/gemm_tiles.h"
#include "backend/cuda/kernels.h"
#include "backend/sketch.h"
#include "ops/attention.h"
#include "ops/attention_bias_grad.h"
#include "ops/attention_sums.h"
#include "ops/bias.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/persistent.h"
#include "ops/qk_norm.h"
#include "ops/rmsnorm.h"
#include "ops/scale.h"
#include "ops/update/control.h"
#include "ops/update/ema.h"
#include "ops/update/lamb_parts.h"
#include "ops/update/sgd.h"

namespace vitrail {
namespace {

const DeviceInfo kHopper = planned_cuda_device("H200", 90, 132);

template <typename T, typename... Args>
OpPtr make(Args... args) {
  return std::make_shared<T>(args...);
}

std::string chosen(const Sketch& node) {
  return cuda_backend().choose(node.view(), kHopper).kernel->name;
}
size_t scratch(const Sketch& node) {
  return cuda_backend().choose(node.view(), kHopper).kernel->scratch_bytes(node.view(), kHopper);
}

Sketch gemm(int64_t rows, int64_t terms, bool gelu = false) {
  const DType half = DType::kBF16;
  const Dim d('D', terms), f('F', 96);
  const TensorDesc x{half, {{'B', rows}, d}}, w{half, {f, d}};
  if (!gelu) return {make<LinearOp>(), {x, w}};
  return {make<FusedOp>(std::vector<FusedOp::Member>{{make<LinearOp>(), {0, 1}},
                                                     {make<BiasOp>(), {made_by(0), 2}},
                                                     {make<GeluOp>(false), {made_by(1)}}}),
          {x, w, {half, {f}}}};
}

TEST(CudaLimits, GemmsOfFewRows) {
  const struct {
    int64_t rows, terms;
    bool gelu;
    const char* kernel;
  } rows[] = {
      {255, 64, false, "hopper_small"}, {256, 64, false, "cublaslt"},      {63, 2048, false, "hopper_small"},
      {64, 2048, false, "cublaslt"},    {64, 2040, false, "hopper_small"}, {511, 64, true, "hopper_small"},
      {512, 64, true, "cublaslt"},      {1999, 64, true, "cublaslt"},      {2000, 64, true, "hopper"}};
  for (const auto& row : rows)
    EXPECT_EQ(chosen(gemm(row.rows, row.terms, row.gelu)), row.kernel) << row.rows << " x " << row.terms;
}

Sketch attention(DType dtype, int64_t tokens, int64_t size) {
  return {make<AttentionOp>(), {{dtype, {{'B', 2}, {'N', tokens}, {'T', 3}, {'H', 3}, {'E', size}}}}};
}
Sketch attention_grad(DType dtype, int64_t tokens, int64_t size, QueryScope scope = QueryScope::kAllTokens) {
  const TensorDesc qkv{dtype, {{'B', 2}, {'N', tokens}, {'T', 3}, {'H', 3}, {'E', size}}};
  return {make<AttentionGradOp>(scope), {qkv, AttentionOp(scope).infer(std::vector{qkv})[0]}};
}

TEST(CudaLimits, HeadsOfAttention) {
  EXPECT_EQ(chosen(attention(DType::kF32, 9, 192)), "plain_heads");
  EXPECT_THROW(chosen(attention(DType::kF32, 9, 193)), Error);
  EXPECT_EQ(chosen(attention(DType::kBF16, 272, 64)), "short_heads");
  EXPECT_EQ(chosen(attention(DType::kBF16, 272, 72)), "stream_heads");
  EXPECT_EQ(chosen(attention(DType::kBF16, 192, 72)), "long_heads");
  EXPECT_EQ(chosen(attention(DType::kBF16, 192, 128)), "long_heads");
  EXPECT_EQ(chosen(attention(DType::kBF16, 192, 136)), "plain_heads");
}

TEST(CudaLimits, ScratchOfAttentionsGradient) {
  EXPECT_EQ(scratch(attention(DType::kBF16, 272, 64)), 0u);
  EXPECT_EQ(scratch(attention_grad(DType::kF32, 9, 16)), size_t{2} * 3 * 9 * 3 * 4) << "three floats a query";
  EXPECT_EQ(scratch(attention_grad(DType::kBF16, 192, 72)), size_t{6} * 192 * 2 * 4) << "two of tensor cores";
  // Of 300 queries, whole 64s have two floats; then a float each in whole 16 bytes, and the output in 16
  // bits.
  EXPECT_EQ(scratch(attention_grad(DType::kBF16, 300, 64)),
            size_t{6} * 320 * 8 + size_t{6} * 300 * 4 + size_t{6} * 300 * 64 * 2);
  EXPECT_EQ(scratch(attention_grad(DType::kBF16, 4096, 64, QueryScope::kClassToken)), 0u);
  EXPECT_EQ(scratch(attention_grad(DType::kBF16, 4097, 64, QueryScope::kClassToken)), size_t{6} * 4097 * 8);
}

// What all queries, keys and values of an image share is summed in scratch.
TEST(CudaLimits, ScratchOfAttentionsSums) {
  const auto of = [](char name, int64_t count) { return Dim(name, count); };
  const DType half = DType::kBF16;
  const TensorDesc q{half, {of('S', 5), of('H', 3), of('E', 16)}},
      kv{half, {of('B', 2), of('N', 9), of('T', 2), of('H', 3), of('E', 16)}};
  const Sketch shared{make<AttentionGradOp>(), {q, kv, AttentionOp().infer(std::vector{q, kv})[0]}};
  EXPECT_EQ(scratch(shared), size_t{2} * 3 * 5 * (3 + 16) * 4) << "three facts and a gradient of every query";

  const TensorDesc qkv{half, {of('B', 2), of('N', 300), of('T', 3), of('H', 3), of('E', 64)}};
  const std::vector<TensorDesc> kept = AttentionSumsOp().infer(std::vector{qkv});
  EXPECT_EQ(scratch({make<AttentionSumsOp>(), {qkv}}), 0u);
  EXPECT_EQ(scratch({make<AttentionSumsGradOp>(), {qkv, kept[0], kept[1], kept[0]}}), size_t{6} * 320 * 8)
      << "facts alone";

  const TensorDesc short_qkv{half, {of('B', 2), of('N', 197), of('T', 3), of('H', 3), of('E', 64)}};
  const Sketch sums{make<AttentionBiasGradOp>(), {short_qkv, AttentionOp().infer(std::vector{short_qkv})[0]}};
  EXPECT_EQ(scratch(sums), size_t{2} * 4 * 3 * 3 * 64 * 4) << "four warps of an image have sums of all three";
}

// A part of the rows has 64 at least, and no more parts are made than keep the GPU busy.
TEST(CudaLimits, PartialSumsOfRows) {
  const auto rows_of = [](int64_t rows, int64_t width) {
    return TensorDesc{DType::kF32, {{'B', rows}, {'D', width}}};
  };
  const auto sum = [&](int64_t rows, int64_t width) {
    return scratch({make<SumRowsOp>(size_t{1}), {rows_of(rows, width)}});
  };
  EXPECT_EQ(sum(1, 96), size_t{96} * 4);
  EXPECT_EQ(sum(64, 96), size_t{96} * 4);
  EXPECT_EQ(sum(65, 96), size_t{2} * 96 * 4);
  EXPECT_EQ(sum(100000, 256), size_t{792} * 256 * 4) << "six blocks a multiprocessor";
  EXPECT_EQ(sum(100000, 264), size_t{396} * 264 * 4) << "two blocks across";
  EXPECT_EQ(sum(100000, 257), size_t{88} * 257 * 4) << "nine blocks of 32 odd columns across";
  const TensorDesc hidden = rows_of(200, 96);
  EXPECT_EQ(scratch({make<GeluGradOp>(false, true), {hidden, hidden}}), size_t{4} * 96 * 4);
  EXPECT_EQ(scratch({make<GeluGradOp>(false, false), {hidden, hidden}}), 0u);
  EXPECT_EQ(scratch({make<ScaleDwOp>(size_t{1}), {hidden, hidden}}), size_t{4} * 96 * 4);
}

// A chunk of 4096 elements has one partial sum of squares, or two where an update sums in parts.
TEST(CudaLimits, PartialSumsOfUpdates) {
  const auto flat = [](int64_t count, DType type = DType::kF32) { return TensorDesc{type, {{'D', count}}}; };
  EXPECT_EQ(scratch({make<SquareSumOp>(), {flat(4096), flat(4097), flat(7)}}), size_t{4} * 8);
  const LambUpdateOp lamb({}, Moments{}, true);
  const TensorDesc param = flat(8193);
  EXPECT_EQ(scratch({make<LambUpdateOp>(lamb), {param, param, param, param, control_desc()}}),
            size_t{3} * 2 * 8);
  EXPECT_EQ(scratch({make<LambMomentsOp>(lamb), {param, param, param, param, control_desc()}}),
            size_t{3} * 2 * 8);
}

// A block takes eight rows at least; as many blocks as run at once, two a multiprocessor of rows up to 512.
TEST(CudaLimits, PartialSumsOfNorms) {
  const auto norm_grad = [](int64_t rows, int64_t width, bool sums = false) {
    const Dim d('D', width);
    const TensorDesc x{DType::kF32, {{'B', rows}, d}};
    return Sketch(make<LayernormGradOp>(1e-6, true, false, sums), {x, {DType::kF32, {d}}, x});
  };
  const auto bytes = [](size_t blocks, size_t sums, size_t width) { return blocks * sums * width * 4; };
  EXPECT_EQ(scratch(norm_grad(1, 64)), bytes(1, 2, 64));
  EXPECT_EQ(scratch(norm_grad(8, 64)), bytes(1, 2, 64));
  EXPECT_EQ(scratch(norm_grad(9, 64)), bytes(2, 2, 64));
  EXPECT_EQ(scratch(norm_grad(100, 64, true)), bytes(13, 3, 64));
  EXPECT_EQ(scratch(norm_grad(100000, 512)), bytes(264, 2, 512));
  EXPECT_EQ(scratch(norm_grad(100000, 513)), bytes(132, 2, 513));
  const TensorDesc qkv{DType::kF32, {{'B', 2}, {'N', 5}, {'T', 3}, {'H', 2}, {'E', 16}}},
      e{DType::kF32, {{'E', 16}}};
  EXPECT_EQ(scratch({make<QkNormGradOp>(1e-6, true), {qkv, e, e, qkv}}), bytes(3, 4, 16))
      << "20 rows of heads";
  const TensorDesc x{DType::kF32, {{'B', 7}, {'D', 64}}};
  EXPECT_EQ(scratch({make<RmsnormGradOp>(1e-6, true), {x, {DType::kF32, {{'D', 64}}}, x}}), 7u * 4);
}

std::string reason(const Sketch& node) {
  try {
    const Choice choice = cuda_backend().choose(node.view(), kHopper);
    return choice.kernel ? "taken" : "by members";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    return error.message();
  }
}

TEST(CudaLimits, WhatIsNotTakenIsSaid) {
  const auto dropped = [](size_t rank) {
    std::vector<Dim> dims = {{'B', 2}};
    for (size_t i = 1; i < rank; ++i) dims.emplace_back("NDFHEKSTM"[i], 2);
    return Sketch(make<DropoutOp>(0.5, DropUnit::kElement, uint64_t{1}),
                  {{DType::kF32, Shape(dims)}, {DType::kI64, {{'Z', 3}}}});
  };
  EXPECT_EQ(reason(dropped(8)), "taken");
  EXPECT_NE(reason(dropped(9)).find("takes values of at most 8 dims"), std::string::npos)
      << reason(dropped(9));
  const TensorDesc row{DType::kF32, {{'D', 8}}}, counts{DType::kI64, {{'Z', 1}}},
      factor{DType::kF64, {{'Z', 1}}};
  EXPECT_EQ(reason({make<ScaleByOp>(), {row, factor}}), "taken");
  EXPECT_NE(reason({make<ScaleByOp>(), {row, counts}}).find("takes a factor in a float type only"),
            std::string::npos);
  EXPECT_NE(reason({make<TanhOp>(), {{DType::kF64, {{'D', 8}}}}}).find("computes in f32, bf16 and f16"),
            std::string::npos);
}

// The sums, copies and updates behind the gradients compute in f32, bf16 and f16: neither doubles nor
// integers.
TEST(CudaLimits, UpdatesTakeNoDoubles) {
  const auto nodes_of = [](DType type) {
    const TensorDesc x{type, {{'D', 8}}};
    return std::vector<Sketch>{{make<SquareSumOp>(), {x}},
                               {make<CopyIntoOp>(), {x, x}},
                               {make<EmaUpdateOp>(true), {x, x, hyper_desc(), control_desc()}},
                               {make<SgdUpdateOp>(UpdateScale{}, 0.9, false), {x, x, x, control_desc()}},
                               {make<LambMoveOp>(LambUpdateOp({}, Moments{}, true)),
                                {x, x, x, lamb_squares_desc(), control_desc()}}};
  };
  for (const DType type : {DType::kF32, DType::kBF16, DType::kF16})
    for (const Sketch& node : nodes_of(type)) EXPECT_EQ(reason(node), "taken") << node.op->kind();
  for (const DType type : {DType::kF64, DType::kI64})
    for (const Sketch& node : nodes_of(type))
      EXPECT_NE(reason(node).find("computes in f32, bf16 and f16"), std::string::npos) << node.op->kind();
}

// By hand: 64 x 128 results of 640 terms are two tiles of 64 columns and ten steps. A step moves 128 rows of
// 128 bytes, which takes longer at 36 bytes a cycle than 170 cycles or two for each column.
TEST(CudaLimits, CyclesOfATile) {
  using cuda::tile_cycles;
  const double step = (64 + 64) * 64 * 2 / 36.0;
  EXPECT_DOUBLE_EQ(tile_cycles({64, 1}, 64, 128, 640, 132), 3000 + 10 * step);
  EXPECT_DOUBLE_EQ(tile_cycles({64, 2}, 64, 128, 640, 132), 3000 + 2800 + 5 * step);
  EXPECT_DOUBLE_EQ(tile_cycles({64, 1}, 64, 128, 640, 1), 3000 + 1.6 * 10 * step)
      << "two tiles, one after another";
  EXPECT_DOUBLE_EQ(tile_cycles({32, 1}, 1, 32, 640, 132), 3000 + 10 * 170) << "never less than that";
  EXPECT_DOUBLE_EQ(tile_cycles({64, 1}, 64, 65, 641, 132), 3000 + 11 * step) << "what is begun counts whole";
}

}  // namespace
}  // namespace vitrail
