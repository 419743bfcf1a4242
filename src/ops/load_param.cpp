#include "ops/load_param.h"

#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> LoadParamOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  VT_CHECK(ins[0].shape == target_.shape, "load_param: %s cannot become %s", to_string(ins[0]).c_str(),
           to_string(target_).c_str());
  return {target_};
}

}  // namespace vitrail
