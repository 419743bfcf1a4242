// Repeated measurements summarised as median and spread, as every benchmark reports them.
#pragma once

#include <cstddef>
#include <vector>

namespace vitrail {

struct Spread {
  size_t count = 0;
  double min = 0, median = 0, p90 = 0, max = 0;
};
// Computes the spread; all zero when there are no values. Quantiles are interpolated linearly.
Spread spread_of(std::vector<double> values);

}  // namespace vitrail
