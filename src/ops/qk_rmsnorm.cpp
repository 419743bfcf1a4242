#include "ops/qk_rmsnorm.h"

#include <algorithm>

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> QkRmsnormOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 3);
  expect_last(*this, ins[0].shape, 'E');
  VT_CHECK(ins[0].shape.local('T') == 3, "qk_rmsnorm: expected packed q, k, v, found %s",
           to_string(ins[0]).c_str());
  for (size_t i : {1u, 2u}) expect_suffix(*this, ins[0].shape, ins[i].shape);
  return {ins[0]};
}

double QkRmsnormOp::flops(DescSpan, DescSpan outs) const {
  return 8.0 / 3.0 * static_cast<double>(outs[0].elems());
}

std::string QkRmsnormOp::attributes() const {
  return strf("eps=%g", eps_) + (simple_ ? " simple" : "");
}

void QkRmsnormOp::grad(GradRecorder& r) const {
  const auto grads = r.add_all(std::make_shared<QkRmsnormGradOp>(eps_, r.wants(1) || r.wants(2), simple_),
                               {r.in(0), r.in(1), r.in(2), r.dout()}, "dx");
  for (size_t i = 0; i < grads.size(); ++i)
    if (r.wants(i)) r.give(i, grads[i]);
}

std::vector<TensorDesc> QkRmsnormGradOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 4);
  for (size_t i : {1u, 2u}) expect_suffix(*this, ins[0].shape, ins[i].shape);
  expect_same(*this, {ins[0].dtype, ins[0].shape}, {ins[0].dtype, ins[3].shape});
  if (!parameters_) return {ins[0]};
  const TensorDesc row{accumulator_dtype(ins[0].dtype), ins[1].shape};
  return {ins[0], row, row};
}

double QkRmsnormGradOp::flops(DescSpan ins, DescSpan) const {
  return 20.0 / 3.0 * static_cast<double>(ins[0].elems());
}

std::string QkRmsnormGradOp::attributes() const {
  return strf("eps=%g", eps_) + (simple_ ? " simple" : "");
}

int64_t QkRmsnormGradOp::reduction_length(DescSpan ins) const {
  return std::max(ins[1].elems(), ins[0].elems() / ins[1].elems());
}

}  // namespace vitrail
