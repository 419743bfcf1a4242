#include "telemetry/confusion.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "telemetry/multi_label.h"

namespace vitrail {
namespace {

TEST(TopCounts, TheFirstFiveRanksAreTheTopFive) {
  TopCounts counts;
  for (int64_t rank = 0; rank < 8; ++rank) counts.add(rank);
  EXPECT_DOUBLE_EQ(counts.top1_share(), 1.0 / 8);
  EXPECT_DOUBLE_EQ(counts.top5_share(), 5.0 / 8);
}

TEST(RankOf, CountsWhatIsHigher) {
  struct Row {
    std::vector<float> scores;
    int64_t label, rank;
  };
  const Row rows[] = {{{0.1f, 0.7f, 0.2f}, 1, 0},
                      {{0.1f, 0.7f, 0.2f}, 0, 2},
                      {{0.5f, 0.5f, 0.5f}, 0, 0},
                      {{0.5f, 0.5f, 0.5f}, 2, 2},
                      {{1, NAN, 0}, 0, 3},
                      {{NAN, 1, 0}, 0, 3},
                      {{-INFINITY, INFINITY}, 1, 0},
                      {{3}, 0, 0},
                      {{NAN}, 0, 1}};
  for (const Row& row : rows) EXPECT_EQ(rank_of(row.scores, row.label), row.rank);
  EXPECT_THROW(rank_of(std::vector<float>{1, 2}, 2), Error);
}

TEST(HighestClass, IsTheFirstOfEqualsAndNoneBesideANaN) {
  const float nan = std::nanf("");
  EXPECT_EQ(highest_class(std::vector<float>{1, 3, 3, 2}), 1);
  for (size_t at = 0; at < 3; ++at) {
    std::vector<float> scores = {1, 2, 3};
    scores[at] = nan;
    EXPECT_EQ(highest_class(scores), kNoClass) << at;
  }
}

TEST(ConfusionMatrix, CountsByHand) {
  ConfusionMatrix matrix(3);
  for (const auto& [label, predicted] :
       std::vector<std::pair<int, int>>{{0, 0}, {0, 0}, {0, 1}, {1, 1}, {1, 2}, {1, 2}, {2, 2}})
    matrix.add(label, predicted, true);
  EXPECT_EQ(matrix.top().top1, 4);
  EXPECT_EQ(matrix.top().count, 7);
  EXPECT_EQ(matrix.at(1, 2), 2);
  EXPECT_EQ(matrix.at(2, 1), 0);
  EXPECT_EQ(matrix.at(0, 0), 2);
  EXPECT_DOUBLE_EQ(matrix.of(2).precision(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(matrix.of(2).recall(), 1);
  EXPECT_DOUBLE_EQ(matrix.of(2).f1(), 0.5);
  const auto pairs = matrix.most_confused(10);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].label, 1);
  EXPECT_EQ(pairs[0].predicted, 2);
  EXPECT_DOUBLE_EQ(pairs[0].share, 2.0 / 3);
  EXPECT_EQ(matrix.most_confused(1).size(), 1u);
  EXPECT_THROW(matrix.add(3, 0, false), Error);
  EXPECT_THROW(matrix.add(-1, 0, false), Error);
  EXPECT_THROW(matrix.at(0, 3), Error);
  EXPECT_THROW(matrix.add(0, -2, false), Error);
}

TEST(ConfusionMatrix, PairsOfEqualCountsComeByTheirClasses) {
  ConfusionMatrix matrix(3);
  for (const auto& [label, predicted] :
       std::vector<std::pair<int, int>>{{2, 1}, {1, 2}, {0, 2}, {0, 1}, {2, 0}, {2, 0}})
    matrix.add(label, predicted, false);
  std::vector<std::pair<int64_t, int64_t>> found;
  for (const ConfusedPair& pair : matrix.most_confused(4)) found.emplace_back(pair.label, pair.predicted);
  EXPECT_EQ(found, (std::vector<std::pair<int64_t, int64_t>>{{2, 0}, {0, 1}, {0, 2}, {1, 2}}));
}

TEST(ConfusionMatrix, WhatIsRightIsAmongTheFirstFive) {
  ConfusionMatrix matrix(3);
  matrix.add(0, 0, false);
  matrix.add(0, 1, true);
  matrix.add(0, 1, false);
  EXPECT_DOUBLE_EQ(matrix.of(0).top5_share(), 2.0 / 3);
  EXPECT_EQ(matrix.top().top5, 2);
  EXPECT_DOUBLE_EQ(matrix.of(1).precision(), 0);
  EXPECT_DOUBLE_EQ(matrix.of(0).precision(), 1);
}

TEST(ConfusionMatrix, NothingSeenGivesZeros) {
  const ConfusionMatrix matrix(2);
  EXPECT_EQ(matrix.top().top1_share(), 0);
  EXPECT_EQ(matrix.of(0).precision() + matrix.of(0).recall() + matrix.of(0).f1(), 0);
}

TEST(ConfusionMatrix, BrokenScoresAreWrongAndBlameNobody) {
  ConfusionMatrix matrix(6);
  matrix.add(0, std::vector<float>(6, NAN));
  EXPECT_EQ(matrix.top().top1, 0);
  EXPECT_EQ(matrix.top().top5, 0);
  EXPECT_EQ(matrix.of(0).count, 1);
  EXPECT_TRUE(matrix.most_confused(5).empty());
}

// Twenty classes with random scores are compared with the simplest counting; two parts add up to the whole.
TEST(ConfusionMatrix, ScoresAgreeWithPlainCounting) {
  constexpr int64_t kClasses = 20, kImages = 500;
  ConfusionMatrix whole(kClasses), halves[2] = {ConfusionMatrix(kClasses), ConfusionMatrix(kClasses)};
  int64_t top1 = 0, top5 = 0;
  for (int64_t i = 0; i < kImages; ++i) {
    std::vector<float> scores;
    for (int64_t c = 0; c < kClasses; ++c)
      scores.push_back(counter_uniform(7, static_cast<uint64_t>(i * kClasses + c)));
    const int64_t label = i % kClasses;
    scores[static_cast<size_t>(label)] += 0.6f;
    whole.add(label, scores);
    halves[i % 2].add(label, scores);
    std::vector<float> sorted = scores;
    std::sort(sorted.rbegin(), sorted.rend());
    top1 += scores[static_cast<size_t>(label)] >= sorted[0];
    top5 += scores[static_cast<size_t>(label)] >= sorted[4];
  }
  EXPECT_EQ(whole.top().top1, top1);
  EXPECT_EQ(whole.top().top5, top5);
  EXPECT_GT(top5, top1);
  halves[0].add(halves[1]);
  EXPECT_EQ(halves[0].top().top5, top5);
  EXPECT_EQ(halves[0].top().top1, top1);
  EXPECT_EQ(halves[0].top().count, kImages);
  for (int64_t c = 0; c < kClasses; ++c) {
    const ClassCounts &one = whole.of(c), &sum = halves[0].of(c);
    EXPECT_EQ(sum.count, one.count) << c;
    EXPECT_EQ(sum.predicted, one.predicted) << c;
    EXPECT_EQ(sum.top5, one.top5) << c;
  }
  int64_t in_rows = 0;
  for (int64_t a = 0; a < kClasses; ++a)
    for (int64_t b = 0; b < kClasses; ++b) {
      in_rows += whole.at(a, b);
      EXPECT_EQ(whole.at(a, b), halves[0].at(a, b));
    }
  EXPECT_EQ(in_rows, kImages);
}

TEST(AveragePrecision, KnownAnswers) {
  struct Row {
    std::vector<float> scores;
    std::vector<uint8_t> positive;
    double area;
  };
  const Row rows[] = {{{0.9f, 0.8f, 0.7f}, {1, 1, 0}, 1},
                      {{0.1f, 0.4f, 0.35f, 0.8f}, {0, 0, 1, 1}, 0.5 + 0.5 * 2.0 / 3},
                      {{0.5f, 0.5f, 0.5f, 0.5f}, {0, 1, 0, 0}, 0.25},
                      {{NAN, 0.2f}, {1, 0}, 0.5},
                      {{0.3f, 0.2f}, {0, 0}, 0},
                      {{}, {}, 0}};
  for (const Row& row : rows) EXPECT_DOUBLE_EQ(average_precision(row.scores, row.positive), row.area);
}

TEST(MultiLabel, MeansOverTheClassesThatOccur) {
  MultiLabelScores scores(3);
  scores.add(std::vector<float>{0.9f, 0.6f, 0.1f}, std::vector<int32_t>{0});
  scores.add(std::vector<float>{0.2f, 0.4f, 0.1f}, std::vector<int32_t>{0, 1});
  scores.add(std::vector<float>{0.3f, 0.1f, 0.1f}, {});
  const MultiLabelResult result = scores.result();
  EXPECT_EQ(result.count, 3);
  EXPECT_EQ(result.classes[0].positives, 2);
  // Class 0: positives first and third; class 1: its one positive comes second.
  EXPECT_DOUBLE_EQ(result.classes[0].average_precision, 0.5 + 0.5 * 2.0 / 3);
  EXPECT_DOUBLE_EQ(result.classes[1].average_precision, 0.5);
  EXPECT_DOUBLE_EQ(result.mean_ap, (0.5 + 1.0 / 3 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(result.classes[0].f1, 2.0 / 3);
  EXPECT_DOUBLE_EQ(result.macro_f1, 1.0 / 3);
  EXPECT_DOUBLE_EQ(result.micro_f1, 2.0 * 1 / (2 + 3));
  EXPECT_THROW(scores.add(std::vector<float>{1}, {}), Error);
  EXPECT_THROW(scores.add(std::vector<float>{1, 1, 1}, std::vector<int32_t>{3}), Error);
  EXPECT_EQ(MultiLabelScores(3).result().mean_ap, 0);
}

}  // namespace
}  // namespace vitrail
