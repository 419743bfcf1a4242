#include "base/spread.h"

#include <algorithm>

namespace vitrail {

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto quantile = [&](double share) {
    const double at = share * static_cast<double>(values.size() - 1);
    const auto low = static_cast<size_t>(at);
    const size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
  };
  return {values.size(), values.front(), quantile(0.5), quantile(0.9), values.back()};
}

}  // namespace vitrail
