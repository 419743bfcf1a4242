// What wrong kernels of attention would give for long sequences is refused by the rows that are compared
// there, and what right ones give is not.
#include <gtest/gtest.h>

#include "attention_slices.h"
#include "judge_op.h"

namespace vitrail {
namespace {

constexpr AttentionFault kFaults[] = {
    AttentionFault::kNone,          AttentionFault::kScoresTooLarge, AttentionFault::kLastKeyLeftOut,
    AttentionFault::kOneKeyTooMany, AttentionFault::kNoMeanInDq,     AttentionFault::kNoMeanInDk,
    AttentionFault::kNoDq,          AttentionFault::kNoDk,           AttentionFault::kLastQueryLeftOut};

bool is_of_keys(AttentionFault fault) {
  return fault == AttentionFault::kScoresTooLarge || fault == AttentionFault::kLastKeyLeftOut ||
         fault == AttentionFault::kOneKeyTooMany;
}

// One type in which wrong kernels are judged, as those that round all intermediate results to it.
class WrongLongAttention {
 public:
  WrongLongAttention(const SumsSize& s, DType dtype)
      : size_(s),
        settings_{.dtype = dtype},
        tokens_(tokens_to_judge(s.tokens)),
        ins_(long_inputs(s, dtype)),
        results_(attention_slices(s, {ins_[0], ins_[1]}, tokens_, kFaults)) {}

  void expect_outputs_refused() const {
    const auto known = noise(sums_case(size_), {ins_[0]}, {results_[0].out, results_[0].sums});
    for (size_t f = 0; f < std::size(kFaults); ++f) {
      if (kFaults[f] != AttentionFault::kNone && !is_of_keys(kFaults[f])) continue;
      expect(f, "output", share(known[0], results_[f].out, settings_.dtype));
      expect(f, "logarithm", share(known[1], results_[f].sums, DType::kF32));
    }
  }
  void expect_gradients_refused() const {
    const auto known = noise(plain_grad_case(size_), ins_, {results_[0].grads});
    for (size_t f = 0; f < std::size(kFaults); ++f)
      expect(f, "gradient", share(known[0], results_[f].grads, settings_.dtype));
  }
  // The output that was kept is one of the CPU's kernels.
  void expect_gradients_from_kept_refused() const {
    const OpCase forward = plain_case(size_);
    const Values out =
        run_op(forward, forward.ins, {ins_[0]}, {.backend = "cpu", .dtype = settings_.dtype, .threads = 2})[0]
            .values;
    const Values sums = rounded(results_[0].sums, DType::kF32);
    const auto wrong = attention_slices(size_, {ins_[0], ins_[1], &out, &sums}, tokens_, kFaults);
    const auto known = noise(sums_grad_case(size_), {ins_[0], out, sums, ins_[1]}, {wrong[0].grads});
    for (size_t f = 0; f < std::size(kFaults); ++f)
      expect(f, "gradient from kept sums", share(known[0], wrong[f].grads, settings_.dtype));
  }

 private:
  std::vector<Known> noise(const OpCase& c, const std::vector<Values>& ins,
                           const std::vector<Values>& right) const {
    std::vector<Result> wanted;
    std::vector<DType> types;
    for (const TensorDesc& out : c.op->infer(input_descs(c, c.ins, settings_))) {
      wanted.push_back({out, right[wanted.size()]});
      types.push_back(out.dtype);
    }
    return with_noise(c, settings_, {.weights = true}, ins, wanted, types, tokens_);
  }
  double share(const Known& known, const Values& values, DType type) const {
    return judge_rows(known, rounded(values, type), tokens_).share;
  }
  void expect(size_t fault, const char* what, double share) const {
    if (kFaults[fault] == AttentionFault::kNone)
      EXPECT_LE(share, kAllowedShare) << what << " in " << to_string(settings_.dtype);
    else
      EXPECT_GT(share, 1) << what << " in " << to_string(settings_.dtype) << ", fault "
                          << static_cast<int>(kFaults[fault]);
  }

  const SumsSize size_;
  const RunSettings settings_;
  const Tokens tokens_;
  const std::vector<Values> ins_;
  const std::vector<AttentionSlices> results_;
};

// Those of heads of 64.
std::vector<SumsSize> wrong_sizes() {
  std::vector<SumsSize> sizes = long_sizes();
  std::erase_if(sizes, [](const SumsSize& s) { return s.head_size != 64; });
  return sizes;
}

class WrongLongAttentionTest : public testing::TestWithParam<SumsSize> {};

// In bf16 a fault is the least part of what is allowed.
TEST_P(WrongLongAttentionTest, IsRefused) {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    if (GetParam().tokens > 1025 && dtype != DType::kBF16) continue;
    const WrongLongAttention wrong(GetParam(), dtype);
    wrong.expect_outputs_refused();
    wrong.expect_gradients_refused();
    wrong.expect_gradients_from_kept_refused();
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, WrongLongAttentionTest, testing::ValuesIn(wrong_sizes()),
                         [](const auto& test) {
                           return strf("%lldOf%lld", static_cast<long long>(test.param.tokens),
                                       static_cast<long long>(test.param.head_size));
                         });

}  // namespace
}  // namespace vitrail
