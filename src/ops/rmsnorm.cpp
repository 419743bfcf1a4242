#include "ops/rmsnorm.h"

#include <algorithm>

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> RmsnormOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_normed(*this, ins[0].shape, ins[1].shape);
  return {ins[0]};
}

double RmsnormOp::flops(DescSpan, DescSpan outs) const {
  return 4.0 * static_cast<double>(outs[0].elems());
}

std::string RmsnormOp::attributes() const {
  return strf("eps=%g", eps_) + (simple_ ? " simple" : "");
}

void RmsnormOp::grad(GradRecorder& r) const {
  const auto grads = r.add_all(std::make_shared<RmsnormGradOp>(eps_, r.wants(1), simple_),
                               {r.in(0), r.in(1), r.dout()}, "dx");
  for (size_t i = 0; i < grads.size(); ++i)
    if (r.wants(i)) r.give(i, grads[i]);
}

std::vector<TensorDesc> RmsnormGradOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 3);
  expect_suffix(*this, ins[0].shape, ins[1].shape);
  expect_suffix(*this, ins[2].shape, ins[1].shape);  // the gradient may be of another type than the input
  expect_same(*this, {ins[0].dtype, ins[0].shape}, {ins[0].dtype, ins[2].shape});
  std::vector<TensorDesc> outs = {ins[0]};
  if (parameters_) outs.push_back({accumulator_dtype(ins[0].dtype), ins[1].shape});
  return outs;
}

double RmsnormGradOp::flops(DescSpan ins, DescSpan) const {
  return 10.0 * static_cast<double>(ins[0].elems());
}

std::string RmsnormGradOp::attributes() const {
  return strf("eps=%g", eps_) + (simple_ ? " simple" : "");
}

int64_t RmsnormGradOp::reduction_length(DescSpan ins) const {
  return std::max(ins[1].elems(), ins[0].elems() / ins[1].elems());
}

}  // namespace vitrail
