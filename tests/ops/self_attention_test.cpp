// Attention without weights, by hand.
#include "ops/self_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "run_op.h"

namespace vitrail {
namespace {

Values refined(int64_t heads, const Values& tokens) {
  const OpCase one{"one", make_op<SelfAttentionOp>(heads), {{{'B', 1}, {'N', 2}, {'D', 2}}}, {false}};
  return run_op(one, one.ins, {tokens}, {})[0].values;
}

// Heads of one number: the weights of a token with 1 and one with 0 are those of exp(1) and exp(0).
TEST(SelfAttention, EveryHeadIsASliceOfTheTokens) {
  const Values y = refined(2, {1, 0, 0, 3});
  const double one = std::exp(1.0) / (std::exp(1.0) + 1), nine = std::exp(9.0) / (std::exp(9.0) + 1);
  const Values wanted = {one, 1.5, 0.5, 3 * nine};
  ASSERT_EQ(y.size(), wanted.size());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], wanted[i], 1e-6) << i;
}

TEST(SelfAttention, ScoresAreDividedByTheRootOfAHead) {
  const Values y = refined(1, {1, 1, 0, 0});
  const double share = std::exp(std::sqrt(2.0)) / (std::exp(std::sqrt(2.0)) + 1);
  EXPECT_NEAR(y[0], share, 1e-6);
  EXPECT_NEAR(y[1], share, 1e-6);
  EXPECT_NEAR(y[2], 0.5, 1e-6);
}

TEST(SelfAttention, WhatItSaysOfItself) {
  const std::vector<TensorDesc> ins = {{DType::kF32, {{'B', 2}, {'N', 5}, {'D', 8}}}};
  EXPECT_EQ(SelfAttentionOp(2).attributes(), "heads=2");
  EXPECT_EQ(SelfAttentionGradOp(4).attributes(), "heads=4");
  EXPECT_EQ(SelfAttentionOp(2).reduction_length(ins), 5) << "tokens";
  EXPECT_EQ(SelfAttentionGradOp(1).reduction_length(ins), 8) << "the numbers of a head";
}

}  // namespace
}  // namespace vitrail
