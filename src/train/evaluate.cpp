#include "train/evaluate.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/timing.h"
#include "tensor/layout.h"

namespace vitrail {

namespace {

float log_sum_exp(std::span<const float> x) {
  const float top = *std::max_element(x.begin(), x.end());
  double total = 0;
  for (float value : x) total += std::exp(static_cast<double>(value - top));
  return top + static_cast<float>(std::log(total));
}

// Computes the loss as training does, from plain labels.
double loss_of(std::span<const float> logits, std::span<const int32_t> labels, LossKind kind) {
  if (kind == LossKind::kSoftmax) {
    double loss = 0;
    for (int32_t label : labels) loss += log_sum_exp(logits) - logits[static_cast<size_t>(label)];
    return labels.empty() ? 0 : loss / static_cast<double>(labels.size());
  }
  double loss = 0;
  for (float x : logits) loss += std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(static_cast<double>(x))));
  for (int32_t label : labels) loss -= logits[static_cast<size_t>(label)];
  return kind == LossKind::kSigmoidMean ? loss / static_cast<double>(logits.size()) : loss;
}

// Inserts a result into a sorted list and keeps the first `kept`.
template <typename Before>
void keep(std::vector<SampleResult>& list, const SampleResult& result, size_t kept, Before before) {
  list.insert(std::upper_bound(list.begin(), list.end(), result, before), result);
  if (list.size() > kept) list.pop_back();
}

class Evaluation {
 public:
  Evaluation(const Dataset& dataset, const EvalOptions& options)
      : dataset_(dataset), options_(options), classes_(dataset.classes().size()) {
    if (dataset.multi_label())
      scores_.emplace(static_cast<int64_t>(classes_));
    else
      result_.confusion.emplace(static_cast<int64_t>(classes_));
  }

  void add(int64_t sample, std::span<const float> logits) {
    const std::span<const int32_t> labels = dataset_.labels(sample);
    const double loss = loss_of(logits, labels, options_.loss);
    total_ += loss;
    ++result_.count;
    if (scores_) return add_multi(logits, labels);
    result_.confusion->add(labels[0], logits);
    const int64_t best = highest_class(logits);
    if (best == kNoClass) return;  // neither right nor wrong by so much: its loss is no number
    const SampleResult one{sample, labels[0], static_cast<int32_t>(best),
                           probability(logits, static_cast<size_t>(best)), static_cast<float>(loss)};
    if (one.predicted == one.label)
      keep(result_.best, one, options_.kept,
           [](const SampleResult& a, const SampleResult& b) { return a.loss < b.loss; });
    else
      keep(result_.worst, one, options_.kept,
           [](const SampleResult& a, const SampleResult& b) { return a.loss > b.loss; });
  }

  void compare(int64_t sample, std::span<const float> logits, std::span<const float> other) {
    if (!result_.against) result_.against.emplace();
    const int64_t theirs = highest_class(other);
    result_.against->right += theirs == dataset_.labels(sample)[0];
    result_.against->equal += theirs != kNoClass && theirs == highest_class(logits);
  }

  EvalResult finish() {
    if (scores_) result_.multi_label = scores_->result();
    result_.loss = result_.count ? total_ / static_cast<double>(result_.count) : 0;
    return std::move(result_);
  }
  int64_t count() const { return result_.count; }

 private:
  float probability(std::span<const float> logits, size_t at) const {
    if (options_.loss == LossKind::kSoftmax) return std::exp(logits[at] - log_sum_exp(logits));
    return 1 / (1 + std::exp(-logits[at]));
  }

  void add_multi(std::span<const float> logits, std::span<const int32_t> labels) {
    std::vector<float> probabilities;
    for (float x : logits) probabilities.push_back(1 / (1 + std::exp(-x)));
    scores_->add(probabilities, labels);
  }

  const Dataset& dataset_;
  const EvalOptions& options_;
  size_t classes_;
  std::optional<MultiLabelScores> scores_;
  double total_ = 0;
  EvalResult result_;
};

}  // namespace

EvalStatus EvalResult::status(int64_t step, int64_t epoch, const std::string& weights) const {
  EvalStatus status;
  status.step = step;
  status.epoch = epoch;
  status.loss = loss;
  status.count = count;
  status.seconds = seconds;
  status.weights = weights;
  status.time = unix_seconds();
  if (confusion) {
    status.top1 = confusion->top().top1_share();
    status.top5 = confusion->top().top5_share();
  } else {
    status.mean_ap = multi_label->mean_ap;
    status.macro_f1 = multi_label->macro_f1;
  }
  return status;
}

// Sample numbers travel as floats beside the logits, which hold them exactly in two halves.
EvalRows rows_of_all(const Team& team, const std::vector<int64_t>& cuts, const EvalRows& mine) {
  std::vector<int64_t> rows;
  for (size_t r = 0; r + 1 < cuts.size(); ++r) rows.push_back(cuts[r + 1] - cuts[r]);
  constexpr int64_t kHalf = 1 << 20;
  std::vector<float> numbers;
  for (const int64_t sample : mine.samples) {
    const int64_t high = (sample + 1) / kHalf, low = (sample + 1) % kHalf;
    numbers.push_back(static_cast<float>(high));
    numbers.push_back(static_cast<float>(low));
  }
  numbers = team.gather_rows(numbers, rows);
  EvalRows all{team.gather_rows(mine.logits, rows), {}};
  for (size_t i = 0; i < numbers.size(); i += 2)
    all.samples.push_back(static_cast<int64_t>(numbers[i]) * kHalf + static_cast<int64_t>(numbers[i + 1]) -
                          1);
  return all;
}

namespace {
EvalRows rows_of(const Batch& batch, std::span<const float> logits, const GatherRows& gather) {
  EvalRows rows{{logits.begin(), logits.end()}, {batch.samples.begin(), batch.samples.end()}};
  for (size_t i = 0; i < rows.samples.size(); ++i)
    if (batch.weights[i] <= 0) rows.samples[i] = -1;
  return gather ? gather(std::move(rows)) : rows;
}
}  // namespace

EvalResult evaluate(const Dataset& dataset, Loader& loader, const Forward& forward,
                    const EvalOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Evaluation evaluation(dataset, options);
  const size_t classes = dataset.classes().size();
  loader.seek(0);
  for (int64_t b = 0; b < loader.batches(); ++b) {
    if (options.stop && options.stop()) throw Error(ErrorKind::kStopped, "stopped during an evaluation");
    const Batch& batch = loader.next();
    const auto rows = static_cast<int64_t>(batch.samples.size());
    const std::span<const float> logits = forward(batch.images, rows);
    const std::span<const float> other =
        options.against ? options.against(batch.images, rows) : std::span<const float>();
    const EvalRows all = rows_of(batch, logits, options.gather);
    const EvalRows others = options.against ? rows_of(batch, other, options.gather) : EvalRows();
    for (size_t i = 0; i < all.samples.size(); ++i) {
      if (all.samples[i] < 0) continue;
      const std::span<const float> row = std::span(all.logits).subspan(i * classes, classes);
      evaluation.add(all.samples[i], row);
      if (options.against)
        evaluation.compare(all.samples[i], row, std::span(others.logits).subspan(i * classes, classes));
    }
    if (options.progress) options.progress(evaluation.count());
  }
  EvalResult result = evaluation.finish();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace vitrail
