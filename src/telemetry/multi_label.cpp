#include "telemetry/multi_label.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "telemetry/confusion.h"

namespace vitrail {

namespace {
struct Decisions {
  int64_t hits = 0, said = 0, there = 0;

  void add(bool positive, bool decided) {
    hits += positive && decided;
    said += decided;
    there += positive;
  }
  void add(const Decisions& other) {
    hits += other.hits;
    said += other.said;
    there += other.there;
  }
  double f1() const { return share_of(2 * hits, said + there); }
};
}  // namespace

double average_precision(std::span<const float> scores, std::span<const uint8_t> positive) {
  VT_CHECK(scores.size() == positive.size(), "%zu scores, %zu labels", scores.size(), positive.size());
  const auto value = [&](size_t i) {
    return std::isnan(scores[i]) ? -std::numeric_limits<float>::infinity() : scores[i];
  };
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return value(a) > value(b); });
  const int64_t there = std::count_if(positive.begin(), positive.end(), [](uint8_t p) { return p != 0; });
  double area = 0;
  int64_t hits = 0, counted = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    hits += positive[order[i]] != 0;
    if (i + 1 < order.size() && value(order[i]) == value(order[i + 1])) continue;
    area += share_of(hits - counted, there) * share_of(hits, static_cast<int64_t>(i + 1));
    counted = hits;
  }
  return area;
}

MultiLabelScores::MultiLabelScores(int64_t classes, float threshold)
    : classes_(static_cast<size_t>(classes)), threshold_(threshold) {}

void MultiLabelScores::add(std::span<const float> scores, std::span<const int32_t> labels) {
  VT_CHECK(scores.size() == classes_, "%zu scores for %zu classes", scores.size(), classes_);
  const size_t row = positive_.size();
  scores_.insert(scores_.end(), scores.begin(), scores.end());
  positive_.resize(row + classes_);
  for (const int32_t label : labels) {
    VT_CHECK(label >= 0 && static_cast<size_t>(label) < classes_, "label %d of %zu", label, classes_);
    positive_[row + static_cast<size_t>(label)] = 1;
  }
}

MultiLabelResult MultiLabelScores::result() const {
  MultiLabelResult result;
  const size_t images = classes_ > 0 ? scores_.size() / classes_ : 0;
  result.count = static_cast<int64_t>(images);
  std::vector<float> scores(images);
  std::vector<uint8_t> positive(images);
  Decisions all;
  int64_t occurring = 0;
  for (size_t c = 0; c < classes_; ++c) {
    Decisions own;
    for (size_t i = 0; i < images; ++i) {
      scores[i] = scores_[i * classes_ + c];
      positive[i] = positive_[i * classes_ + c];
      own.add(positive[i] != 0, scores[i] > threshold_);
    }
    const double area = average_precision(scores, positive);
    result.classes.push_back(
        {own.there, area, share_of(own.hits, own.said), share_of(own.hits, own.there), own.f1()});
    all.add(own);
    if (own.there == 0) continue;
    ++occurring;
    result.mean_ap += area;
    result.macro_f1 += own.f1();
  }
  if (occurring > 0) {
    result.mean_ap /= static_cast<double>(occurring);
    result.macro_f1 /= static_cast<double>(occurring);
  }
  result.micro_f1 = all.f1();
  return result;
}

}  // namespace vitrail
