#include "ops/qk_norm.h"

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

}  // namespace vitrail
