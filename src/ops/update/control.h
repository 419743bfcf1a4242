// The ops between the gradient sums and the updates. SquareSum computes the sum of squares of all of them,
// f64 [Z1]. From that, hyper, the loss scale and the counters (the last two updated) StepControl decides
// whether this step is applied, how gradients are scaled, and what the next loss scale is.
#pragma once

#include "ops/update/common.h"

namespace vitrail {

// The number of elements per partial sum: every kernel sums each input in such chunks, then chunks and inputs
// in order.
inline constexpr int64_t kSquareSumChunk = 4096;

class SquareSumOp : public Op {
 public:
  static constexpr std::string_view kKind = "square_sum";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {kEveryDim}; }
  int64_t reduction_length(DescSpan ins) const override { return ins[0].elems(); }
  double flops(DescSpan ins, DescSpan outs) const override;
};

// Dynamic loss scaling: f16 gradients are multiplied by a scale that halves when they overflow and doubles
// after `window` steps without overflow. A fixed scale never changes. With a hysteresis above 1 so many
// overflows less one pass before it halves: overflows in a row where `consecutive`, else all of them since it
// last doubled.
struct LossScaleRule {
  bool dynamic = false;
  double initial = 1;
  double min = 1, max = 16777216;
  int64_t window = 2000;
  int64_t hysteresis = 1;
  bool consecutive = false;
};

// The counters, f64 [Z4], zero at the start of a run.
enum UpdateCounter { kGoodUpdates, kAppliedUpdates, kSkippedUpdates, kSkippedInARow, kUpdateCounters };

class StepControlOp : public Op {
 public:
  // max_norm 0: no clipping.
  StepControlOp(double max_norm, const LossScaleRule& scale) : max_norm_(max_norm), scale_(scale) {}

  static constexpr std::string_view kKind = "step_control";
  std::string_view kind() const override { return kKind; }
  // Inputs: square sum [Z1], hyper [Z4], loss scale [Z1], counters [Z4], with a hysteresis also the overflows
  // passed over [Z1]. Output: control [Z6].
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"Z"}; }
  std::string attributes() const override;
  std::span<const int> updates() const override {
    return first_inputs(counts_overflows() ? 5 : 4).subspan(2);
  }
  bool counts_overflows() const { return scale_.dynamic && scale_.hysteresis > 1; }

  // Makes the whole decision: returns what the updates read, and advances the loss scale and the counters.
  // `passed` is null unless it counts overflows.
  StepValues decide(double square_sum, const double* hyper, double* loss_scale, double* counters,
                    double* passed = nullptr) const;

  double max_norm() const { return max_norm_; }
  const LossScaleRule& loss_scale() const { return scale_; }

 private:
  void advance_scale(bool skip, double* loss_scale, double* counters, double* passed) const;

  double max_norm_;
  LossScaleRule scale_;
};

}  // namespace vitrail
