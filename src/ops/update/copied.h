// An optimizer's update that also writes the low-precision copy of its parameter: the inputs of the update,
// then the copy, which is written even if the step is skipped. The join_copies pass alone creates it, for
// backends that write both in one pass over the parameter.
#pragma once

#include "graph/op.h"

namespace vitrail {

class CopiedUpdateOp : public Op {
 public:
  explicit CopiedUpdateOp(OpPtr update)
      : update_(std::move(update)), kind_(std::string(update_->kind()) + std::string(kSuffix)) {}

  static constexpr std::string_view kSuffix = "+copy_into";
  std::string_view kind() const override { return kind_; }  // "adam_update+copy_into"
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  // Copies are joined after an update is distributed.
  DimsRule dims() const override { return {kEveryDim}; }
  double flops(DescSpan ins, DescSpan outs) const override {
    return update_->flops(ins.first(ins.size() - 1), outs);
  }
  std::string attributes() const override { return update_->attributes(); }
  std::vector<int> updates() const override;

  const OpPtr& update() const { return update_; }

 private:
  OpPtr update_;
  std::string kind_;
};

}  // namespace vitrail
