#include "ops/max_tokens.h"

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> MaxTokensOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  const Shape& x = ins[0].shape;
  VT_CHECK(x.rank() == 3 && first_ < x[1].local, "max_tokens: no token %lld in %s",
           static_cast<long long>(first_), to_string(ins[0]).c_str());
  return {{ins[0].dtype, {x[0], x[2]}}};
}

double MaxTokensOp::flops(DescSpan ins, DescSpan) const {
  return static_cast<double>(ins[0].elems());
}

void MaxTokensOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<MaxTokensGradOp>({r.in(0), r.dout()}, "dx", first_));
}

std::vector<TensorDesc> MaxTokensGradOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  const Shape &x = ins[0].shape, &dy = ins[1].shape;
  VT_CHECK(x.rank() == 3 && dy.rank() == 2 && x[0] == dy[0] && x[2] == dy[1],
           "max_tokens_grad: %s does not belong to %s", to_string(dy).c_str(), to_string(x).c_str());
  return {ins[0]};
}

double MaxTokensGradOp::flops(DescSpan ins, DescSpan) const {
  return 2.0 * static_cast<double>(ins[0].elems());
}

}  // namespace vitrail
