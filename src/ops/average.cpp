#include "ops/average.h"

#include "graph/grad.h"
#include "ops/expect.h"
#include "ops/multiply.h"

namespace vitrail {

std::vector<TensorDesc> AverageOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_same(*this, ins[0], ins[1]);
  return {ins[0]};
}

double AverageOp::flops(DescSpan, DescSpan outs) const {
  return 2.0 * static_cast<double>(outs[0].elems());
}

void AverageOp::grad(GradRecorder& r) const {
  const ValueId half = r.add<MultiplyOp>({r.dout()}, "half", 0.5);
  for (size_t i : {0u, 1u})
    if (r.wants(i)) r.give(i, half);
}

}  // namespace vitrail
