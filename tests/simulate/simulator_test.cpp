// Lanes, stages and failures in simulated time, on steps small enough to count by hand.
#include "simulate/simulator.h"

#include <gtest/gtest.h>

#include "simulate/failures.h"

namespace vitrail {
namespace {

StepTask compute(double seconds) {
  return {.seconds = seconds, .name = "compute"};
}
StepTask all_reduce(double bytes, bool started, int slot) {
  return {.kind = StepTask::Kind::kCollective,
          .name = "sum",
          .exchange = CollectiveKind::kAllReduce,
          .axes = Axis::kData,
          .bytes = bytes,
          .started = started,
          .slot = slot};
}
StepTask wait_for(int slot) {
  return {.kind = StepTask::Kind::kWait, .name = "wait", .slot = slot};
}
StepTask pair(CollectiveKind kind, double bytes, int peer, bool started, int slot) {
  return {.kind = StepTask::Kind::kCollective,
          .name = "pair",
          .exchange = kind,
          .axes = Axis::kPipeline,
          .bytes = bytes,
          .started = started,
          .peer = peer,
          .slot = slot};
}

// An all-reduce of n bytes over two devices takes n seconds: each sends n / 2 twice, at one byte a second.
const std::vector<Tier> kTwo = {{"line", Topology::kSwitch, 2, 1, 0, 0}};

SimulatedTimes run(const TaskList& tasks, SimulationOptions options = {}) {
  const StepTasks step{{{tasks, 1}}};
  const SimulatedStep result = simulate_step({{Mesh{{2, 1, 1, 1}, 1}, &step}}, kTwo, options);
  EXPECT_DOUBLE_EQ(result.step_s, result.ranks[0].step_s);
  EXPECT_NEAR(result.step_s,
              result.ranks[0].compute_s + result.ranks[0].exposed_s + result.ranks[0].waiting_s, 1e-12);
  return result.ranks[0];
}

// In each of three rounds four messages of a byte pass: side by side through a switch, one after another on a
// bus.
TEST(CollectiveCost, MessagesOfABusShareIt) {
  const auto seconds = [](Topology topology) {
    const std::vector<Tier> tiers = {{"line", topology, 4, 1, 0, 0}};
    const GroupPlace group = place_group(tiers, Mesh{{4, 1, 1, 1}, 0}, Axis::kData);
    return collective_cost(tiers, group, CollectiveKind::kAllGather, 4, Algorithm::kRing).seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(Topology::kSwitch), 3);
  EXPECT_DOUBLE_EQ(seconds(Topology::kBus), 12);
}

TEST(CollectiveCost, RanksANodeApartAreInNoNodeTogether) {
  const std::vector<Tier> tiers = {{"node", Topology::kSwitch, 4, 1, 0, 0},
                                   {"net", Topology::kSwitch, 8, 1, 0, 0}};
  const Mesh mesh{{8, 1, 1, 1}, 0};
  EXPECT_EQ(place_pair(tiers, mesh, 0, 3).within, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(place_pair(tiers, mesh, 0, 4).within, (std::vector<int64_t>{1, 2}));
  // Neighbours, and yet in two nodes.
  EXPECT_EQ(place_pair(tiers, mesh, 3, 4).within, (std::vector<int64_t>{1, 2}));
}

TEST(Simulator, HidesAStartedCollectiveBehindCompute) {
  const SimulatedTimes blocking = run({compute(3), all_reduce(2, false, 0), compute(5)});
  EXPECT_DOUBLE_EQ(blocking.step_s, 10);
  EXPECT_DOUBLE_EQ(blocking.exposed_s, 2);
  const SimulatedTimes hidden = run({compute(3), all_reduce(2, true, 0), compute(5), wait_for(0)});
  EXPECT_DOUBLE_EQ(hidden.step_s, 8);
  EXPECT_DOUBLE_EQ(hidden.exposed_s, 0);
  EXPECT_DOUBLE_EQ(hidden.hidden_s(), 2);
}

TEST(Simulator, RunsCollectivesOneAfterAnother) {
  const SimulatedTimes times =
      run({compute(1), all_reduce(4, true, 0), all_reduce(4, true, 1), compute(5), wait_for(0), wait_for(1)});
  EXPECT_DOUBLE_EQ(times.step_s, 9);
  EXPECT_DOUBLE_EQ(times.exposed_s, 3);
  EXPECT_DOUBLE_EQ(times.flight_s, 8);
}

TEST(Simulator, ComputesAtThePaceOfTheSlowest) {
  const SimulatedTimes times =
      run({compute(4), all_reduce(2, false, 0)}, {.slowest = 1.5, .collective_s = 0.25});
  EXPECT_DOUBLE_EQ(times.step_s, 8.25);
}

TEST(Simulator, TakesTheRanksOwnCoresWhereTheyMoveTheBytes) {
  const std::vector<Tier> tiers = {{"line", Topology::kSwitch, 2, 1, 0, 0.5}};
  const StepTasks step{{{{all_reduce(2, true, 0), compute(5), wait_for(0)}, 1}}};
  const SimulatedStep result = simulate_step({{Mesh{{2, 1, 1, 1}, 1}, &step}}, tiers);
  EXPECT_DOUBLE_EQ(result.step_s, 6);  // a second of the cores for the two bytes sent
}

TEST(Simulator, RepeatsMicroBatches) {
  const StepTasks step{{{{compute(2)}, 3}, {{all_reduce(1, false, 0)}, 1}, {{compute(7)}, 0}}};
  const SimulatedStep result = simulate_step({{Mesh{{2, 1, 1, 1}, 0}, &step}}, kTwo);
  EXPECT_DOUBLE_EQ(result.step_s, 7);
  EXPECT_DOUBLE_EQ(step.compute_s(), 6);
}

// Two ranks of unequal speed end a sum together; the quick one waits.
TEST(Simulator, LetsRanksWaitForEachOther) {
  const StepTasks quick{{{{compute(1), all_reduce(2, false, 0)}, 1}}},
      slow{{{{compute(4), all_reduce(2, false, 0)}, 1}}};
  const SimulatedStep result =
      simulate_step({{Mesh{{2, 1, 1, 1}, 0}, &quick}, {Mesh{{2, 1, 1, 1}, 1}, &slow}}, kTwo);
  EXPECT_DOUBLE_EQ(result.step_s, 6);
  EXPECT_DOUBLE_EQ(result.ranks[0].waiting_s, 3);
  EXPECT_DOUBLE_EQ(result.ranks[1].waiting_s, 0);
  EXPECT_DOUBLE_EQ(result.ranks[0].exposed_s, 2);
}

// GPipe of two stages and two micro-batches, forward alone: the second stage waits for the first.
TEST(Simulator, PassesMicroBatchesThroughStages) {
  const StepTasks first{{{{compute(2), pair(CollectiveKind::kSend, 1, 1, true, 0), compute(2), wait_for(0),
                           pair(CollectiveKind::kSend, 1, 1, true, 1), wait_for(1)},
                          1}}};
  const StepTasks second{{{{pair(CollectiveKind::kReceive, 1, 0, false, 0), compute(2),
                            pair(CollectiveKind::kReceive, 1, 0, false, 1), compute(2)},
                           1}}};
  const SimulatedStep result =
      simulate_step({{Mesh{{1, 1, 1, 2}, 0}, &first}, {Mesh{{1, 1, 1, 2}, 1}, &second}}, kTwo);
  // The first message passes from 2 to 3, the second from 5 to 6, when the receiver has taken it up.
  EXPECT_DOUBLE_EQ(result.step_s, 8);
  EXPECT_DOUBLE_EQ(result.ranks[1].waiting_s, 2);
  EXPECT_DOUBLE_EQ(result.ranks[1].exposed_s, 2);
}

TEST(Failures, BestIntervalLiesWhereShareIsLargest) {
  const FailureModel model{.mtbf_s = 10000, .checkpoint_s = 50, .restart_s = 100};
  EXPECT_DOUBLE_EQ(young_interval(model), 1000);
  const double best = best_interval(model);
  for (const double factor : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0})
    EXPECT_LT(effective_share(model, best * factor), effective_share(model, best)) << factor;
  EXPECT_NEAR(daly_interval(model), best, 0.01 * best);
  EXPECT_NEAR(effective_share(model, best), 0.895, 0.005);
  // Where nothing fails, checkpoints alone cost.
  EXPECT_DOUBLE_EQ(effective_share({.mtbf_s = 0, .checkpoint_s = 10}, 90), 0.9);
  EXPECT_NEAR(effective_share({.mtbf_s = 1e12, .checkpoint_s = 10}, 90), 0.9, 1e-6);
}

// Daly's series holds for checkpoints shorter than twice the time between failures.
TEST(Failures, WhereACheckpointTakesTwiceThatLongTheIntervalIsTheTimeBetweenThem) {
  EXPECT_DOUBLE_EQ(daly_interval({.mtbf_s = 100, .checkpoint_s = 200}), 100);
  EXPECT_LT(daly_interval({.mtbf_s = 100, .checkpoint_s = 199}), 99);
}

TEST(Failures, TheIntervalOfTheJobIsShownWhereItHasOne) {
  const FailureModel model{.mtbf_s = 10000, .checkpoint_s = 50, .restart_s = 100};
  EXPECT_EQ(checkpoint_intervals(model, 0).size(), 3u);
  const std::vector<CheckpointInterval> rows = checkpoint_intervals(model, 600);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3].seconds, 600);
  for (const CheckpointInterval& row : rows)
    EXPECT_DOUBLE_EQ(row.share, effective_share(model, row.seconds)) << row.name;
}

// Failures far more often than checkpoints: the best interval is still found, and leaves nothing.
TEST(Failures, HopelessRatesMakeNoProgress) {
  const FailureModel hopeless{.mtbf_s = 0.075, .checkpoint_s = 549, .restart_s = 300};
  EXPECT_NEAR(best_interval(hopeless), 0.075, 1e-3);  // of τ / e^(τ / M)
  EXPECT_EQ(effective_share(hopeless, best_interval(hopeless)), 0);
  EXPECT_FALSE(makes_progress(hopeless));
  EXPECT_FALSE(makes_progress({.mtbf_s = 60, .checkpoint_s = 549, .restart_s = 0}));
  EXPECT_TRUE(makes_progress({.mtbf_s = 600, .checkpoint_s = 549, .restart_s = 300}));
  EXPECT_TRUE(makes_progress({.mtbf_s = 0, .checkpoint_s = 549}));
}

}  // namespace
}  // namespace vitrail
