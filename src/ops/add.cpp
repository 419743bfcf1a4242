#include "ops/add.h"

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> AddOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_same(*this, {ins[0].dtype, ins[0].shape}, {ins[0].dtype, ins[1].shape});
  return {size_of(ins[0].dtype) >= size_of(ins[1].dtype) ? ins[0] : ins[1]};
}

void AddOp::grad(GradRecorder& r) const {
  for (size_t i : {0u, 1u})
    if (r.wants(i)) r.give(i, r.dout());
}

}  // namespace vitrail
