// Updates of two rank threads, measured: what is told of them adds up, and the ranks learn what one rank
// does. Nothing here depends on how long anything takes.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "api/settings.h"
#include "backend/registry.h"
#include "measure/profile_run.h"
#include "measure/rank_steps.h"
#include "measure/synthetic_steps.h"
#include "plan/devices.h"
#include "thrown.h"
#include "two_threads.h"

namespace vitrail {
namespace {

TrainConfig rank_config(const char* mesh, int micro_batch = 2) {
  return training_config(
      std::string(
          R"({"model": {"image_height": 16, "image_width": 16, "patch": 8, "width": 32, "depth": 4, "heads": 2,
                       "mlp": 64}, "data": {"train": "synthetic:3x16x16x4x64"}, "mesh": )") +
      mesh +
      strf(R"(, "train": {"batch": 8, "micro_batch": %d, "steps": 8}, "optim": {"lr": 0.05}})", micro_batch));
}

RankStepsRequest rank_request(const char* mesh) {
  RankStepsRequest request;
  request.config = rank_config(mesh);
  request.backend = "cpu";
  request.device = [](int) { return device_here("cpu", 1, ""); };
  request.warmup = 1, request.updates = 4;
  return request;
}

double sum_over(const TimingStatus& timing, double RankTime::*part) {
  double sum = 0;
  for (const RankTime& rank : timing.ranks) sum += rank.*part;
  return sum;
}

TEST(RankSteps, AddUp) {
  const RankStepsResult r = time_rank_steps(two_threads(), rank_request(R"({"dp": 2})"));
  EXPECT_EQ(r.ranks, 2);
  EXPECT_EQ(r.transport, "threads");
  EXPECT_EQ(r.mesh, "dp=2");
  EXPECT_EQ(r.devices, "") << "they share the host's memory";
  EXPECT_EQ(r.batch, 8);
  EXPECT_EQ(r.seconds.count, 4u);
  EXPECT_EQ(r.steps, 5);
  EXPECT_EQ(r.timing.updates, 4);
  ASSERT_EQ(r.timing.ranks.size(), 2u);
  EXPECT_EQ(spread_of(r.each).median, r.seconds.median);
  ASSERT_EQ(r.computes.size(), 2u);
  for (size_t rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(r.computes[rank].size(), 4u);
    EXPECT_NEAR(std::accumulate(r.computes[rank].begin(), r.computes[rank].end(), 0.0),
                r.timing.ranks[rank].compute_s, 1e-12);
  }
  // What the plan says a rank sends, it sends in every update.
  const RunPlan plan(rank_config(R"({"dp": 2})"), std::nullopt, find_backend("cpu"),
                     device_here("cpu", 1, ""), RankPlace{0, 2, 2});
  double planned = 0;
  for (const CollectiveRow& row : plan.collectives()) planned += row.bytes;
  EXPECT_DOUBLE_EQ(r.sent_bytes, planned);
  EXPECT_EQ(r.peak_bytes, plan.step().peak_bytes());
  double total = 0;
  for (const RankTime& rank : r.timing.ranks) total += rank.total_s();
  EXPECT_NEAR(r.exposed_share, sum_over(r.timing, &RankTime::exposed_s) / total, 0.1);
  EXPECT_NEAR(r.waited_share, sum_over(r.timing, &RankTime::imbalance_s) / total, 0.1);
  EXPECT_LE(r.waited_share, r.exposed_share + 1e-9);
  EXPECT_GT(r.flight_s, 0);
  EXPECT_LT(r.flight_s, 2 * r.timing.update_s()) << "of one update, of one rank";
  EXPECT_GE(r.hidden_share, 0);
  EXPECT_LE(r.hidden_share, 1);
}

// One rank exchanges nothing: no share of nothing is hidden.
TEST(RankSteps, OfOneRankHaveNothingToHide) {
  const RankStepsResult r = time_rank_steps(
      open_world({.ranks = 1, .variables = [](const char*) { return static_cast<const char*>(nullptr); }}),
      rank_request("{}"));
  EXPECT_EQ(r.ranks, 1);
  EXPECT_EQ(r.seconds.count, 4u);
  EXPECT_EQ(r.flight_s, 0);
  EXPECT_EQ(r.hidden_share, 0);
  EXPECT_EQ(r.exposed_share, 0);
  EXPECT_EQ(r.waited_share, 0);
  EXPECT_EQ(r.sent_bytes, 0);
}

// The same images, whoever has them, make the same updates: two ranks with two each are one with four.
TEST(RankSteps, LearnWhatOneRankLearns) {
  const auto alone = [](int micro_batch) {
    RankContext rank(device_here("cpu", 1, ""));
    const RunPlan plan(rank_config("{}", micro_batch), std::nullopt, find_backend("cpu"), rank.device);
    SyntheticSteps steps(plan, rank);
    for (int i = 0; i < 5; ++i) steps.run();
    return steps.loss_share();
  };
  const std::pair<const char*, int> meshes[] = {
      {R"({"dp": 2})", 4}, {R"({"tp": 2})", 2}, {R"({"sp": 2})", 2}, {R"({"pp": 2})", 2}};
  for (const auto& [mesh, together] : meshes)
    EXPECT_NEAR(time_rank_steps(two_threads(), rank_request(mesh)).loss, alone(together), 1e-4) << mesh;
}

TEST(RankSteps, AStopEndsThem) {
  RankStepsRequest request = rank_request(R"({"dp": 2})");
  int asked = 0;
  request.stop = [&] { return ++asked == 3; };
  const std::string said = thrown_by([&] { time_rank_steps(two_threads(), request); });
  EXPECT_NE(said.find("stopped during a benchmark"), std::string::npos) << said;
  EXPECT_EQ(asked, 3) << "before each update";
}

TEST(RankProfile, HasTheRowsOfEachRank) {
  const auto profile = profile_ranks(two_threads(), rank_request(R"({"dp": 2})"), {.warmup = 1, .runs = 2});
  ASSERT_TRUE(profile);
  EXPECT_TRUE(profile->training);
  EXPECT_EQ(profile->batch, 8);
  EXPECT_EQ(profile->seconds.count, 2u);
  EXPECT_TRUE(profile->what.ends_with(
      ", an update of 8 images: adamw, f32, recompute none, micro-batches of 2, dp=2"))
      << profile->what;
  ASSERT_EQ(profile->ranks.size(), 2u);
  ASSERT_EQ(profile->ranks[0].size(), profile->parts.size());
  for (size_t i = 0; i < profile->parts.size(); ++i) {
    const ProfileRow &own = profile->parts[i], &told = profile->ranks[0][i], &other = profile->ranks[1][i];
    EXPECT_EQ(told.name, own.name);
    EXPECT_EQ(told.phase, own.phase) << own.name;
    EXPECT_EQ(told.nodes, own.nodes) << own.name;
    EXPECT_NEAR(told.seconds, own.seconds, 1e-9) << own.name;
    EXPECT_DOUBLE_EQ(told.flops, own.flops) << own.name;
    EXPECT_DOUBLE_EQ(told.bytes, own.bytes) << own.name;
    EXPECT_DOUBLE_EQ(other.flops, own.flops) << own.name;
  }
  const RankTimes times = rank_times_of(*profile);
  for (const char* name : {"forward", "backward", "update", "communication"})
    EXPECT_NE(std::find(times.columns.begin(), times.columns.end(), name), times.columns.end()) << name;
}

// Calls `body` on two ranks, with the team of each.
void on_two_ranks(const std::function<void(const Team&)>& body) {
  MeshConfig mesh;
  mesh.dp = 2;
  run_ranks({.worlds = two_threads().ranks,
             .mesh = resolved(mesh, 2),
             .device = [](int) { return device_here("cpu", 1, ""); },
             .sharing = 2},
            [&](RankContext& rank) { body(Team(rank.ranks)); });
}

// Ranks run equally often: as often as was said, or as the first one's time for a run suggests.
TEST(RankProfile, RanksAgreeHowOftenTheyRun) {
  const auto agreed = [](const TimingBudget& budget, const Team& team) {
    int runs = 0;
    const TimingBudget found = agreed_budget(budget, team, [&] { ++runs; });
    return std::pair(found, runs);
  };
  const auto [alone, none] = agreed({.warmup = 2, .seconds = 5}, Team(nullptr));
  EXPECT_EQ(alone.seconds, 5) << "one rank goes by its own time";
  EXPECT_EQ(alone.runs, 0);
  EXPECT_EQ(none, 0);
  on_two_ranks([&](const Team& team) {
    const auto [said, unasked] = agreed({.warmup = 2, .seconds = 5, .runs = 1}, team);
    EXPECT_EQ(said.runs, 1);
    EXPECT_EQ(said.seconds, 5);
    EXPECT_EQ(unasked, 0) << "nothing is to be found out";
    const auto [least, tried] = agreed({.warmup = 2, .seconds = 1e-12}, team);
    EXPECT_EQ(least.runs, 3);
    EXPECT_EQ(least.seconds, 0);
    EXPECT_EQ(least.warmup, 2);
    EXPECT_EQ(tried, 2) << "once to warm up, once by the clock";
    // The first rank has a year, the other nothing.
    const auto [most, again] = agreed({.warmup = 2, .seconds = team.leads() ? 3e7 : 0}, team);
    EXPECT_EQ(most.runs, 1000);
    EXPECT_EQ(again, 2);
  });
}

// Three heads are shared by no two ranks.
TEST(RankSteps, ProposeMeshesThatCutTheHeads) {
  RankStepsRequest request = rank_request(R"({"tp": 3})");
  request.config.model.fields.heads = 3;
  try {
    local_ranks(two_threads(), request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.hint(), "mesh.dp=2 mesh.tp=1 mesh.sp=1");
  }
}

}  // namespace
}  // namespace vitrail
