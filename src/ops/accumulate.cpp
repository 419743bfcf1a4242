#include "ops/accumulate.h"

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

}  // namespace vitrail
