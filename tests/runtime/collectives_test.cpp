// The runners of collectives on a synthetic device: what each enqueues on which stream, in which order, when
// the host waits, and what is counted. The device's times are the test's.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "backend/cpu/kernels.h"
#include "graph/builder.h"
#include "ops/elementwise.h"
#include "runtime/collective_runners.h"
#include "runtime/executor.h"
#include "thrown.h"
#include "told_device.h"

namespace vitrail {
namespace {

// One rank on that device, with two collectives: node 3 is run at once, node 5 is started.
struct Stage {
  explicit Stage(bool apart) : rank(cpu_device(1), std::make_unique<ToldDevice>(scene, apart)) {
    rank.ranks = &ranks;
  }
  void place(CollectiveRunner& runner) {
    runner.add(3, {&now, view, view, 1});
    runner.add(5, {&started, view, view, 2});
    runner.prepare();
  }

  Scene scene;
  MeshCommunicators ranks{std::make_unique<ToldWorld>(scene), Mesh{}};
  RankContext rank;
  const CollectiveOp now{{.kind = CollectiveKind::kAllReduce, .axes = Axis::kData, .counts = {4}}},
      started{{.kind = CollectiveKind::kAllGather, .axes = Axis::kTensor, .counts = {4}, .started = true}};
  std::vector<float> memory{1, 2, 3, 4};
  const TensorView view{memory.data(), {DType::kF32, {{'D', 4}}}};
};

// Returns the part of the times that belongs to a kind.
const CollectiveTimes::Kind& of_kind(const CollectiveTimes& times, CollectiveKind kind) {
  return times.kinds[static_cast<size_t>(kind)];
}

// In the first run the host waits around every collective; later it enqueues and goes on.
TEST(DeviceCollectives, MeetInTheFirstRunAlone) {
  Stage stage(true);
  stage.ranks.use(std::make_unique<ToldTransport>(stage.scene));
  const auto runner = device_collectives(stage.rank);
  stage.place(*runner);
  runner->begin_run(true);
  EXPECT_EQ(stage.scene.taken(), (Lines{"check"})) << "one group for both";
  const Lines work = {"programs record 0",  "beside wait 0",  "beside stamp 0",
                      "enqueue all-reduce", "beside stamp 1", "beside record 1"};
  const Lines join = {"programs stamp 2", "programs wait 1", "programs stamp 3"};
  const Lines meet = {"finish", "barrier"};
  const auto in_order = [](const std::vector<Lines>& parts) {
    Lines all;
    for (const Lines& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  stage.scene.unreached = 2;
  runner->run(3);
  const Lines asked = {"check", "check"};
  EXPECT_EQ(stage.scene.taken(), in_order({meet, work, asked, meet, {"check"}, join}));
  runner->end_run();
  runner->run(3);
  EXPECT_EQ(stage.scene.taken(), in_order({work, join})) << "the first run is over";
  runner->begin_run(false);
  stage.scene.taken();
  runner->run(3);
  EXPECT_EQ(stage.scene.taken(), in_order({work, join}));
}

TEST(DeviceCollectives, WhatWasStartedIsJoinedWhereItIsWaitedFor) {
  Stage stage(true);
  stage.ranks.use(std::make_unique<ToldTransport>(stage.scene));
  const auto runner = device_collectives(stage.rank);
  stage.place(*runner);
  runner->begin_run(false);
  stage.scene.taken();
  runner->run(5);
  EXPECT_EQ(stage.scene.taken(), (Lines{"programs record 2", "beside wait 2", "beside stamp 4",
                                        "enqueue all-gather", "beside stamp 5", "beside record 3"}));
  runner->wait(2);
  EXPECT_EQ(stage.scene.taken(), (Lines{"programs stamp 6", "programs wait 3", "programs stamp 7"}));
  EXPECT_EQ(thrown_by([&] { runner->wait(2); }).substr(0, 8), "internal");
  EXPECT_EQ(stage.scene.taken(), Lines{});
}

TEST(DeviceCollectives, SilenceEndsInAnErrorThatNamesTheCollective) {
  Stage stage(true);
  stage.ranks.use(std::make_unique<ToldTransport>(stage.scene));
  const auto runner = device_collectives(stage.rank);
  stage.place(*runner);
  runner->begin_run(true);
  stage.scene.unreached = 3;
  ASSERT_EQ(thrown_by([&] { runner->run(3); }), "nothing") << "an answer within the deadline";
  stage.scene.unreached = -1, stage.scene.deadline_s = 0;
  stage.scene.taken();
  EXPECT_EQ(thrown_by([&] { runner->run(3); }),
            "deadline: all-reduce along dp: no answer within 0 s | NCCL_DEBUG=INFO shows where it waits");
  EXPECT_EQ(stage.scene.taken().back(), "abort: all-reduce along dp: no answer within 0 s");
}

// Flights are 0.25 s and 1.25 s by the device's clock, stalls 0.75 s and 1.75 s.
TEST(DeviceCollectives, CountTheTimesOfEveryRun) {
  Stage stage(true);
  stage.ranks.use(std::make_unique<ToldTransport>(stage.scene));
  const auto runner = device_collectives(stage.rank);
  stage.place(*runner);
  const auto run = [&](bool timed) {
    stage.scene.timed = timed;
    runner->begin_run(false);
    runner->run(3);
    runner->run(5);
    runner->wait(2);
    runner->end_run();
  };
  run(true);
  for (int asked = 0; asked < 2; ++asked) {
    const CollectiveTimes& times = runner->times();
    EXPECT_EQ(times.flight_s, 1.5) << asked;
    EXPECT_EQ(times.exposed_s, 2.5) << asked;
    EXPECT_EQ(of_kind(times, CollectiveKind::kAllReduce).seconds, 0.25) << asked;
    EXPECT_EQ(of_kind(times, CollectiveKind::kAllGather).seconds, 1.25) << asked;
  }
  run(false);
  EXPECT_EQ(runner->times().flight_s, 1.5) << "not over yet";
  run(false);
  run(true);
  EXPECT_EQ(runner->times().flight_s, 4 * 1.5) << "runs that were not over count like the next that is";
  EXPECT_EQ(runner->times().exposed_s, 4 * 2.5);
  EXPECT_EQ(of_kind(runner->times(), CollectiveKind::kAllGather).seconds, 4 * 1.25);
  EXPECT_EQ(of_kind(runner->times(), CollectiveKind::kAllReduce).count, 4);
  // Each sends 2 (p - 1) / p of 16 bytes in an all-reduce among two, half of that in an all-gather.
  EXPECT_EQ(of_kind(runner->times(), CollectiveKind::kAllReduce).bytes, 4 * 16);
  EXPECT_EQ(of_kind(runner->times(), CollectiveKind::kAllGather).bytes, 4 * 8);
}

TEST(StagedCollectives, PassThroughTheHostsMemory) {
  Stage stage(true);
  const auto runner = staged_collectives(stage.rank);
  stage.place(*runner);
  runner->begin_run(true);
  runner->run(3);
  EXPECT_EQ(stage.scene.taken(),
            (Lines{"programs record 0", "beside wait 0", "beside download 16", "beside record 1",
                   "programs stamp 0", "synchronize 1", "all-reduce", "beside upload 16", "beside record 2",
                   "programs wait 2", "programs stamp 1"}));
  runner->run(5);
  EXPECT_EQ(stage.scene.taken(),
            (Lines{"programs record 3", "beside wait 3", "beside download 16", "beside record 4"}));
  runner->poll();
  EXPECT_EQ(stage.scene.taken(), (Lines{"all-gather"})) << "it has arrived, and is not over";
  runner->wait(2);
  EXPECT_EQ(stage.scene.taken(), (Lines{"programs stamp 2", "beside upload 16", "beside record 5",
                                        "programs wait 5", "programs stamp 3"}));
  EXPECT_EQ(thrown_by([&] { runner->wait(2); }).substr(0, 8), "internal");
  EXPECT_EQ(stage.memory, (std::vector<float>{1, 2, 3, 4})) << "what one rank gathers is its own";
}

// Runs one collective after another, or both at once, and returns the times.
CollectiveTimes times_of_two(CollectiveRunner& runner, bool at_once) {
  runner.begin_run(false);
  if (at_once) runner.run(5);
  runner.run(3);
  if (!at_once) runner.run(5);
  runner.wait(2);
  runner.end_run();
  return runner.times();
}

// A flight lasts from when the first is on its way until none is.
void expect_flights(CollectiveRunner& runner) {
  const CollectiveTimes one = times_of_two(runner, false);
  const double summed = of_kind(one, CollectiveKind::kAllReduce).seconds;
  const double gathered = of_kind(one, CollectiveKind::kAllGather).seconds;
  EXPECT_GE(summed, 0.001);
  EXPECT_GE(gathered, 0.001);
  EXPECT_DOUBLE_EQ(one.flight_s, summed + gathered);
  const CollectiveTimes two = times_of_two(runner, true);
  const double again = of_kind(two, CollectiveKind::kAllGather).seconds - gathered;
  EXPECT_NEAR(two.flight_s - one.flight_s, again, 1e-9) << "the sum was made within the other's flight";
  EXPECT_EQ(of_kind(two, CollectiveKind::kAllReduce).count, 2);
  EXPECT_EQ(of_kind(two, CollectiveKind::kAllGather).count, 2);
}

TEST(StagedCollectives, CountFlightsByTheHostsClockAndStallsByTheDevices) {
  Stage stage(true);
  const auto runner = staged_collectives(stage.rank);
  stage.place(*runner);
  expect_flights(*runner);
  EXPECT_EQ(runner->times().exposed_s, 2 * (0.25 + 0.75));
  stage.scene.timed = false;
  times_of_two(*runner, false);
  stage.scene.timed = true;
  times_of_two(*runner, false);
  EXPECT_EQ(runner->times().exposed_s, 4 * (0.25 + 0.75)) << "not over: counts like the next";
}

// The one that is over last need not be the one that was first on its way.
TEST(StagedCollectives, AFlightBeginsWithTheFirstOfThoseOnTheirWay) {
  Stage stage(true);
  const CollectiveOp later{
      {.kind = CollectiveKind::kReduceScatter, .axes = Axis::kTensor, .counts = {4}, .started = true}};
  const auto runner = staged_collectives(stage.rank);
  runner->add(5, {&stage.started, stage.view, stage.view, 2});
  runner->add(7, {&later, stage.view, stage.view, 3});
  runner->prepare();
  runner->begin_run(false);
  runner->run(5);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  runner->run(7);
  runner->wait(2);
  runner->wait(3);
  runner->end_run();
  const CollectiveTimes& times = runner->times();
  EXPECT_GE(times.flight_s, of_kind(times, CollectiveKind::kReduceScatter).seconds + 0.002);
}

TEST(HostCollectives, CountFlightsAndWhatWasExposed) {
  Stage stage(false);
  const auto runner = host_collectives(stage.rank);
  stage.place(*runner);
  expect_flights(*runner);
  EXPECT_GE(runner->times().exposed_s, 0.004) << "four waits";
  EXPECT_EQ(thrown_by([&] { runner->wait(2); }).substr(0, 8), "internal");
}

// What an executor says of its runs: the first is that in which kernels are loaded.
TEST(ExecutorCollectives, TheFirstRunIsTold) {
  for (const bool each : {false, true}) {
    Stage stage(false);
    stage.ranks.use(std::make_unique<ToldTransport>(stage.scene));
    Builder b;
    const ValueId x = b.input("x", stage.view.desc());
    const ValueId sum = b.add<CollectiveOp>({b.add<TanhOp>({x}, "tanh")}, "sum", stage.now.form());
    b.output("y", b.add<TanhOp>({sum}, "last"));
    const ExecutionPlan plan = plan_execution(b.finish(), cpu_backend(), stage.rank.device);
    const PersistentStore nothing(plan, stage.rank);
    Executor executor(plan, nothing, stage.rank);
    const auto barriers = [&] {
      const Lines lines = stage.scene.taken();
      return std::count(lines.begin(), lines.end(), "barrier");
    };
    const auto run_each = [&] { executor.run_each([](size_t) {}, [](size_t) {}); };
    if (each) {
      run_each();
      EXPECT_EQ(barriers(), 2);
    }
    executor.run();
    EXPECT_EQ(barriers(), 2) << "no run before it was a whole one";
    executor.run();
    EXPECT_EQ(barriers(), 0);
    run_each();
    EXPECT_EQ(barriers(), 0);
  }
}

}  // namespace
}  // namespace vitrail
