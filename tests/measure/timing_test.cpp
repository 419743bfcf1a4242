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

// A group that tells what is started in it; rank 0 says so many times that a round follows.
class ToldGroup : public Communicator {
 public:
  ToldGroup(std::vector<std::string>& told, int rank, int rounds)
      : told_(told), rank_(rank), rounds_(rounds) {}
  int rank() const override { return rank_; }
  int size() const override { return 2; }
  const char* transport() const override { return "told"; }
  std::unique_ptr<Pending> start(const Collective& c) override {
    told_.push_back(to_string(c.kind) + (c.counts.empty() ? "" : " of " + std::to_string(c.counts[0])));
    if (c.kind == Collective::Kind::kBroadcast && rank_ > 0) *static_cast<int32_t*>(c.out) = rounds_-- > 0;
    return std::make_unique<Done>();
  }
  std::unique_ptr<Communicator> split(int, int) override { return nullptr; }
  void abort(const std::string&) override {}

 private:
  class Done : public Pending {
    bool poll() override { return true; }
    void wait() override {}
  };
  std::vector<std::string>& told_;
  int rank_, rounds_;
};

// A sum is timed from when all are ready, so that nobody's delay counts as the group's.
TEST(DistBench, RanksMeetBeforeEverySum) {
  using Told = std::vector<std::string>;
  const Told round = {"broadcast of 1", "barrier", "all-reduce of 10"};
  Told told;
  int summed = 0;
  ToldGroup other(told, 1, 2);
  follow(other, DType::kF64, 10, [&] { ++summed; });
  EXPECT_EQ(summed, 2);
  Told wanted = round;
  wanted.insert(wanted.end(), round.begin(), round.end());
  wanted.emplace_back("broadcast of 1");
  EXPECT_EQ(told, wanted);
  told.clear();
  {
    SummingRanks lead(std::make_unique<ToldGroup>(told, 0, 0), DType::kF64, 10);
    EXPECT_EQ(told, Told{});
    EXPECT_GE(lead.once(), 0);
    EXPECT_EQ(told, round);
    told.clear();
  }
  EXPECT_EQ(told, Told{"broadcast of 1"}) << "lets the others go";
}

}  // namespace
}  // namespace vitrail
