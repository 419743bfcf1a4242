// Converts a parameter from the f32 form of its file to the form the program stores: another dtype or a
// backend's packing. It is the only op of load-time programs.
#pragma once

#include "graph/op.h"

namespace vitrail {

class LoadParamOp : public Op {
 public:
  explicit LoadParamOp(TensorDesc target) : target_(std::move(target)) {}

  static constexpr std::string_view kKind = "load_param";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {}; }
  double flops(DescSpan, DescSpan) const override { return 0; }

 private:
  TensorDesc target_;
};

}  // namespace vitrail
