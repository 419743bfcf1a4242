#include "ops/add.h"

#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> AddOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_same(*this, ins[0], ins[1]);
  return {ins[0]};
}

}  // namespace vitrail
