#include "api/classify.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace vitrail {

std::vector<ClassProbability> top_classes(std::span<const float> logits, int k) {
  if (logits.empty()) return {};
  const double top = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (float logit : logits) total += std::exp(logit - top);
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const size_t count = std::min(logits.size(), static_cast<size_t>(std::max(k, 0)));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](int a, int b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  std::vector<ClassProbability> result;
  for (size_t i = 0; i < count; ++i)
    result.push_back({order[i], static_cast<float>(std::exp(logits[order[i]] - top) / total)});
  return result;
}

}  // namespace vitrail
