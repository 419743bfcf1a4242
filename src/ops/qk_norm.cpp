#include "ops/qk_norm.h"

#include <algorithm>

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> QkNormOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 5);
  expect_last(*this, ins[0].shape, 'E');
  VT_CHECK(ins[0].shape.local('T') == 3, "qk_norm: expected packed q, k, v, found %s",
           to_string(ins[0]).c_str());
  for (size_t i = 1; i < 5; ++i) expect_suffix(*this, ins[0].shape, ins[i].shape);
  return {ins[0]};
}

double QkNormOp::flops(DescSpan, DescSpan outs) const {
  return 16.0 / 3.0 * static_cast<double>(outs[0].elems());
}

std::string QkNormOp::attributes() const {
  return strf("eps=%g", eps_);
}

void QkNormOp::grad(GradRecorder& r) const {
  const bool parameters = r.wants(1) || r.wants(2) || r.wants(3) || r.wants(4);
  const auto grads = r.add_all(std::make_shared<QkNormGradOp>(eps_, parameters),
                               {r.in(0), r.in(1), r.in(3), r.dout()}, "dx");
  for (size_t i = 0; i < grads.size(); ++i)
    if (r.wants(i)) r.give(i, grads[i]);
}

std::vector<TensorDesc> QkNormGradOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 4);
  for (size_t i : {1u, 2u}) expect_suffix(*this, ins[0].shape, ins[i].shape);
  if (!parameters_) return {ins[0]};
  const TensorDesc row{accumulator_dtype(ins[0].dtype), ins[1].shape};
  return {ins[0], row, row, row, row};
}

double QkNormGradOp::flops(DescSpan ins, DescSpan) const {
  return 32.0 / 3.0 * static_cast<double>(ins[0].elems());
}

std::string QkNormGradOp::attributes() const {
  return strf("eps=%g", eps_);
}

int64_t QkNormGradOp::reduction_length(DescSpan ins) const {
  return std::max(ins[1].elems(), ins[0].elems() / ins[1].elems());
}

}  // namespace vitrail
