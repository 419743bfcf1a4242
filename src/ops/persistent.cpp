#include "ops/persistent.h"

#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> AccumulateOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_same(*this, ins[0], ins[1]);
  return {};
}

double AccumulateOp::flops(DescSpan ins, DescSpan) const {
  return static_cast<double>(ins[0].elems());
}

std::vector<TensorDesc> CopyIntoOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_same(*this, {ins[0].dtype, ins[0].shape}, {ins[0].dtype, ins[1].shape});
  return {};
}

std::vector<TensorDesc> LoadParamOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  VT_CHECK(ins[0].shape == target_.shape, "load_param: %s cannot become %s", to_string(ins[0]).c_str(),
           to_string(target_).c_str());
  return {target_};
}

}  // namespace vitrail
