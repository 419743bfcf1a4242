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

std::vector<int> likeliest(std::span<const float> scores, int64_t k) {
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::clamp<int64_t>(k, 0, static_cast<int64_t>(scores.size()));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int a, int b) {
    const float x = scores[a], y = scores[b];
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) == std::isnan(y) ? a < b : std::isnan(y);
    return x != y ? x > y : a < b;
  });
  order.resize(static_cast<size_t>(count));
  return order;
}

std::vector<ClassProbability> top_classes(std::span<const float> logits, int k, ScoreKind scores) {
  if (logits.empty()) return {};
  std::vector<ClassProbability> result;
  const std::vector<float> shares = scores == ScoreKind::kSigmoid ? sigmoids(logits) : softmax(logits);
  for (const int one : likeliest(logits, k)) result.push_back({one, shares[static_cast<size_t>(one)]});
  return result;
}

std::vector<float> class_scores(const Engine& engine, ScoreKind scores) {
  return scores == ScoreKind::kSigmoid ? sigmoids(engine.output("logits")) : engine.output("probs");
}

}  // namespace vitrail
