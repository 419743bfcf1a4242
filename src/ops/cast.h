// Converts to another float type.
#pragma once

#include "graph/op.h"

namespace vitrail {

class CastOp : public Op {
 public:
  explicit CastOp(DType to) : to_(to) {}

  static constexpr std::string_view kKind = "cast";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"", true}; }
  double flops(DescSpan, DescSpan) const override { return 0; }

 private:
  DType to_;
};

}  // namespace vitrail
