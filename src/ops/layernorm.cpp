#include "ops/layernorm.h"

#include <algorithm>

#include "graph/grad.h"
#include "ops/elementwise.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> LayernormOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 3);
  for (size_t i : {1u, 2u}) expect_normed(*this, ins[0].shape, ins[i].shape);
  return {result_ ? CastOp(*result_).infer(ins.first(1))[0] : ins[0]};
}

double LayernormOp::flops(DescSpan, DescSpan outs) const {
  return 8.0 * static_cast<double>(outs[0].elems());
}

std::string LayernormOp::attributes() const {
  return strf("eps=%g", eps_) + (result_ ? strf(" to %s", to_string(*result_)) : "");
}

void LayernormOp::grad(GradRecorder& r) const {
  const bool parameters = r.wants(1) || r.wants(2);
  const auto grads =
      r.add_all(std::make_shared<LayernormGradOp>(eps_, parameters), {r.in(0), r.in(1), r.dout()}, "dx");
  for (size_t i = 0; i < grads.size(); ++i)
    if (r.wants(i)) r.give(i, grads[i]);
}

std::vector<TensorDesc> LayernormGradOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, residual_ ? 4 : 3);
  expect_suffix(*this, ins[0].shape, ins[1].shape);
  expect_suffix(*this, ins[2].shape, ins[1].shape);
  TensorDesc dx = ins[0];
  if (residual_) dx = AddOp().infer(std::vector{ins[3], dx})[0];
  const TensorDesc row{accumulator_dtype(ins[0].dtype), ins[1].shape};
  std::vector<TensorDesc> outs = {dx};
  if (parameters_) outs.insert(outs.end(), 2, row);
  if (row_sums_) outs.push_back(row);
  if (copy_) outs.push_back(CastOp(*copy_).infer({&dx, 1})[0]);
  return outs;
}

double LayernormGradOp::flops(DescSpan ins, DescSpan) const {
  return 16.0 * static_cast<double>(ins[0].elems());
}

std::string LayernormGradOp::attributes() const {
  return strf("eps=%g%s%s", eps_, residual_ ? " residual" : "", row_sums_ ? " sums" : "") +
         (copy_ ? strf(" and %s", to_string(*copy_)) : "");
}

int64_t LayernormGradOp::reduction_length(DescSpan ins) const {
  return std::max(ins[1].elems(), ins[0].elems() / ins[1].elems());
}

}  // namespace vitrail
