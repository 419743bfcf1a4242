#include "ops/update/copied.h"

#include "ops/persistent.h"

namespace vitrail {

std::vector<TensorDesc> CopiedUpdateOp::infer(DescSpan ins) const {
  VT_CHECK(ins.size() > 1, "%s: no copy to write", kind_.c_str());
  CopyIntoOp().infer(std::vector{ins.back(), ins[0]});
  return update_->infer(ins.first(ins.size() - 1));
}

// An update's inputs are what it updates and the control, after which the copy comes.
std::vector<int> CopiedUpdateOp::updates() const {
  std::vector<int> inputs = update_->updates();
  inputs.push_back(static_cast<int>(inputs.size()) + 1);
  return inputs;
}

}  // namespace vitrail
