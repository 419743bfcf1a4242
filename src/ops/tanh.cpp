#include "ops/tanh.h"

#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> TanhOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  return {ins[0]};
}

}  // namespace vitrail
