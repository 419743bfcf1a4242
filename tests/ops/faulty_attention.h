// Attention and its gradient in f64 with a fault injected: what a wrong kernel would compute.
#pragma once

#include "ops/attention.h"
#include "runtime/check/noise.h"

namespace vitrail {

enum class AttentionFault {
  kNone,
  kScoresTooLarge,  // by 5 %
  kLastKeyLeftOut,  // of every query's weights
  kOneKeyTooMany,   // the next head's first; of one head alone, its own first a second time
  kNoMeanInDq,      // of the gradients of a row's weights
  kNoMeanInDk,
  kNoDq,
  kNoDk,
  kLastQueryLeftOut,  // of dk and dv, which sum over queries
  kMeanTooLarge,      // by a tenth; of what reads the mean from a kept output
};

// Inputs and results are those of AttentionOp and AttentionGradOp.
Values faulty_attention(AttentionFault fault, const std::vector<Shape>& shapes,
                        const std::vector<Values>& ins);
// Those of AttentionSumsOp, the output and the logarithms of the sums, of packed inputs; and of
// AttentionSumsGradOp, which is given both.
std::vector<Values> faulty_attention_sums(AttentionFault fault, const Shape& qkv, const Values& in);
Values faulty_attention_sums_grad(AttentionFault fault, const Shape& qkv, const std::vector<Values>& ins);
std::vector<Values> faulty_attention_grad(AttentionFault fault, const std::vector<Shape>& shapes,
                                          const std::vector<Values>& ins);

}  // namespace vitrail
