// Cases of attention that keeps its softmax's sums, and of the gradient that reads them.
#pragma once

#include <cmath>

#include "base/error.h"
#include "op_cases.h"
#include "ops/attention.h"
#include "ops/attention_sums.h"

namespace vitrail {

struct SumsSize {
  int64_t tokens, heads, head_size;
  int64_t batch = 2;
};

inline Shape packed(const SumsSize& s) {
  return {{'B', s.batch}, {'N', s.tokens}, {'T', 3}, {'H', s.heads}, {'E', s.head_size}};
}
inline Shape output(const SumsSize& s) {
  return {{'B', s.batch}, {'N', s.tokens}, {'H', s.heads}, {'E', s.head_size}};
}

// Attention that keeps nothing, and its gradient.
inline OpCase plain_case(const SumsSize& s) {
  return {
      strf("attention_%lld_of_%lld", static_cast<long long>(s.tokens), static_cast<long long>(s.head_size)),
      make_op<AttentionOp>(),
      {packed(s)},
      {false}};
}
inline OpCase plain_grad_case(const SumsSize& s) {
  return {strf("attention_grad_%lld_of_%lld", static_cast<long long>(s.tokens),
               static_cast<long long>(s.head_size)),
          make_op<AttentionGradOp>(),
          {packed(s), output(s)},
          {false, false}};
}

inline OpCase sums_case(const SumsSize& s) {
  return {strf("attention_sums_%lld", static_cast<long long>(s.tokens)),
          make_op<AttentionSumsOp>(),
          {packed(s)},
          {false}};
}

// The sums stand near those of equal scores, so that the weights of a query add up to about one.
inline OpCase sums_grad_case(const SumsSize& s) {
  const Shape sums = {{'B', s.batch}, {'H', s.heads}, {'N', s.tokens}};
  std::vector<double> near;
  for (int64_t i = 0; i < sums.elems(); ++i)
    near.push_back(std::log2(static_cast<double>(s.tokens)) + 0.125 * static_cast<double>(i % 7));
  OpCase c{strf("attention_sums_grad_%lld", static_cast<long long>(s.tokens)),
           make_op<AttentionSumsGradOp>(),
           {packed(s), output(s), sums, output(s)},
           {false, false, false, false},
           {Role::kPlain, Role::kPlain, Role::kSum, Role::kPlain}};
  for (double& value : near) value = static_cast<float>(value);
  c.given[2] = near;
  return c;
}

}  // namespace vitrail
