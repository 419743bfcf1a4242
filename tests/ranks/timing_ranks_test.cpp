// Where the time of ranks goes: that the parts add up, that a slow rank shows as imbalance of the others,
// that bytes are those of the plan, and that log and report have it.
#include <gtest/gtest.h>

#include <thread>

#include "train/helpers/tiny_run.h"
#include "train/run_plan.h"
#include "train/step_times.h"

namespace vitrail::testing {
namespace {

TrainConfig timed_config() {
  TrainConfig config = tiny_config(6);
  config.train.batch = 12;
  config.train.log_every = 2;
  return config;
}

constexpr double kSleep = 0.03;

std::vector<Json> lines_of(const std::string& folder, const std::string& kind) {
  std::vector<Json> lines;
  for_each_metrics_line(RunFiles(folder).metrics(), [&](const Json& line) {
    if (metrics_text(line, "kind") == kind) lines.push_back(line);
  });
  return lines;
}

TEST(StepTimes, TheSlowestRankIsWaitedFor) {
  StepTimes times(3);
  // Compute, exposed, data wait, hidden of each rank.
  const std::vector<double> first = {1, 2, 0, 0.5, 2, 0.5, 0.5, 1, 2.5, 0.5, 0, 0};
  const std::vector<double> second = {3, 0.1, 0, 0, 1, 2.1, 0, 0, 1, 2.1, 0, 0};
  times.add(first), times.add(second);
  const TimingStatus taken = times.take(7);
  EXPECT_EQ(taken.step, 7);
  EXPECT_EQ(taken.updates, 2);
  ASSERT_EQ(taken.ranks.size(), 3u);
  EXPECT_DOUBLE_EQ(taken.ranks[0].imbalance_s, 1.5);
  EXPECT_DOUBLE_EQ(taken.ranks[1].imbalance_s, 2);
  EXPECT_DOUBLE_EQ(taken.ranks[2].imbalance_s, 2);
  EXPECT_DOUBLE_EQ(taken.ranks[0].compute_s, 4);
  EXPECT_DOUBLE_EQ(taken.ranks[1].hidden_s, 1);
  EXPECT_DOUBLE_EQ(taken.update_s(), 6.1 / 2);
  EXPECT_EQ(times.take(8).updates, 0);
  EXPECT_EQ(times.total().updates, 2);
}

TEST(StepTimes, PausesAndExchangesCountWhereTheyBelong) {
  StepTimes times(1);
  times.start();
  times.pause();
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  times.resume();
  times.exchanged(0.002);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CollectiveTimes collectives;
  collectives.exposed_s = 0.003, collectives.flight_s = 0.005;
  const StepTimes::Numbers numbers = times.end_update(collectives, 0.004);
  EXPECT_GT(numbers[0], 0.010);
  EXPECT_DOUBLE_EQ(numbers[1], 0.005);
  EXPECT_DOUBLE_EQ(numbers[2], 0.004);
  EXPECT_DOUBLE_EQ(numbers[3], 0.002);
}

TEST(RankTiming, TheLogHoldsEveryRank) {
  const WorkFolder work;
  const TrainConfig config = timed_config();
  train(config, work / "run", {.ranks = 3});
  const std::vector<Json> lines = lines_of(work / "run", "timing");
  ASSERT_EQ(lines.size(), 3u);
  const RunPlan plan(config, std::nullopt, cpu_backend(), cpu_device(1), {0, 3, 3});
  double planned = 0;
  for (const CollectiveRow& row : plan.collectives()) planned += row.bytes;
  for (const Json& line : lines) {
    EXPECT_EQ(line["updates"], 2);
    for (size_t r = 0; r < 3; ++r) {
      for (const char* key : {"compute_s", "exposed_s", "hidden_s", "data_wait_s", "imbalance_s"})
        EXPECT_GE(line[key].at(r).get<double>(), 0) << key;
      EXPECT_GT(line["compute_s"][r].get<double>(), 0);
      EXPECT_GT(line["exposed_s"][r].get<double>(), 0);
      EXPECT_LE(line["imbalance_s"][r].get<double>(), line["exposed_s"][r].get<double>());
    }
    double sent = 0;
    for (const Json& c : line["collectives"]) {
      sent += c["bytes"].get<double>();
      EXPECT_GT(c["count"].get<int64_t>(), 0);
      EXPECT_NEAR(c["bus_bytes_per_s"].get<double>(), c["bytes"].get<double>() / c["seconds"].get<double>(),
                  1);
    }
    EXPECT_EQ(sent, 2 * planned) << "what was counted is what the plan says";
  }
  const std::vector<Json> start = lines_of(work / "run", "start");
  ASSERT_EQ(start.size(), 1u);
  std::vector<std::string> phases;
  for (const Json& phase : start[0]["phases"]) {
    phases.push_back(phase["phase"]);
    EXPECT_EQ(phase["seconds"].size(), 3u);
  }
  EXPECT_EQ(phases,
            (std::vector<std::string>{"data", "plan", "compare", "allocate", "weights", "first update"}));
}

// A collective's bytes are those of the ranks it goes over, which are not all of the mesh.
TEST(RankTiming, BytesOfAMeshAreThoseOfItsAxes) {
  const WorkFolder work;
  TrainConfig config = timed_config();
  config.mesh.tp = 2;
  train(config, work / "run", {.ranks = 4});
  const RunPlan plan(config, std::nullopt, cpu_backend(), cpu_device(1), {0, 4, 4});
  double planned = 0, sent = 0;
  for (const CollectiveRow& row : plan.collectives()) planned += row.bytes;
  const std::vector<Json> lines = lines_of(work / "run", "timing");
  ASSERT_EQ(lines.size(), 3u);
  for (const Json& c : lines[1]["collectives"]) sent += c["bytes"].get<double>();
  EXPECT_GT(sent, 0);
  EXPECT_EQ(sent, 2 * planned);
}

// The first rank sleeps after every update: the others wait for it, and nobody's compute grows but its own.
TEST(RankTiming, ASlowRankShowsAsImbalanceOfTheOthers) {
  const WorkFolder work;
  train(
      timed_config(), work / "run",
      {.step = [](const TrainStatus&) { std::this_thread::sleep_for(std::chrono::duration<double>(kSleep)); },
       .ranks = 3});
  const RankHistory history = read_rank_history(RunFiles(work / "run").metrics());
  ASSERT_TRUE(history.timing);
  const std::vector<RankTime>& ranks = history.timing->ranks;
  const double slept = kSleep * 5;  // the sleep after the last update is in none
  EXPECT_GT(ranks[0].compute_s, slept);
  for (const size_t r : {1, 2}) {
    EXPECT_GT(ranks[r].imbalance_s, 0.5 * slept) << r;
    EXPECT_GT(ranks[r].exposed_s, 0.5 * slept) << r;
    EXPECT_GT(ranks[r].imbalance_s, ranks[0].imbalance_s) << r;
  }
}

// With small buckets the first gradients are on their way while the rest of backward runs.
TEST(RankTiming, WhatTravelsBesideBackwardIsHidden) {
  const WorkFolder work;
  TrainConfig config = timed_config();
  config.mesh.bucket_mb = 0.001;
  train(config, work / "run", {.ranks = 2});
  const RankHistory history = read_rank_history(RunFiles(work / "run").metrics());
  ASSERT_TRUE(history.timing);
  for (const RankTime& rank : history.timing->ranks) {
    EXPECT_GT(rank.hidden_s, 0);
    EXPECT_LT(rank.hidden_s, rank.compute_s);
  }
}

TEST(RankTiming, TheReportDrawsTheRanks) {
  const WorkFolder work;
  train(timed_config(), work / "run", {.ranks = 3});
  const std::string page = read_file(work / "run/report.html", 1 << 22);
  for (const char* part :
       {"id=\"ranks\"", "rank 2: compute", "all_reduce", "first update", "<svg class=\"plot\""})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  train(timed_config(), work / "alone");
  EXPECT_EQ(read_file(work / "alone/report.html", 1 << 22).find("id=\"ranks\""), std::string::npos);
}

TEST(RankTiming, BreakdownTellsIt) {
  const WorkFolder work;
  TrainConfig config = timed_config();
  config.train.breakdown = true;
  const Ran alone = train(config, work / "alone"), many = train(config, work / "many", {.ranks = 2});
  for (const Ran* ran : {&alone, &many})
    for (const char* part : {"start ", "2 updates of ", "compute ", "data wait", "an update"})
      EXPECT_TRUE(ran->noted(part)) << part;
  EXPECT_TRUE(many.noted("all_reduce"));
  EXPECT_EQ(lines_of(work / "alone", "timing").size(), 3u);
  config.train.breakdown = false;
  const Ran quiet = train(config, work / "quiet");
  EXPECT_FALSE(quiet.noted("compute "));
  EXPECT_TRUE(lines_of(work / "quiet", "timing").empty());
  EXPECT_TRUE(lines_of(work / "quiet", "start").empty());
}

// One update is enough for a table; a run that had ended before has none to tell of.
TEST(RankTiming, BreakdownOfOneUpdateAndOfNone) {
  const WorkFolder work;
  TrainConfig config = timed_config();
  config.train.breakdown = true;
  config.train.steps = 1;
  const Ran one = train(config, work / "run");
  EXPECT_TRUE(one.noted("1 update of "));
  EXPECT_TRUE(one.noted("rank  an update"));
  EXPECT_TRUE(one.noted("loading training images took "));
  const Ran none = train(config, work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_TRUE(none.outcome.finished && none.steps.empty());
  EXPECT_FALSE(none.noted("an update"));
  EXPECT_TRUE(none.noted("loading training images took "));
}

}  // namespace
}  // namespace vitrail::testing
