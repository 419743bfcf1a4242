// Cases put together as points, and points set against each other: medians, speed-ups, the batch to take.
#include "measure/study/points.h"

#include <gtest/gtest.h>

#include <cmath>

#include "study_made.h"

namespace vitrail {
namespace {

TEST(StudyPoints, RepetitionsBecomeMedians) {
  std::vector<CaseResult> results = {made_result(made_case(2, 8, 1), 0.4, 0.1),
                                     made_result(made_case(1, 16), 1.0),
                                     made_result(made_case(2, 8, 2), 0.2, 0.1),
                                     made_result(made_case(2, 8, 3), 0.8, 0.1),
                                     {},
                                     {}};
  results[4] = {.which = made_case(2, 8, 4), .error = "first"};
  results[5] = {.which = made_case(2, 8, 5), .error = "last"};
  results[0].sent_bytes = 10, results[0].memory_bytes = 100, results[2].memory_bytes = 300;
  results[0].ranks[1].compute_s = 0.1, results[0].ranks[1].hidden_s = 0.06;
  results[0].gpus = {{.id = 0, .temperature = 50}, {.id = 1, .temperature = 61}};
  results[2].gpus = {{.id = 0, .temperature = 55}};
  const std::vector<StudyPoint> points = points_of(results, StudyConfig(), 4);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[1].which.ranks, 1) << "points come in the order of their cases";
  const StudyPoint& p = points[0];
  EXPECT_EQ(p.failed, 2u);
  EXPECT_EQ(p.error, "last");
  EXPECT_EQ(p.which.repetition, 1);
  EXPECT_EQ(p.update_s.count, 3u);
  EXPECT_DOUBLE_EQ(p.update_s.median, 0.4);
  EXPECT_DOUBLE_EQ(p.images_per_s.median, 40);
  EXPECT_DOUBLE_EQ(p.images_per_s.max, 80);
  // Means of the ranks are 0.2, 0.1 and 0.7 s of compute; the first run's second rank computed half of its
  // time.
  EXPECT_DOUBLE_EQ(p.times.compute_s, 0.2);
  EXPECT_DOUBLE_EQ(p.times.exposed_s, 0.1);
  EXPECT_DOUBLE_EQ(p.times.imbalance_s, 0.05);
  EXPECT_DOUBLE_EQ(p.times.hidden_s, 0);
  EXPECT_NEAR(p.exposed_share(), 1.0 / 3, 1e-12);
  ASSERT_EQ(p.loads.size(), 2u);
  EXPECT_DOUBLE_EQ(p.loads[0], 0.75);
  EXPECT_DOUBLE_EQ(p.loads[1], 0.5);
  EXPECT_EQ(p.sent_bytes, 10);
  EXPECT_EQ(p.memory_bytes, 200);
  EXPECT_EQ(p.temperature, 61);
  EXPECT_EQ(StudyPoint().exposed_share(), 0);
  EXPECT_FALSE(StudyPoint().done());
}

TEST(StudyPoints, TrainingRunsHaveMeansOfTheirEpochs) {
  CaseResult a = made_result(made_case(2, 8, 1), 0.5), b = made_result(made_case(2, 8, 2), 0.5);
  a.epochs = {{1, 10, 4, 3, 0.2}};
  b.epochs = {{1, 20, 2, 1, 0.4}, {2, 30, 1, 0.5, 0.6}};
  const StudyPoint p = points_of({a, b}, StudyConfig(), 4)[0];
  ASSERT_EQ(p.epochs.size(), 2u);
  EXPECT_EQ(p.epochs[1].epoch, 2);
  EXPECT_DOUBLE_EQ(p.epochs[0].seconds, 15);
  EXPECT_DOUBLE_EQ(p.epochs[0].train_loss, 3);
  EXPECT_DOUBLE_EQ(p.epochs[0].eval_loss, 2);
  EXPECT_NEAR(p.epochs[0].top1, 0.3, 1e-12);
  EXPECT_DOUBLE_EQ(p.epochs[1].seconds, 30);
  // A run's epoch takes the mean of its epochs, and its accuracy is the last.
  EXPECT_DOUBLE_EQ(p.epoch_s.min, 10);
  EXPECT_DOUBLE_EQ(p.epoch_s.max, 25);
  EXPECT_DOUBLE_EQ(p.top1.min, 0.2);
  EXPECT_DOUBLE_EQ(p.top1.max, 0.6);
}

TEST(StudyPoints, CoresAreSharedOnlyByRanksOfThisHostsProcessor) {
  struct Row {
    const char *transport, *device;
    int64_t ranks, threads, namespaces;
    bool over;
  };
  const Row rows[] = {{"threads", "cpu", 4, 1, 0, false}, {"threads", "cpu", 5, 1, 0, true},
                      {"threads", "cpu", 2, 2, 0, false}, {"mpi", "cpu", 2, 3, 0, true},
                      {"threads", "cpu", 4, 0, 0, false}, {"threads", "cpu", 5, 0, 0, true},
                      {"nodes", "cpu", 5, 1, 0, false},   {"nodes", "cpu", 5, 1, 2, true},
                      {"threads", "cuda", 5, 1, 0, false}};
  for (const Row& row : rows) {
    StudyCase one = made_case(row.ranks, 8);
    one.transport = row.transport, one.device = row.device;
    StudyConfig config;
    config.threads = row.threads, config.namespaces = row.namespaces;
    EXPECT_EQ(points_of({made_result(one, 1)}, config, 4)[0].oversubscribed, row.over)
        << row.transport << " " << row.ranks << " x " << row.threads;
  }
}

StudyConfig curve_config() {
  StudyConfig config;
  config.models = {"vit"}, config.ranks = {"1", "2", "4"}, config.batches = {"16"}, config.images = 1600;
  return config;
}

TEST(StudyCurves, StrongScalingHoldsTheWorkOfAnEpoch) {
  std::vector<CaseResult> results = {made_result(made_case(4, 4), 0.5), made_result(made_case(2, 8), 0.8),
                                     made_result(made_case(2, 8, 2), 1.0), made_result(made_case(2, 16), 9),
                                     made_result(made_case(4, 4, 2), 0.5)};
  const std::vector<StudyPoint> points = points_of(results, curve_config(), 4);
  const std::vector<Curve> curves = curves_of(points, curve_config());
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_EQ(curves[0].title(), "strong, fixed batch 16, threads");
  ASSERT_EQ(curves[0].rows.size(), 2u) << "those of 16 images an update";
  const CurveRow &two = curves[0].rows[0], &four = curves[0].rows[1];
  EXPECT_DOUBLE_EQ(two.seconds, 90);  // 100 updates
  EXPECT_DOUBLE_EQ(two.low_s, 80);
  EXPECT_DOUBLE_EQ(two.high_s, 100);
  EXPECT_DOUBLE_EQ(two.speedup, 2) << "without one rank the fewest count as ideal";
  EXPECT_DOUBLE_EQ(two.efficiency, 1);
  EXPECT_DOUBLE_EQ(four.speedup, 3.6);
  EXPECT_DOUBLE_EQ(four.efficiency, 0.9);
  EXPECT_FALSE(curves[0].amdahl) << "there is no time of one rank";
  StudyConfig each = curve_config();
  each.strong = StrongScaling::kPerRank;
  const std::vector<Curve> per_rank = curves_of(points, each);
  ASSERT_EQ(per_rank.size(), 1u);
  ASSERT_EQ(per_rank[0].rows.size(), 1u);
  EXPECT_DOUBLE_EQ(per_rank[0].rows[0].seconds, 50 * 9);
  EXPECT_EQ(per_rank[0].title(), "strong, fixed batch a rank 16, threads");
}

TEST(StudyCurves, WeakScalingTakesAShareOfTheImages) {
  StudyConfig config = curve_config();
  config.strong = StrongScaling::kNone, config.weak = true;
  std::vector<CaseResult> results = {made_result(made_case(1, 16), 1), made_result(made_case(4, 16), 1.25)};
  std::vector<StudyPoint> points = points_of(results, config, 8);
  const std::vector<Curve> curves = curves_of(points, config);
  ASSERT_EQ(curves.size(), 1u);
  ASSERT_EQ(curves[0].rows.size(), 2u);
  EXPECT_DOUBLE_EQ(curves[0].rows[0].seconds, 25) << "a quarter of 100 updates";
  EXPECT_DOUBLE_EQ(curves[0].rows[1].seconds, 31.25);
  EXPECT_DOUBLE_EQ(curves[0].rows[1].speedup, 3.2);
  EXPECT_DOUBLE_EQ(curves[0].rows[1].efficiency, 0.8);
  ASSERT_TRUE(curves[0].gustafson && !curves[0].amdahl);
  EXPECT_NEAR(curves[0].gustafson->serial_share, 0.8 / 3, 1e-12);  // s + 4 (1 - s) = 3.2
  points.pop_back();
  EXPECT_FALSE(curves_of(points, config)[0].gustafson);
  // Training runs on a share of the data: the point with that share, and the epoch that was measured.
  for (CaseResult& r : results) {
    r.which.kind = CaseKind::kTrain, r.which.fraction = r.which.ranks == 1 ? 0.25 : 1;
    r.epochs = {{1, 7, 1, 1, 0.5}, {2, 9, 1, 1, 0.5}};
  }
  CaseResult whole = results[0];
  whole.which.fraction = 1;
  results.push_back(whole);
  config.kind = StudyKind::kTrain;
  points = points_of(results, config, 8);
  const std::vector<Curve> trained = curves_of(points, config);
  ASSERT_EQ(trained[0].rows.size(), 2u);
  EXPECT_EQ(trained[0].rows[0].point->which.fraction, 0.25);
  EXPECT_DOUBLE_EQ(trained[0].rows[0].seconds, 8);
  EXPECT_DOUBLE_EQ(trained[0].rows[0].high_s, 8);
}

// Predicted are the updates; their epochs and speed-ups follow, from no measured time.
TEST(StudyCurves, PredictedTimesFollowFromUpdatesAlone) {
  StudyConfig config = curve_config();
  config.weak = true;
  std::vector<CaseResult> results = {made_result(made_case(1, 16), 1), made_result(made_case(4, 4), 0.5),
                                     made_result(made_case(4, 16), 1.25)};
  std::vector<StudyPoint> points = points_of(results, config, 8);
  EXPECT_TRUE(std::isnan(points[0].predicted_error()));
  points[0].predicted_s = 0.75, points[1].predicted_s = 0.25, points[2].predicted_s = 1;
  EXPECT_DOUBLE_EQ(points[1].predicted_error(), -0.5);
  const std::vector<Curve> curves = curves_of(points, config);
  ASSERT_EQ(curves.size(), 2u);
  const CurveRow &strong = curves[0].rows.at(1), &weak = curves[1].rows.at(1);
  EXPECT_DOUBLE_EQ(strong.predicted_s, 25) << "100 updates";
  EXPECT_DOUBLE_EQ(strong.predicted_speedup, 3);
  EXPECT_DOUBLE_EQ(strong.predicted_efficiency, 0.75);
  EXPECT_DOUBLE_EQ(weak.predicted_s, 25) << "25 of 64 images";
  EXPECT_DOUBLE_EQ(weak.predicted_speedup, 3);
  EXPECT_DOUBLE_EQ(weak.speedup, 3.2);
  // An epoch of a training run has the updates that it counted, whatever else its seconds hold.
  results[0].epochs = {{1, 7, 1, 1, 0.5, 10}}, results[1].epochs = {{1, 9, 1, 1, 0.5, 10}};
  points = points_of(results, config, 8);
  points[0].predicted_s = 0.75, points[1].predicted_s = 0.25;
  const Curve trained = curves_of(points, config)[0];
  EXPECT_DOUBLE_EQ(trained.rows.at(0).predicted_s, 7.5);
  EXPECT_DOUBLE_EQ(trained.rows.at(1).predicted_s, 2.5);
  EXPECT_DOUBLE_EQ(trained.rows.at(0).seconds, 7);
}

TEST(StudyCurves, MessagesAreGroupedByTransportAndRanks) {
  std::vector<CaseResult> results = {made_message(2, 1, 0.003), made_message(2, 3, 0.007),
                                     made_message(4, 1, 0.01), made_result(made_case(2, 8), 1)};
  results.push_back({.which = made_message(4, 2, 0).which, .error = "late"});
  const std::vector<StudyPoint> points = points_of(results, StudyConfig(), 8);
  const std::vector<MessageCurve> curves = message_curves_of(points);
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[0].ranks, 2);
  ASSERT_EQ(curves[0].points.size(), 2u);
  EXPECT_NEAR(curves[0].fit->alpha_s, 0.001, 1e-12);
  EXPECT_NEAR(curves[0].fit->beta_s_per_byte, 2e-9, 1e-18);
  EXPECT_EQ(curves[1].points.size(), 1u);
  EXPECT_FALSE(curves[1].fit);
}

StudyPoint speed_point(int64_t batch, double speed, double top1 = -1, int64_t ranks = 2) {
  StudyPoint p{.which = made_case(ranks, batch)};
  p.update_s = {.count = 1, .median = static_cast<double>(p.which.global_batch()) / speed};
  p.images_per_s = {.count = 1, .median = speed};
  p.times = {.compute_s = 3, .exposed_s = 1};
  p.memory_bytes = 2048;
  if (top1 >= 0) p.top1 = {.count = 1, .median = top1};
  return p;
}

TEST(StudyAdvice, TheFewestImagesThatLoseLittle) {
  const auto batch = [](const std::vector<StudyPoint>& points) { return recommended_batch(points).batch; };
  EXPECT_EQ(batch({speed_point(32, 100), speed_point(16, 95), speed_point(8, 94)}), 32) << "16 a rank, twice";
  EXPECT_EQ(batch({speed_point(32, 100), speed_point(16, 94.9)}), 64);
  EXPECT_EQ(batch({speed_point(32, 100, 0.8), speed_point(16, 99, 0.79), speed_point(8, 99, 0.78)}), 32);
  // Where the fast ones are inaccurate, accuracy decides.
  EXPECT_EQ(batch({speed_point(32, 100, 0.5), speed_point(8, 50, 0.8), speed_point(16, 50, 0.8)}), 16);
  EXPECT_EQ(batch({}), 0);
  StudyPoint other = speed_point(4, 1000), part = speed_point(2, 1000), few = speed_point(1, 1, -1, 1);
  other.which.model = "another", part.which.fraction = 0.5;
  EXPECT_EQ(batch({speed_point(32, 100), other, part, few}), 64)
      << "the first model, all data, the most ranks";
  StudyPoint quick = speed_point(16, 100);
  quick.which.transport = "mpi";
  EXPECT_NE(recommended_batch({speed_point(16, 96), quick}).why.find("(mpi)"), std::string::npos);
}

TEST(StudyAdvice, SaysWhy) {
  EXPECT_EQ(
      recommended_batch({speed_point(16, 100, 0.8), speed_point(32, 102, 0.805)}).why,
      "32 images an update by 2 ranks (threads): the fewest that lose no more than 5 % of the best speed; "
      "100 images a second of 102, 25.0 % of an update is exposed communication, 2.00 KiB a rank; "
      "accuracy 80.00 %, the best 80.50 %");
  const Advice slow = recommended_batch({speed_point(32, 100, 0.5), speed_point(8, 50, 0.8)});
  EXPECT_NE(slow.why.find("the fewest that lose no more than a point of the best accuracy"),
            std::string::npos);
  EXPECT_EQ(slow.ranks, 2);
  StudyPoint blank = speed_point(16, 100);
  blank.memory_bytes = kUnknown;
  EXPECT_NE(recommended_batch({blank}).why.find("communication, 0 B a rank"), std::string::npos);
}

}  // namespace
}  // namespace vitrail
