#include "ops/sincos_positions.h"

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> SincosPositionsOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 0);
  VT_CHECK(width_ % 4 == 0, "sincos_positions: width %lld is not divisible by 4",
           static_cast<long long>(width_));
  return {{dtype_, {Dim('N', rows_ * columns_), Dim('D', width_)}}};
}

std::string SincosPositionsOp::attributes() const {
  return strf("grid=%lldx%lld", static_cast<long long>(rows_), static_cast<long long>(columns_));
}

void SincosPositionsOp::grad(GradRecorder&) const {}  // it has no inputs

}  // namespace vitrail
