// The arguments of calls to the plugin: what may be read early, where the scratch begins, where a part is
// copied from, and that nothing is called for no images. No GPU is needed.
#include <gtest/gtest.h>

#include "backend/cuda/kernels.h"
#include "cuda_calls.h"
#include "ops/flat.h"
#include "run_op.h"

namespace vitrail {
namespace {

const DeviceInfo kSomeHopper = planned_cuda_device("H200", 90, 132);

// A case in bf16, its operands, and the calls of a kernel that accepts it.
struct CaseOnHopper {
  explicit CaseOnHopper(OpCase of)
      : c(std::move(of)),
        ins(input_descs(c, c.ins, {.dtype = DType::kBF16})),
        outs(c.op->infer(ins)),
        operands(separate_operands(node())) {}

  NodeView node() const { return {*c.op, ins, outs}; }
  std::vector<CudaCall> calls_by(const Kernel& kernel, uint64_t fixed = 0) const {
    return calls_of(kernel.prepare(node(), kSomeHopper), node(), kSomeHopper, operands, fixed, false);
  }
  std::vector<CudaCall> calls(uint64_t fixed = 0) const {
    return calls_by(*cuda_backend().choose(node(), kSomeHopper).kernel, fixed);
  }

  OpCase c;
  std::vector<TensorDesc> ins, outs;
  Operands operands;
};

// A parameter that an earlier node changes is read after that node.
TEST(CudaArguments, WhatIsReadEarlyIsFixedInWhole) {
  const CaseOnHopper norm(case_again("layernorm_5")), gemm(case_again("fused_linear_bias_scale_add_deep"));
  const auto norm_early = [&](uint64_t fixed) {
    return calls_to(&cuda::NormsApi::norm, norm.calls(fixed)).at(0).early;
  };
  const auto gemm_early = [&](uint64_t fixed) {
    return calls_to(&cuda::GemmApi::small_gemm, gemm.calls(fixed)).at(0).early;
  };
  EXPECT_TRUE(norm_early(0b110)) << "weight and bias";
  EXPECT_TRUE(gemm_early(0b01110)) << "weight, bias and scale";
  for (const int changed : {1, 2}) EXPECT_FALSE(norm_early(0b111u ^ 1u << changed)) << changed;
  for (const int changed : {1, 2, 3}) EXPECT_FALSE(gemm_early(0b11111u ^ 1u << changed)) << changed;
}

// The plan has 256 bytes more than what it counts from there.
TEST(CudaArguments, AWorkspaceBeginsOnTheFirstMultipleOf256Bytes) {
  CaseOnHopper gemm(case_again("linear_dx_deep"));
  for (int later = 0; later < 4; ++later, gemm.operands.scratch += 64) {
    const auto first = reinterpret_cast<uintptr_t>(gemm.operands.scratch),
               found =
                   reinterpret_cast<uintptr_t>(calls_to(&cuda::GemmApi::gemm, gemm.calls()).at(0).workspace);
    EXPECT_EQ(found, (first + 255) / 256 * 256) << first % 256;
  }
}

// A grid of no blocks is an error.
TEST(CudaArguments, NothingOfAttentionForNoImages) {
  for (const char* name : {"attention_5", "attention_197", "attention_probs_5", "attention_grad_5",
                           "attention_first_5", "attention_first_grad_5", "attention_grad_probe_5"}) {
    OpCase c = case_again(name);
    for (Shape& shape : c.ins)
      if (shape.has('B')) shape = shape.with('B', {'B', 0});
    const CaseOnHopper none(std::move(c));
    int accepting = 0;
    for (const Kernel& kernel : *cuda_backend().kernels_of(none.node())) {
      if (!kernel.declines(none.node(), kSomeHopper).empty()) continue;
      EXPECT_TRUE(none.calls_by(kernel).empty()) << name << " by " << kernel.name;
      ++accepting;
    }
    EXPECT_GT(accepting, 0) << name;
  }
}

// Of tokens 2 to 7 of a value, tokens 4 to 6 begin after two.
TEST(CudaArguments, APartOfAPartIsCountedFromItsFirst) {
  Dim held('N', 9), part('N', 9);
  held.local = 6, held.offset = 2;
  part.local = 3, part.offset = 4;
  const CaseOnHopper slice({"slice", make_op<SliceOp>(part), {{{'B', 2}, held, {'D', 10}}}, {false}});
  const cuda::BlockCopy copy = calls_to(&cuda::MovesApi::copy, slice.calls()).at(0);
  EXPECT_EQ(copy.from, slice.operands.ins[0] + 2 * 10 * 2);
  EXPECT_EQ(copy.from_pitch, 6u * 10 * 2);
  EXPECT_EQ(copy.to, slice.operands.outs[0]);
  EXPECT_EQ(copy.to_pitch, 3u * 10 * 2);
  EXPECT_EQ(copy.run, 3u * 10 * 2);
  EXPECT_EQ(copy.runs, 2u);
}

}  // namespace
}  // namespace vitrail
