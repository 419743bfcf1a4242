#include "ops/scale.h"

#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> ScaleOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_suffix(*this, ins[0].shape, ins[1].shape);
  return {ins[0]};
}

}  // namespace vitrail
