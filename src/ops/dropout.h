// Randomly zeroes single elements (dropout) or whole images of a branch (stochastic depth) and scales what
// stays by 1/(1-p). The mask is a function of (seed, step, key of the node's name, global position of the
// sample, global index of the element), so it is never stored: the gradient is the same op on dy.
// Inputs: x [B ...], counters i64 [Z3] = seed, step, position of the batch's first sample in the step.
#pragma once

#include "graph/op.h"

namespace vitrail {

enum class DropUnit { kElement, kSample };

class DropoutOp : public Op {
 public:
  DropoutOp(double probability, DropUnit unit, uint64_t key)
      : probability_(probability), unit_(unit), key_(key) {}

  static constexpr std::string_view kKind = "dropout";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {.whole = "Z", .linear_in = 0b01}; }
  std::string attributes() const override;
  int in_place_input() const override { return 0; }

  double probability() const { return probability_; }
  // An element is kept when its 53 random bits are at least this: u / 2^53 >= p for an integer u is the same
  // as u >= ceil(p 2^53), and both products are exact.
  uint64_t threshold() const;
  double scale() const { return 1.0 / (1.0 - probability_); }  // of what is kept
  DropUnit unit() const { return unit_; }
  uint64_t key() const { return key_; }

 private:
  double probability_;
  DropUnit unit_;
  uint64_t key_;
};

inline constexpr int64_t kCounterCount = 3;

// The random stream of one node in one step, and whether element `index` of it is kept.
uint64_t dropout_stream(uint64_t key, int64_t seed, int64_t step);
bool dropout_keeps(uint64_t stream, uint64_t index, double probability);

}  // namespace vitrail
