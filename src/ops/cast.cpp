#include "ops/cast.h"

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> CastOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  return {{to_, ins[0].shape}};
}

void CastOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<CastOp>({r.dout()}, "dx", r.desc(r.in(0)).dtype));
}

}  // namespace vitrail
