#include "telemetry/confusion.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"

namespace vitrail {

double share_of(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

bool has_answer(std::span<const float> scores) {
  return std::none_of(scores.begin(), scores.end(), [](float score) { return std::isnan(score); });
}

int64_t rank_of(std::span<const float> scores, int64_t label) {
  const auto index = static_cast<size_t>(label);
  VT_CHECK(label >= 0 && index < scores.size(), "label %lld of %zu", static_cast<long long>(label),
           scores.size());
  if (!has_answer(scores)) return static_cast<int64_t>(scores.size());
  const float own = scores[index];
  int64_t above = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    if (scores[i] > own || (scores[i] == own && i < index)) ++above;
  return above;
}

int64_t highest_class(std::span<const float> scores) {
  if (!has_answer(scores)) return kNoClass;
  return std::max_element(scores.begin(), scores.end()) - scores.begin();
}

void TopCounts::add(int64_t rank) {
  ++count;
  top1 += rank < 1;
  top5 += rank < 5;
}

double TopCounts::top1_share() const {
  return share_of(top1, count);
}

double TopCounts::top5_share() const {
  return share_of(top5, count);
}

double ClassCounts::precision() const {
  return share_of(correct, predicted);
}

double ClassCounts::recall() const {
  return share_of(correct, count);
}

double ClassCounts::f1() const {
  return share_of(2 * correct, count + predicted);
}

double ClassCounts::top5_share() const {
  return share_of(top5, count);
}

ConfusionMatrix::ConfusionMatrix(int64_t classes) : rows_(static_cast<size_t>(classes)) {}

uint64_t ConfusionMatrix::key(int64_t label, int64_t predicted) const {
  VT_CHECK(label >= 0 && label < classes() && predicted >= 0 && predicted < classes(),
           "classes %lld and %lld of %lld", static_cast<long long>(label), static_cast<long long>(predicted),
           static_cast<long long>(classes()));
  return static_cast<uint64_t>(label) * rows_.size() + static_cast<uint64_t>(predicted);
}

void ConfusionMatrix::add(int64_t label, int64_t predicted, bool in_top5) {
  const bool answered = predicted != kNoClass, correct = label == predicted;
  const uint64_t cell = key(label, answered ? predicted : label);
  ClassCounts& row = rows_[static_cast<size_t>(label)];
  top_.add(correct ? 0 : in_top5 ? 1 : 5);
  ++row.count;
  row.top5 += correct || in_top5;
  row.correct += correct;
  if (answered) ++rows_[static_cast<size_t>(predicted)].predicted;
  if (answered && !correct) ++confused_[cell];
}

void ConfusionMatrix::add(int64_t label, std::span<const float> scores) {
  VT_CHECK(scores.size() == rows_.size(), "%zu scores for %zu classes", scores.size(), rows_.size());
  add(label, highest_class(scores), rank_of(scores, label) < 5);
}

void ConfusionMatrix::add(const ConfusionMatrix& other) {
  VT_CHECK(other.classes() == classes(), "matrices of different classes");
  top_.count += other.top_.count;
  top_.top1 += other.top_.top1;
  top_.top5 += other.top_.top5;
  for (size_t i = 0; i < rows_.size(); ++i) {
    rows_[i].count += other.rows_[i].count;
    rows_[i].predicted += other.rows_[i].predicted;
    rows_[i].correct += other.rows_[i].correct;
    rows_[i].top5 += other.rows_[i].top5;
  }
  for (const auto& [cell, count] : other.confused_) confused_[cell] += count;
}

int64_t ConfusionMatrix::at(int64_t label, int64_t predicted) const {
  const uint64_t cell = key(label, predicted);
  if (label == predicted) return of(label).correct;
  const auto found = confused_.find(cell);
  return found == confused_.end() ? 0 : found->second;
}

std::vector<ConfusedPair> ConfusionMatrix::most_confused(size_t most) const {
  std::vector<ConfusedPair> pairs;
  pairs.reserve(confused_.size());
  for (const auto& [cell, count] : confused_) {
    const auto label = static_cast<int64_t>(cell / rows_.size());
    pairs.push_back(
        {label, static_cast<int64_t>(cell % rows_.size()), count, share_of(count, of(label).count)});
  }
  const auto kept = pairs.begin() + static_cast<std::ptrdiff_t>(std::min(most, pairs.size()));
  std::partial_sort(pairs.begin(), kept, pairs.end(), [](const ConfusedPair& a, const ConfusedPair& b) {
    return std::tuple(-a.count, a.label, a.predicted) < std::tuple(-b.count, b.label, b.predicted);
  });
  pairs.erase(kept, pairs.end());
  return pairs;
}

}  // namespace vitrail
