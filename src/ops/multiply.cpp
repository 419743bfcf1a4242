#include "ops/multiply.h"

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> MultiplyOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  return {ins[0]};
}

void MultiplyOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<MultiplyOp>({r.dout()}, "dx", factor_));
}

std::vector<TensorDesc> ScaleByOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  VT_CHECK(ins[1].elems() >= 1, "scale_by: no factor in %s", to_string(ins[1]).c_str());
  return {ins[0]};
}

}  // namespace vitrail
