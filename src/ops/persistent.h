// Ops on values that persist: gradient sums, low-precision copies, parameters as they are loaded.
#pragma once

#include "graph/op.h"

namespace vitrail {

// Ops that write a persistent value. Accumulate adds a gradient to its sum: inputs sum, x. CopyInto fills the
// first input with the second, in the first one's type: the low-precision copy of a master weight.
class AccumulateOp : public Op {
 public:
  static constexpr std::string_view kKind = "accumulate";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"", true}; }
  PrecisionRole precision_role() const override { return PrecisionRole::kFull; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::span<const int> updates() const override { return first_inputs(1); }
};

class CopyIntoOp : public Op {
 public:
  static constexpr std::string_view kKind = "copy_into";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"", true}; }
  double flops(DescSpan, DescSpan) const override { return 0; }
  std::span<const int> updates() const override { return first_inputs(1); }
};

// Brings a parameter from the f32 form in which a file gives it to the form the program wants: another dtype
// or a backend's packing. The only op of load-time programs.
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
