// What is timed how often, and the figures made of it; nothing here depends on how long anything takes.
#include "measure/timing.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "measure/dist_bench.h"

namespace vitrail {
namespace {

TEST(TimeCalls, AreMadeAfterTheWarmUpAndAtLeastThreeTimes) {
  int calls = 0, before = 0, told = 0;
  const auto run = [&] { ++calls; };
  const TimingHooks hooks{.warm = [&] { before = calls; }, .measured = [&] { ++told; }};
  EXPECT_EQ(time_calls({.warmup = 2, .seconds = 0}, run, hooks).size(), 3u);
  EXPECT_EQ(before, 2);
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(told, 3);
  EXPECT_EQ(time_calls({.warmup = 0, .seconds = 1e9, .runs = 4}, run).size(), 4u);
}

// Of n bytes that p ranks sum, each sends and receives 2 (p - 1) / p.
TEST(DistBench, TellsWhatTheBusCarries) {
  DistBench bench(DType::kF32, 4096);
  bench.add(std::make_unique<SummingRanks>(4, DType::kF32, 4096));
  bench.round();
  bench.forget();
  for (int i = 0; i < 3; ++i) bench.round();
  const nlohmann::ordered_json json = bench.to_json();
  EXPECT_EQ(json["runs"], 3);
  EXPECT_EQ(json["threads"]["ranks"], 4);
  const double sum = json["threads"]["gb_per_s"], bus = json["threads"]["bus_gb_per_s"];
  EXPECT_NEAR(bus / sum, 1.5, 1e-12);
}

}  // namespace
}  // namespace vitrail
