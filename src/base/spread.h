// Repeated measurements summed up: median and spread, as every benchmark reports them.
#pragma once

#include <cstddef>
#include <vector>

namespace vitrail {

struct Spread {
  size_t count = 0;
  double min = 0, median = 0, p90 = 0, max = 0;
};
// All zero when there are none. Quantiles lie between neighbours in proportion.
Spread spread_of(std::vector<double> values);

}  // namespace vitrail
