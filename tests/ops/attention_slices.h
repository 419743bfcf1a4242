// Attention and its gradient in f64 for chosen tokens of a sequence that is too long for all, right or with a
// fault of faulty_attention.h: a query's scores are computed, used for every fault and dropped again, so
// there is no matrix of tokens by tokens.
#pragma once

#include <span>

#include "attention_sums_cases.h"
#include "faulty_attention.h"

namespace vitrail {

// The sizes of long sequences that are tested; with VITRAIL_TEST_LONG in the environment, 16,385 tokens too.
std::vector<SumsSize> long_sizes();
// Tokens to compare: the first and the last, those about the borders of tiles, and some drawn between them.
std::vector<int64_t> tokens_to_judge(int64_t count);

// Packed qkv and the output's gradient, as this type holds them. Among 16,385 terms one that is missed would
// be less than what bf16 rounds away. So the first and the last key weigh some seven times as much as others,
// the last query has a gradient four times as large, and gradients lean towards their queries, by which a
// mean that is missed adds up in dk.
std::vector<Values> long_inputs(const SumsSize& size, DType dtype);

// The inputs of the gradient; the first is attention's own. What the forward op kept is null where nothing
// was kept.
struct SliceInputs {
  const Values &qkv, &dout;
  const Values *kept_out = nullptr, *kept_sums = nullptr;
};

// The results of the ops, in their own layout: outputs and gradients of the chosen tokens with zeros for the
// others, and the logarithms of all sums.
struct AttentionSlices {
  Values out, sums, grads;
};

// One result for each fault. Scores must be so small that their exponentials need no shift.
std::vector<AttentionSlices> attention_slices(const SumsSize& size, const SliceInputs& ins,
                                              std::span<const int64_t> tokens,
                                              std::span<const AttentionFault> faults);

}  // namespace vitrail
