#include "api/classify.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace vitrail {

namespace {

std::vector<float> softmax(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (float logit : logits) total += std::exp(logit - top);
  std::vector<float> shares;
  for (float logit : logits) shares.push_back(static_cast<float>(std::exp(logit - top) / total));
  return shares;
}

std::vector<float> sigmoids(std::span<const float> logits) {
  std::vector<float> shares;
  for (float logit : logits)
    shares.push_back(static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logit)))));
  return shares;
}

}  // namespace

std::vector<ClassProbability> top_classes(std::span<const float> logits, int k, ScoreKind scores) {
  if (logits.empty()) return {};
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const size_t count = std::min(logits.size(), static_cast<size_t>(std::max(k, 0)));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](int a, int b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  std::vector<ClassProbability> result;
  const std::vector<float> shares = scores == ScoreKind::kSigmoid ? sigmoids(logits) : softmax(logits);
  for (size_t i = 0; i < count; ++i) result.push_back({order[i], shares[static_cast<size_t>(order[i])]});
  return result;
}

std::vector<float> class_scores(const Engine& engine, ScoreKind scores) {
  return scores == ScoreKind::kSigmoid ? sigmoids(engine.output("logits")) : engine.output("probs");
}

}  // namespace vitrail
