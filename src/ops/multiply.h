// Multiplies x by a constant of the program.
#pragma once

#include "graph/op.h"

namespace vitrail {

class MultiplyOp : public Op {
 public:
  explicit MultiplyOp(double factor) : factor_(factor) {}

  static constexpr std::string_view kKind = "multiply";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"", true}; }
  std::string attributes() const override { return strf("%g", factor_); }
  int in_place_input() const override { return 0; }

  double factor() const { return factor_; }

 private:
  double factor_;
};

// Multiplies x by the first element of a second input, which may change from run to run: the loss scale.
class ScaleByOp : public Op {
 public:
  static constexpr std::string_view kKind = "scale_by";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"Z"}; }
  PrecisionRole precision_role() const override { return PrecisionRole::kFull; }
};

}  // namespace vitrail
