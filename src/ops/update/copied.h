// An optimizer's update that also writes the low-precision copy of its parameter: the inputs of the update,
// then the copy, which is written even if the step is skipped. The join_copies pass alone creates it, for
// backends that write both in one pass over the parameter.
#pragma once

#include "ops/persistent.h"

namespace vitrail {

class CopiedUpdateOp : public Op {
 public:
  // An update's inputs are what it updates and the control, after which the copy comes.
  explicit CopiedUpdateOp(OpPtr update)
      : update_(std::move(update)),
        kind_(kind_of(update_->kind())),
        updates_(update_->updates().begin(), update_->updates().end()) {
    updates_.push_back(static_cast<int>(updates_.size()) + 1);
  }

  std::string_view kind() const override { return kind_; }  // "adam_update+copy_into"
  std::vector<TensorDesc> infer(DescSpan ins) const override {
    VT_CHECK(ins.size() > 1, "%s: no copy to write", kind_.c_str());
    CopyIntoOp().infer(std::vector{ins.back(), ins[0]});
    return update_->infer(ins.first(ins.size() - 1));
  }
  // Copies are joined after an update is distributed.
  DimsRule dims() const override { return {kEveryDim}; }
  double flops(DescSpan ins, DescSpan outs) const override {
    return update_->flops(ins.first(ins.size() - 1), outs);
  }
  std::string attributes() const override { return update_->attributes(); }
  std::span<const int> updates() const override { return updates_; }

  const OpPtr& update() const { return update_; }
  static std::string kind_of(std::string_view update) {
    return std::string(update) + "+" + std::string(CopyIntoOp::kKind);
  }

 private:
  OpPtr update_;
  std::string kind_;
  std::vector<int> updates_;
};

}  // namespace vitrail
