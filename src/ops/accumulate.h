// Ops that write a persistent value. Accumulate adds a gradient to its sum: inputs sum, x. CopyInto fills the
// first input with the second, in the first one's type: the low-precision copy of a master weight.
#pragma once

#include "graph/op.h"

namespace vitrail {

class AccumulateOp : public Op {
 public:
  std::string_view kind() const override { return "accumulate"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"", true}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::vector<int> updates() const override { return {0}; }
};

class CopyIntoOp : public Op {
 public:
  std::string_view kind() const override { return "copy_into"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"", true}; }
  double flops(DescSpan, DescSpan) const override { return 0; }
  std::vector<int> updates() const override { return {0}; }
};

}  // namespace vitrail
