#include "passes/passes.h"

#include <gtest/gtest.h>

#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "tiny_training.h"

namespace vitrail {
namespace {

std::string line_of(const Program& program, const std::string& name) {
  const std::string text = to_string(program), mark = "  # " + name + "\n";
  const size_t end = text.find(mark);
  return end == text.npos ? "" : text.substr(text.rfind('\n', end) + 1, end - text.rfind('\n', end) - 1);
}

TEST(JoinRowSums, NormsAndGelusMakeTheGradientsOfTheBiasesBeforeThem) {
  const Program apart = join_residuals(record_step(tiny_vit(1))), joined = join_row_sums(apart);
  EXPECT_EQ(line_of(joined, "blocks.0.mlp.gelu.dx"),
            "%62 f32[B1 F16] %63 f32[F16] = gelu_grad{erf sums}(%29, %59)");
  EXPECT_EQ(line_of(joined, "blocks.0.norm2.dx"),
            "%71 f32[B1 D8] %69 f32[D8] %70 f32[D8] %75 f32[D8] = layernorm_grad{eps=1e-06 residual "
            "sums}(%22, blocks.0.norm2.weight, %65, %52)");
  EXPECT_EQ(line_of(joined, "blocks.0.mlp.fc1.bias.db"), "");
  EXPECT_EQ(line_of(joined, "grad/blocks.0.mlp.fc1.bias"), "accumulate(grad/blocks.0.mlp.fc1.bias, %63)");
  // The biases of head, qkv and patches, whose gradients other ops make, stay apart, and so do the positions,
  // which sum over other rows.
  EXPECT_EQ(count_kinds(joined).at("sum_rows"), 4);
  EXPECT_EQ(count_kinds(apart).at("sum_rows"), 7);
}

TEST(JoinRowSums, TheGeluKeepsItsForm) {
  VitConfig config = tiny_vit(1);
  config.gelu = GeluKind::kTanh;
  EXPECT_EQ(line_of(join_row_sums(record_step(config)), "blocks.0.mlp.gelu.dx"),
            "%62 f32[B1 F16] %63 f32[F16] = gelu_grad{tanh sums}(%29, %59)");
}

// Attention's gradient sums for the bias of qkv where the backend has a kernel that does, and is asked for
// the inputs it would have; class-token attention, whose gradient is mostly zeros, is not asked for.
TEST(JoinRowSums, AttentionSumsWhereThereIsAKernel) {
  int asked = 0;
  const KernelRule rule = [&](const Op& op, DescSpan ins) {
    EXPECT_EQ(op.kind(), "attention_bias_grad");
    EXPECT_EQ(ins.size(), 2u);
    ++asked;
    return true;
  };
  const Program apart = join_residuals(record_step(tiny_vit(2))), joined = join_row_sums(apart, rule);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(count_kinds(joined)["attention_bias_grad"], 1);
  EXPECT_EQ(count_kinds(joined)["attention_grad"], 1);
  EXPECT_EQ(line_of(joined, "blocks.0.attn.qkv.bias.db"), "");
  EXPECT_NE(line_of(joined, "blocks.1.attn.qkv.bias.db"), "");
  EXPECT_EQ(count_kinds(join_row_sums(apart, [](const Op&, DescSpan) { return false; }))["attention_grad"],
            2);
}

TEST(JoinRowSums, JoinsOnce) {
  const Program joined = join_row_sums(record_step(tiny_vit(2)));
  EXPECT_EQ(to_string(join_row_sums(joined)), to_string(joined));
}

// The sums are f32 of the node's own width whatever the gradient's type.
TEST(JoinRowSums, OpsAnswerForTheSums) {
  const TensorDesc x{DType::kBF16, {{'B', 2}, {'N', 3}, {'F', 8}}};
  const std::vector<TensorDesc> outs = GeluGradOp(false, true).infer(std::vector{x, x});
  ASSERT_EQ(outs.size(), 2u);
  EXPECT_EQ(outs[1], (TensorDesc{DType::kF32, {{'F', 8}}}));
  const TensorDesc wide{DType::kBF16, {{'B', 2}, {'D', 8}}}, row{DType::kF32, {{'D', 8}}};
  EXPECT_EQ(LayernormGradOp(1e-6, false, false, true).infer(std::vector{wide, row, wide}).size(), 2u);
  EXPECT_EQ(LayernormGradOp(1e-6, true, false, true).infer(std::vector{wide, row, wide}).size(), 4u);
}

}  // namespace
}  // namespace vitrail
