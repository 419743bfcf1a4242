// SGD: g += coupled w; m = momentum m + g; w -= lr (nesterov ? g + momentum m : m); without momentum w -= lr
// g. The new m is used before it is rounded to its stored type. Inputs: param, gradient sum, m (when there is
// momentum), control.
#pragma once

#include "ops/update/common.h"

namespace vitrail {

class SgdUpdateOp : public Op {
 public:
  SgdUpdateOp(const UpdateScale& scale, double momentum, bool nesterov)
      : scale_(scale), momentum_(momentum), nesterov_(nesterov) {}
  SgdUpdateOp(const UpdateScale& scale, const UpdateSettings& settings)
      : SgdUpdateOp(scale, settings.momentum, settings.nesterov) {}

  static constexpr std::string_view kKind = "sgd_update";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"Z"}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;
  std::span<const int> updates() const override { return first_inputs(2 + states()); }

  int states() const { return momentum_ > 0 ? 1 : 0; }
  const UpdateScale& scale() const { return scale_; }
  double momentum() const { return momentum_; }
  bool nesterov() const { return nesterov_; }

 private:
  UpdateScale scale_;
  double momentum_;
  bool nesterov_;
};

inline std::vector<TensorDesc> SgdUpdateOp::infer(DescSpan ins) const {
  expect_update(*this, ins, states());
  return {};
}

inline double SgdUpdateOp::flops(DescSpan ins, DescSpan) const {
  return (momentum_ > 0 ? 7.0 : 5.0) * static_cast<double>(ins[0].elems());
}

inline std::string SgdUpdateOp::attributes() const {
  return scale_.text() + strf(" momentum=%g%s", momentum_, nesterov_ ? " nesterov" : "");
}

}  // namespace vitrail
