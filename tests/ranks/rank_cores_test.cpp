// The cores of ranks: shared out where there are enough of them, left alone where a launcher did so.
#include <gtest/gtest.h>
#include <sched.h>

#include <map>
#include <mutex>

#include "backend/cpu/kernels.h"
#include "base/cores.h"
#include "train/world.h"

namespace vitrail {
namespace {

using Cores = std::vector<int>;

Cores range(int first, int end) {
  Cores cores;
  for (int core = first; core < end; ++core) cores.push_back(core);
  return cores;
}

RankSeat seat(int rank, int threads, const Cores& cores, const std::string& host = "a") {
  return {rank, host, "cpu", threads, "", cores};
}

std::vector<Cores> shared_out(std::vector<RankSeat> seats) {
  share_cores(seats);
  std::vector<Cores> cores;
  cores.reserve(seats.size());
  for (const RankSeat& each : seats) cores.push_back(each.cores);
  return cores;
}

TEST(RankCores, AreSharedOutByThreads) {
  const Cores all = range(0, 16);
  EXPECT_EQ(shared_out({seat(0, 8, all), seat(1, 8, all)}), (std::vector{range(0, 8), range(8, 16)}));
  EXPECT_EQ(shared_out({seat(0, 1, all), seat(1, 1, all)}), (std::vector{range(0, 8), range(8, 16)}))
      << "cores that no rank needs are shared out, too";
  EXPECT_EQ(shared_out({seat(0, 4, all), seat(1, 4, all), seat(2, 2, all), seat(3, 1, all)}),
            (std::vector{range(0, 5), range(5, 11), range(11, 14), range(14, 16)}));
  EXPECT_EQ(shared_out({seat(0, 1, {2, 9}), seat(1, 1, {2, 9})}), (std::vector<Cores>{{2}, {9}}));
}

TEST(RankCores, EveryRankHasAsManyAsThreads) {
  for (int cores = 3; cores <= 24; ++cores)
    for (int first = 1; first < cores; ++first)
      for (int second = 1; first + second < cores; ++second) {
        const Cores all = range(0, cores);
        const std::vector<Cores> own =
            shared_out({seat(0, first, all), seat(1, second, all), seat(2, 1, all)});
        EXPECT_GE(own[0].size(), static_cast<size_t>(first));
        EXPECT_GE(own[1].size(), static_cast<size_t>(second));
        EXPECT_GE(own[2].size(), 1u);
        EXPECT_EQ(own[0].size() + own[1].size() + own[2].size(), static_cast<size_t>(cores));
      }
}

TEST(RankCores, AreLeftAloneWhereTheyAreFewOrGiven) {
  const Cores all = range(0, 4);
  const std::vector<std::vector<RankSeat>> left = {
      {seat(0, 4, all)},
      {seat(0, 3, all), seat(1, 2, all)},
      {seat(0, 2, range(0, 2)), seat(1, 2, range(2, 4))},
      {seat(0, 1, range(0, 3)), seat(1, 1, range(2, 4))},
      {seat(0, 1, {}), seat(1, 1, {})},
      {seat(0, 4, all, "a"), seat(1, 4, all, "b")},
      {seat(0, 1, all), {1, "a", "a GPU", 1, "", all, false}},
  };
  for (const std::vector<RankSeat>& seats : left) {
    std::vector<Cores> before;
    before.reserve(seats.size());
    for (const RankSeat& each : seats) before.push_back(each.cores);
    EXPECT_EQ(shared_out(seats), before) << seat_table(seats);
  }
}

TEST(RankCores, AreSharedOutOnEachHostAndSocket) {
  const Cores low = range(0, 4), high = range(4, 8);
  EXPECT_EQ(shared_out({seat(0, 2, low), seat(1, 2, high), seat(2, 2, low), seat(3, 2, high),
                        seat(4, 1, low, "b"), seat(5, 1, low, "b")}),
            (std::vector{range(0, 2), range(4, 6), range(2, 4), range(6, 8), range(0, 2), range(2, 4)}));
}

// The cores that ranks of one thread run on, by rank.
std::map<int, Cores> cores_of_run(int ranks, bool bind) {
  std::map<int, Cores> found;
  std::mutex mutex;
  run_ranks({.worlds = thread_communicators(ranks),
             .mesh = {.dp = ranks, .bind = bind},
             .device = [](int) { return cpu_device(1); }},
            [&](RankContext& rank) {
              cpu_set_t set;
              ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
              const std::lock_guard lock(mutex);
              for (const int core : allowed_cores())
                if (CPU_ISSET(core, &set)) found[rank.ranks->mesh().rank].push_back(core);
            });
  return found;
}

TEST(RankCores, SeatsHaveThemWhereRanksAreBound) {
  const Cores all = allowed_cores();
  if (all.size() < 2) GTEST_SKIP() << "one core";
  for (const bool bind : {true, false}) {
    World world = open_world({.ranks = 2, .variables = {}});
    const std::vector<RankSeat> seats =
        seats_of(world, {.dp = 2, .bind = bind}, [](int) { return cpu_device(1); });
    ASSERT_EQ(seats.size(), 2u);
    const auto half = static_cast<std::ptrdiff_t>(all.size() / 2);
    EXPECT_EQ(seats[0].cores, bind ? Cores(all.begin(), all.begin() + half) : all) << bind;
    EXPECT_EQ(seats[1].cores, bind ? Cores(all.begin() + half, all.end()) : all) << bind;
    for (int r = 0; r < 2; ++r) {
      EXPECT_EQ(seats[static_cast<size_t>(r)].rank, r);
      EXPECT_EQ(seats[static_cast<size_t>(r)].threads, 1);
      EXPECT_EQ(seats[static_cast<size_t>(r)].mesh, strf("dp=%d", r));
    }
  }
}

TEST(RankCores, ThreadsOfRanksAreBoundToThem) {
  const Cores all = allowed_cores();
  const auto most = static_cast<int>(all.size());
  if (most < 2) GTEST_SKIP() << "one core";
  Cores together;
  for (const auto& [rank, cores] : cores_of_run(2, true)) {
    EXPECT_LT(cores.size(), all.size()) << rank;
    together.insert(together.end(), cores.begin(), cores.end());
  }
  EXPECT_EQ(together, all);
  for (const auto& [rank, cores] : cores_of_run(2, false)) EXPECT_EQ(cores, all) << rank;
  for (const auto& [rank, cores] : cores_of_run(most + 1, true)) EXPECT_EQ(cores, all) << rank;
  EXPECT_EQ(allowed_cores(), all);
}

}  // namespace
}  // namespace vitrail
