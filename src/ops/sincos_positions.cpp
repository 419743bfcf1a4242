#include "ops/sincos_positions.h"

#include <cmath>

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

std::vector<double> SincosPositionsOp::table() const {
  const int64_t quarter = width_ / 4;
  std::vector<double> values(static_cast<size_t>(rows_ * columns_ * width_));
  for (int64_t n = 0; n < rows_ * columns_; ++n)
    for (int64_t i = 0; i < quarter; ++i) {
      const double fraction = quarter > 1 ? static_cast<double>(i) / static_cast<double>(quarter - 1) : 0.0;
      const double omega = std::pow(10000.0, -fraction);
      const int64_t row = n / columns_, column = n % columns_;
      const double x = static_cast<double>(column) * omega, y = static_cast<double>(row) * omega;
      const double parts[] = {std::sin(x), std::cos(x), std::sin(y), std::cos(y)};
      for (int64_t part = 0; part < 4; ++part)
        values[static_cast<size_t>(n * width_ + part * quarter + i)] = parts[part];
    }
  return values;
}

void SincosPositionsOp::grad(GradRecorder&) const {}  // the op has no inputs

}  // namespace vitrail
