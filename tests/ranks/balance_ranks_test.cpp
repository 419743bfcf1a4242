// Runs whose ranks take other shares of a micro-batch each, against one rank: losses, evaluations, memory.
#include <gtest/gtest.h>

#include <regex>

#include "ranks/shared_run.h"
#include "runtime/slow_device.h"
#include "train/balance.h"
#include "train/find_shares.h"
#include "train/run_plan.h"
#include "train/slow_ranks.h"

namespace vitrail::testing {
namespace {

struct Row {
  const char* name;
  std::vector<std::string> balance;
  int64_t tp = 1, zero = 0, accumulation = 1;
};
const Row kRows[] = {{"dp3", {"[12,8,4]"}},
                     {"dp3 zero 1", {"12", "2", "10"}, 1, 1},
                     {"dp3 zero 3, accumulated", {"2,6,4"}, 1, 3, 2},
                     {"dp2 tp2", {"18,6"}, 2}};

TEST(BalanceRanks, SharesByHandChangeNothing) {
  const WorkFolder folder;
  TrainConfig config = shared_config(10);
  const Ran one = train(config, folder / "one");
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    config.mesh.balance = row.balance;
    config.mesh.tp = row.tp, config.mesh.zero = row.zero;
    config.train.accumulation = row.accumulation;
    const int ranks = row.tp == 2 ? 4 : 3;
    const Ran many = train(config, folder / row.name, {.ranks = ranks});
    expect_same_run(many, one);
    EXPECT_TRUE(many.noted("is cut by mesh.balance"));
  }
}

// A checkpoint of one cut is read by any other.
TEST(BalanceRanks, ResumesWithAnotherCut) {
  const WorkFolder folder;
  TrainConfig config = shared_config(8);
  const Ran one = train(config, folder / "one");
  config.mesh.balance = {"12,8,4"};
  const Ran first = train(config, folder / "many", {.stop_after = 4, .ranks = 3});
  config.mesh.balance = {"20,4"};
  const Ran second = train(config, folder / "many", {.resume = ResumeMode::kStrict, .ranks = 2});
  std::vector<double> losses = first.losses();
  for (const double loss : second.losses()) losses.push_back(loss);
  expect_near(losses, one.losses(), 1e-5);
}

// What is measured is dropped: losses are those of one rank, whatever shares come out.
TEST(BalanceRanks, MeasuredSharesChangeNothing) {
  const WorkFolder folder;
  TrainConfig config = shared_config(14);
  const Ran one = train(config, folder / "one");
  config.mesh.balance = {"auto"};
  const Ran many = train(config, folder / "many", {.ranks = 3});
  expect_same_run(many, one);
  const std::regex told(
      "mesh\\.balance=auto: \\[\\d+,\\d+,\\d+\\] of 24 images, by updates of \\d+, \\d+, \\d+ ms each; "
      "the last group is that of dp=2");
  EXPECT_EQ(std::ranges::count_if(many.notes,
                                  [&](const std::string& note) { return std::regex_match(note, told); }),
            1);
  EXPECT_TRUE(many.noted("img/s of its own"));  // the table of ranks
  EXPECT_EQ(many.events_of("balance"), 1);
  // Ranks of one model decode once; the stages of a pipeline take turns.
  for (int64_t MeshConfig::*const axis : {&MeshConfig::tp, &MeshConfig::pp}) {
    TrainConfig meshed = config;
    meshed.mesh.*axis = 2;
    expect_same_run(train(meshed, folder / (axis == &MeshConfig::tp ? "tp" : "pp"), {.ranks = 4}), one);
  }
}

// Shares found once are those of the checkpoint, on the same ranks alone.
TEST(BalanceRanks, MeasuredSharesAreKeptInCheckpoints) {
  const WorkFolder folder;
  TrainConfig config = shared_config(8);
  const Ran one = train(config, folder / "one");
  config.mesh.balance = {"auto"};
  const Ran first = train(config, folder / "many", {.stop_after = 3, .ranks = 3});
  const Ran second =
      train(config, folder / "many", {.resume = ResumeMode::kStrict, .stop_after = 5, .ranks = 3});
  EXPECT_TRUE(second.noted("as the checkpoint has them"));
  const Ran third = train(config, folder / "many", {.resume = ResumeMode::kStrict, .ranks = 2});
  EXPECT_TRUE(third.noted("by updates of"));
  std::vector<double> losses = first.losses();
  for (const Ran* ran : {&second, &third})
    for (const double loss : ran->losses()) losses.push_back(loss);
  expect_near(losses, one.losses(), 1e-5);
}

// The bytes that a rank needs where the first of two takes so many of 24 images.
size_t needed_by(const TrainConfig& config, int rank, int64_t first) {
  const RunSetup setup = set_up(config, cpu_device(1), {rank, 2, 2});
  StepConfig step = setup.step;
  step.distribution.cuts = {{Axis::kData, 'B', {0, first, 24}}};
  return plan_step(step, cpu_backend(), cpu_device(1)).peak_bytes() + setup.decoding_bytes +
         setup.loader_bytes(rank == 0 ? first : 24 - first);
}

// Where memory holds half of the images on each rank and no more, no other shares are possible, however fast
// the ranks are; a rank beside one that is ten times as slow takes as many as it holds; where it holds a
// third, the other takes the rest.
TEST(BalanceRanks, SharesFitTheMemoryOfTheirRanks) {
  TrainConfig config = shared_config(1);
  config.mesh.balance = {"auto"};
  const auto found = [&](size_t first, size_t second, const char* slow = nullptr) {
    FoundShares shares;
    run_ranks(
        {.worlds = thread_communicators(2),
         .mesh = resolved(config.mesh, 2),
         .device =
             [&](int local) {
               DeviceInfo device = cpu_device(1);
               device.memory_bytes = local == 0 ? first : second;
               return device;
             },
         .sharing = 2,
         .variables =
             [&](const char* name) { return std::string_view(name) == kSlowVariable ? slow : nullptr; }},
        [&](RankContext& rank) {
          const Team team(rank.ranks);
          RunSetup setup = set_up(config, rank.device, {team.rank(), 2, 2});
          setup.reach(rank.ranks);
          const FoundShares own = find_shares(setup, cpu_backend(), rank, team);
          EXPECT_EQ(setup.shares(), own.shares) << "the setup is cut so";
          EXPECT_EQ(own.seconds.size(), 2u);
          if (team.leads()) shares = own;
        });
    return shares.shares;
  };
  using Shares = std::vector<int64_t>;
  const size_t half = needed_by(config, 0, 12), last_half = needed_by(config, 1, 12),
               third = needed_by(config, 0, 8), last_third = needed_by(config, 1, 16);
  EXPECT_LT(third, half);
  EXPECT_LT(last_third, last_half);
  EXPECT_EQ(found(half, last_half), (Shares{12, 12}));
  EXPECT_EQ(found(0, last_half, "0:10"), (Shares{12, 12}));
  EXPECT_EQ(found(half, 0, "1:10"), (Shares{12, 12}));
  const Shares less = found(third, 0), last_less = found(0, last_third);
  EXPECT_LE(less[0], 8);
  EXPECT_EQ(less[0] + less[1], 24);
  EXPECT_LE(last_less[1], 8);
  EXPECT_EQ(last_less[0] + last_less[1], 24);
}

// A rank that sleeps ten times as long as it computes, on a model whose time is that of its images.
TEST(BalanceRanks, ASlowRankGetsLess) {
  const WorkFolder folder;
  TrainConfig config = shared_config(1);
  set_image(config, 32);
  set_model(config, "width", [](VitConfig& m) { m.width = 64; });
  config.data.train = "synthetic:3x32x32x4x40";
  config.mesh.balance = {"auto"};
  const auto slow = [](const char* name) {
    return std::string_view(name) == kSlowVariable ? "1:10" : nullptr;
  };
  const Ran ran = train(config, folder / "run", {.ranks = 3, .variables = slow});
  ASSERT_EQ(ran.events_of("balance"), 1);
  for (const RunEvent& event : ran.events) {
    if (event.what != "balance") continue;
    const std::vector<int64_t> shares = parse_balance({event.text.substr(event.text.find('['))}).shares;
    ASSERT_EQ(shares.size(), 3U);
    EXPECT_LT(shares[1], std::min(shares[0], shares[2])) << event.text;
  }
}

TEST(BalanceRanks, ARankThatBecomesSlowIsNamed) {
  const WorkFolder folder;
  static const std::string setting = "1:50:" + (folder / "slow");
  const auto slow = [](const char* name) {
    return std::string_view(name) == kSlowVariable ? setting.c_str() : nullptr;
  };
  const auto begin = [&](const TrainStatus& status) {
    if (status.step == SlowRanks::kUsual + 2) write_file(folder / "slow", "now");
  };
  TrainConfig config = shared_config(SlowRanks::kUsual + SlowRanks::kLong + 6);
  config.train.eval_every = 1000000;
  const Ran ran = train(config, folder / "run", {.step = begin, .ranks = 3, .variables = slow});
  EXPECT_TRUE(ran.told("slow_rank", "rank 1 has been slow for 20 updates"));
  EXPECT_EQ(ran.events_of("slow_rank"), 1);
}

TEST(BalanceRanks, EachRankHasItsOwnPlan) {
  TrainConfig config = shared_config(1);
  config.mesh.dp = 3;
  config.mesh.balance = {"4,16,4"};
  const RunPlan plan(config, std::nullopt, cpu_backend(), cpu_device(1));
  ASSERT_EQ(plan.needs().size(), 3U);
  EXPECT_EQ(plan.rank(), 1);  // which has most images
  EXPECT_EQ(plan.needs()[1].images, 16);
  EXPECT_GT(plan.needs()[1].bytes, plan.needs()[0].bytes);
  EXPECT_EQ(plan.needs()[0].bytes, plan.needs()[2].bytes);
}

}  // namespace
}  // namespace vitrail::testing
