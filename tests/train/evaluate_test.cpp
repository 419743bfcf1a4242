// Evaluation checked by hand: a model with known outputs on a dataset with known labels.
#include "train/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "data/decode.h"
#include "data/fake_dataset.h"
#include "telemetry/report.h"
#include "train/run_report.h"

namespace vitrail {
namespace {

constexpr int64_t kCount = 21, kClasses = 7, kBatch = 4;

// The logits of a sample, where every third has its own label first.
std::vector<float> logits_of(int64_t sample, int64_t label) {
  std::vector<float> row;
  for (int64_t k = 0; k < kClasses; ++k)
    row.push_back(2 * counter_uniform(5, static_cast<uint64_t>(sample * kClasses + k)));
  if (sample % 3 == 0) row[static_cast<size_t>(label)] += 3;
  return row;
}

class Evaluate : public ::testing::Test {
 protected:
  Evaluate() : data_(kCount, kClasses, 8) {
    settings_.loader.workers = 1;
    settings_.preprocess.height = settings_.preprocess.width = settings_.preprocess.resize = 8;
    settings_.micro_batch = kBatch;
    settings_.classes = kClasses;
  }

  // Batches come in order, the last padded with rows of no sample, whose outputs must not count.
  EvalResult run(EvalOptions options, int64_t turned = 0) {
    const auto loader = make_eval_loader(data_, settings_);
    int64_t first = 0;
    const Forward forward = [&](std::span<const float>, int64_t count) -> std::span<const float> {
      answers_.clear();
      for (int64_t i = first; i < first + count; ++i)
        for (float x : i < kCount ? answer(i) : std::vector<float>(kClasses, 99.0f)) answers_.push_back(x);
      first += count;
      for (size_t i = 0; broken_ && i < answers_.size(); i += kClasses) answers_[i] = std::nanf("");
      return answers_;
    };
    if (turned > 0)
      options.against = [this, turned](std::span<const float>, int64_t count) -> std::span<const float> {
        other_ = answers_;
        for (int64_t i = 0; i < count; i += turned)  // every so many-th row answers the last class
          other_[static_cast<size_t>(i * kClasses + kClasses - 1)] = 50;
        return other_;
      };
    return evaluate(data_, *loader, forward, options);
  }

  std::vector<float> answer(int64_t sample) const {
    const int64_t label = data_.labels(sample).empty() ? 0 : data_.labels(sample)[0];
    if (!tied_) return logits_of(sample, label);
    std::vector<float> row(kClasses);
    row[static_cast<size_t>((label + sample % 2) % kClasses)] = 2;
    return row;
  }

  test::FakeDataset data_;
  LoaderSettings settings_;
  std::vector<float> answers_, other_;
  bool broken_ = false;  // every answer begins with a NaN
  bool tied_ = false;    // even samples are right, odd ones wrong, all by as much
};

double softmax_loss(const std::vector<float>& row, size_t label) {
  double sum = 0;
  for (float x : row) sum += std::exp(static_cast<double>(x));
  return std::log(sum) - static_cast<double>(row[label]);
}

TEST_F(Evaluate, CountsEverySampleOnce) {
  double loss = 0;
  int64_t top1 = 0, top5 = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const std::vector<float> row = logits_of(i, i % kClasses);
    const auto label = static_cast<size_t>(i % kClasses);
    loss += softmax_loss(row, label) / kCount;
    const auto above = std::count_if(row.begin(), row.end(), [&](float x) { return x > row[label]; });
    top1 += above == 0, top5 += above < 5;
  }
  ASSERT_TRUE(top1 >= 5 && top1 < top5 && top5 < kCount) << top1 << " " << top5;
  std::vector<int64_t> progress;
  const EvalResult result = run({.progress = [&](int64_t done) { progress.push_back(done); }});
  EXPECT_EQ(result.count, kCount);
  EXPECT_NEAR(result.loss, loss, 1e-6);
  EXPECT_DOUBLE_EQ(result.top1(), static_cast<double>(top1) / kCount);
  EXPECT_EQ(result.confusion->top().top1, top1);
  EXPECT_EQ(result.confusion->top().top5, top5);
  EXPECT_EQ(progress, (std::vector<int64_t>{4, 8, 12, 16, 20, 21}));
  const EvalStatus status = result.status(7, 2, "ema");
  EXPECT_EQ(*status.top1, result.top1());
  EXPECT_DOUBLE_EQ(*status.top5, static_cast<double>(top5) / kCount);
  EXPECT_EQ(status.step, 7);
  EXPECT_EQ(status.epoch, 2);
  EXPECT_EQ(status.weights, "ema");
  EXPECT_EQ(status.loss, result.loss);
}

TEST_F(Evaluate, SigmoidLossesAreSumsOrMeansOverTheClasses) {
  double sum = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const std::vector<float> row = logits_of(i, i % kClasses);
    for (int64_t k = 0; k < kClasses; ++k) {
      const double x = static_cast<double>(row[static_cast<size_t>(k)]);
      sum += std::log(1 + std::exp(k == i % kClasses ? -x : x)) / kCount;
    }
  }
  EXPECT_NEAR(run({.loss = LossKind::kSigmoidSum}).loss, sum, 1e-5);
  EXPECT_NEAR(run({.loss = LossKind::kSigmoidMean}).loss, sum / kClasses, 1e-5);
}

TEST_F(Evaluate, SeveralLabelsAreScoredApart) {
  data_.set_multi_label();
  double sum = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    std::vector<int32_t> labels;
    if (i % 4) labels.push_back(static_cast<int32_t>(i % kClasses));
    if (i % 4 == 3) labels.push_back(static_cast<int32_t>((i + 2) % kClasses));
    std::sort(labels.begin(), labels.end());
    data_.set_labels(i, labels);
    const std::vector<float> row = logits_of(i, labels.empty() ? 0 : labels[0]);
    for (int32_t k = 0; k < kClasses; ++k) {
      const double x = static_cast<double>(row[static_cast<size_t>(k)]);
      sum += std::log(1 + std::exp(std::count(labels.begin(), labels.end(), k) ? -x : x)) / kCount;
    }
  }
  const EvalResult result = run({.loss = LossKind::kSigmoidSum});
  EXPECT_EQ(result.count, kCount);
  EXPECT_FALSE(result.confusion);
  ASSERT_TRUE(result.multi_label);
  EXPECT_NEAR(result.loss, sum, 1e-5);
  EXPECT_EQ(result.top1(), result.multi_label->mean_ap);
  EXPECT_EQ(*result.status(0, 0, "model").mean_ap, result.multi_label->mean_ap);
}

// Right predictions by the lowest loss, wrong ones by the highest; with the probability of the prediction.
TEST_F(Evaluate, KeepsTheBestAndTheWorst) {
  const EvalResult result = run({.kept = 3});
  ASSERT_EQ(result.best.size(), 3u);
  ASSERT_EQ(result.worst.size(), 3u);
  std::vector<double> right, wrong;
  for (int64_t i = 0; i < kCount; ++i) {
    const std::vector<float> row = logits_of(i, i % kClasses);
    const bool is_right = std::max_element(row.begin(), row.end()) - row.begin() == i % kClasses;
    (is_right ? right : wrong).push_back(softmax_loss(row, static_cast<size_t>(i % kClasses)));
  }
  std::sort(right.begin(), right.end());
  std::sort(wrong.rbegin(), wrong.rend());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(result.best[i].loss, right[i], 1e-5);
    EXPECT_NEAR(result.worst[i].loss, wrong[i], 1e-5);
    for (const SampleResult& one : {result.best[i], result.worst[i]}) {
      const std::vector<float> row = logits_of(one.sample, one.label);
      EXPECT_EQ(one.label, one.sample % kClasses);
      EXPECT_EQ(one.predicted, std::max_element(row.begin(), row.end()) - row.begin());
      EXPECT_NEAR(one.probability, std::exp(-softmax_loss(row, static_cast<size_t>(one.predicted))), 1e-5);
    }
  }
  for (const SampleResult& one : run({.loss = LossKind::kSigmoidSum, .kept = 3}).best) {
    const double x =
        static_cast<double>(logits_of(one.sample, one.label)[static_cast<size_t>(one.predicted)]);
    EXPECT_NEAR(one.probability, 1 / (1 + std::exp(-x)), 1e-6);
  }
}

TEST_F(Evaluate, OfEqualLossesTheFirstSamplesAreKept) {
  tied_ = true;
  const auto samples = [](const std::vector<SampleResult>& list) {
    std::vector<int64_t> numbers;
    numbers.reserve(list.size());
    for (const SampleResult& one : list) numbers.push_back(one.sample);
    return numbers;
  };
  using Numbers = std::vector<int64_t>;
  for (const auto& [kept, best, worst] : {std::tuple{size_t{3}, Numbers{0, 2, 4}, Numbers{1, 3, 5}},
                                          {size_t{1}, Numbers{0}, Numbers{1}},
                                          {size_t{0}, Numbers{}, Numbers{}}}) {
    const EvalResult result = run({.kept = kept});
    EXPECT_EQ(samples(result.best), best) << kept;
    EXPECT_EQ(samples(result.worst), worst) << kept;
  }
  EXPECT_EQ(run({.kept = 100}).best.size(), 11u) << "there are no more";
}

TEST_F(Evaluate, ASecondModelIsComparedRowByRow) {
  const EvalResult result = run({}, 2);
  int64_t right = 0, equal = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    std::vector<float> row = logits_of(i, i % kClasses);
    const auto own = std::max_element(row.begin(), row.end()) - row.begin();
    const auto other = i % kBatch % 2 == 0 ? kClasses - 1 : own;
    right += other == i % kClasses, equal += other == own;
  }
  ASSERT_TRUE(result.against);
  EXPECT_EQ(result.against->right, right);
  EXPECT_EQ(result.against->equal, equal);
  EXPECT_FALSE(run({}).against);
}

TEST_F(Evaluate, AModelWithoutNumbersHasNoAnswer) {
  broken_ = true;
  const EvalResult result = run({.kept = 3}, 1);
  EXPECT_EQ(result.confusion->top().top1, 0);
  EXPECT_TRUE(result.best.empty() && result.worst.empty());
  EXPECT_EQ(result.against->right, 0);
  EXPECT_EQ(result.against->equal, 0) << "two without an answer do not agree";
}

TEST_F(Evaluate, StopsWhenAsked) {
  int asked = 0;
  try {
    run({.stop = [&] { return ++asked > 2; }});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kStopped);
  }
  EXPECT_EQ(asked, 3);
}

// The longer side ends at four times that.
TEST(EvalReport, TheShorterSideOfAnImageIsShownWith96Pixels) {
  for (const auto& [name, height, width] : {std::tuple{"synthetic:3x8x12x2x4", 96, 144},
                                            {"synthetic:3x12x8x2x4", 144, 96},
                                            {"synthetic:3x8x32x2x4", 96, 384},
                                            {"synthetic:3x40x8x2x4", 384, 96}}) {
    const auto data = open_dataset(name, Part::kTrain);
    EvalResult result;
    result.best = {{.sample = 1, .label = 1, .predicted = 0, .probability = 0.75f}};
    result.worst = {{.sample = 2, .label = 0, .predicted = 1, .probability = 0.5f}};
    Report report;
    add_eval_sections(report, result, *data);
    ASSERT_EQ(report.best.size(), 1u);
    ASSERT_EQ(report.worst.size(), 1u);
    const Image shown = decode_image(report.best[0].png);
    EXPECT_EQ(shown.height, height) << name;
    EXPECT_EQ(shown.width, width) << name;
    EXPECT_EQ(report.best[0].name, data->sample_name(1));
    EXPECT_EQ(report.worst[0].name, data->sample_name(2));
    EXPECT_EQ(report.best[0].label, "1");
    EXPECT_EQ(report.best[0].predicted, "0");
    EXPECT_EQ(report.best[0].probability, 0.75);
    EXPECT_EQ(report.classes, data->classes());
  }
}

}  // namespace
}  // namespace vitrail
