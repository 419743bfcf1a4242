// Elementwise ops without parameters: sums and means of two values, GEMMs with a number, changes of type,
// the hyperbolic tangent. Each has its gradient beside it.
#pragma once

#include "graph/op.h"

namespace vitrail {

// Elementwise sum of two values of one shape, in the wider of their types: the residual connection.
class AddOp : public Op {
 public:
  static constexpr std::string_view kKind = "add";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"", true}; }
  int in_place_input() const override { return 0; }
};

// Elementwise mean of two values: a distilled model's two heads.
class AverageOp : public Op {
 public:
  static constexpr std::string_view kKind = "average";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"", true}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  int in_place_input() const override { return 0; }
};

// x times a number fixed when the program is recorded.
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

// x times the first element of a second input, which a run may change: the loss scale.
class ScaleByOp : public Op {
 public:
  static constexpr std::string_view kKind = "scale_by";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"Z"}; }
  PrecisionRole precision_role() const override { return PrecisionRole::kFull; }
};

// The same values in another float type. Those in f64, by which others are judged, are not rounded to 16
// bits.
class CastOp : public Op {
 public:
  explicit CastOp(DType to) : to_(to) {}

  static constexpr std::string_view kKind = "cast";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"", true}; }
  double flops(DescSpan, DescSpan) const override { return 0; }

  DType to() const { return to_; }

 private:
  DType to_;
};

// Hyperbolic tangent, elementwise: after pre_logits.
class TanhOp : public Op {
 public:
  static constexpr std::string_view kKind = "tanh";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {}; }
  int in_place_input() const override { return 0; }
};

// dx from y and dy.
class TanhGradOp : public Op {
 public:
  static constexpr std::string_view kKind = "tanh_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {}; }
  PrecisionRole precision_role() const override { return PrecisionRole::kLikeFirst; }
  double flops(DescSpan ins, DescSpan outs) const override;
  int in_place_input() const override { return 1; }
};

}  // namespace vitrail
