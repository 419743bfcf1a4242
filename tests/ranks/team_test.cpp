// What ranks tell each other, number by number: sums, votes, texts, rows of an evaluation, and which of them
// holds, sends and writes which part of a value.
#include "train/team.h"

#include <gtest/gtest.h>

#include <mutex>

#include "backend/cpu/kernels.h"
#include "train/agreement.h"
#include "train/evaluate.h"
#include "train/part_table.h"
#include "train/replica_policy.h"
#include "train/world.h"

namespace vitrail {
namespace {

void on_ranks(const MeshConfig& mesh, const std::function<void(RankContext&, const Team&)>& body) {
  const int ranks = static_cast<int>(mesh.dp * mesh.tp * mesh.sp * mesh.pp);
  run_ranks(
      {.worlds = thread_communicators(ranks), .mesh = mesh, .device = [](int) { return cpu_device(1); }},
      [&](RankContext& rank) { body(rank, Team(rank.ranks)); });
}

using Numbers = std::vector<double>;

TEST(Team, AgreesOnNumbersVotesAndTexts) {
  on_ranks({.dp = 3}, [](RankContext&, const Team& team) {
    const int r = team.rank();
    EXPECT_EQ(team.size(), 3);
    EXPECT_FALSE(team.alone());
    EXPECT_EQ(team.leads(), r == 0);
    Numbers numbers = {1.0 + r, 10.0 * r};
    team.sum(numbers);
    EXPECT_EQ(numbers, (Numbers{6, 30}));
    const Numbers mine = {1.0 * r, -1.0 * r};
    EXPECT_EQ(team.gather(mine), (Numbers{0, 0, 1, -1, 2, -2}));
    const std::vector<int64_t> whole = {int64_t{1} << (60 + r)};
    EXPECT_EQ(team.gather(whole),
              (std::vector<int64_t>{int64_t{1} << 60, int64_t{1} << 61, int64_t{1} << 62}));
    EXPECT_EQ(team.texts_of_all(std::string(static_cast<size_t>(r), 'x')),
              (std::vector<std::string>{"", "x", "xx"}));
    EXPECT_TRUE(team.any(r == 2));
    EXPECT_FALSE(team.any(false));
    EXPECT_EQ(team.from_leader(7.5 + r), 7.5);
  });
}

TEST(Team, OneRankAgreesWithItself) {
  const Team alone(nullptr);
  Numbers numbers = {3};
  alone.sum(numbers);
  EXPECT_EQ(numbers, (Numbers{3}));
  EXPECT_TRUE(alone.alone() && alone.leads());
  EXPECT_EQ(alone.rank(), 0);
  EXPECT_EQ(alone.size(), 1);
  EXPECT_TRUE(alone.any(true));
  EXPECT_FALSE(alone.any(false));
  EXPECT_EQ(alone.from_leader(4), 4);
  EXPECT_EQ(alone.texts_of_all("me"), std::vector<std::string>{"me"});
}

// Ranks have two and one of three rows; numbers of samples travel exactly however large they are.
TEST(Team, RowsComeInTheOrderOfOneRank) {
  on_ranks({.dp = 2}, [](RankContext&, const Team& team) {
    constexpr int64_t kHuge = (int64_t{1} << 43) + (1 << 20) - 1;
    const EvalRows mine =
        team.rank() == 0 ? EvalRows{{1, 2, 3, 4}, {(1 << 20) - 1, kHuge}} : EvalRows{{5, 6}, {-1}};
    const EvalRows all = rows_of_all(team, {0, 2, 3}, mine);
    EXPECT_EQ(all.logits, (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(all.samples, (std::vector<int64_t>{(1 << 20) - 1, kHuge, -1}));
  });
}

TEST(Agreement, TheFirstRanksTextReachesAll) {
  on_ranks({.dp = 3}, [](RankContext& rank, const Team& team) {
    EXPECT_EQ(from_first(rank.ranks->world(), "of " + std::to_string(team.rank())), "of 0");
  });
}

TEST(Agreement, WhatARankLacksIsNothing) {
  std::mutex mutex;
  std::map<int, std::string> texts;
  on_ranks({.dp = 2}, [&](RankContext& rank, const Team& team) {
    try {
      Json facts = {{"a", 1}};
      if (team.rank() == 1) facts = {{"b", true}};
      require_same_facts(rank.ranks->world(), facts);
    } catch (const Error& error) {
      EXPECT_EQ(error.hint(), "all ranks run one program with one config on the same data and models");
      const std::lock_guard lock(mutex);
      texts[team.rank()] = error.message();
    }
  });
  EXPECT_EQ(texts, (std::map<int, std::string>{{1, "a is nothing on rank 1 and 1 on rank 0"}}));
}

PersistentValue held(const std::string& name, int64_t elems, int64_t offset, int64_t local) {
  Dim dim('D', elems);
  dim.local = local, dim.offset = offset;
  return {.name = name, .desc = {DType::kF32, {dim}}};
}

// "all" is the same on every rank, "cut" in two halves of two ranks each, "one" on the last rank alone.
TEST(PartTable, KnowsWhoHoldsSendsAndWrites) {
  on_ranks({.dp = 4}, [](RankContext& rank, const Team& team) {
    const int r = team.rank();
    PersistentLayout layout;
    const auto place = [&](const PersistentValue& value) {
      layout.place({value.name, value.desc, ValueKind::kParameter, Category::kParameters});
    };
    place(held("all", 8, 0, 8));
    place(held("cut", 8, r < 2 ? 0 : 4, 4));
    if (r == 3) place(held("one", 3, 0, 3));
    const PartTable table(layout, rank.ranks->world());
    ASSERT_EQ(table.values().size(), 3u);
    const size_t all = *table.find("all"), cut = *table.find("cut"), one = *table.find("one");
    EXPECT_FALSE(table.find("none"));
    using Ranks = std::vector<int>;
    EXPECT_EQ(table.senders(all), (Ranks{0}));
    EXPECT_EQ(table.senders(cut), (Ranks{0, 2}));
    EXPECT_EQ(table.senders(one), (Ranks{3}));
    EXPECT_EQ(table.holders(all), (std::vector<Ranks>{{0, 1, 2, 3}}));
    EXPECT_EQ(table.holders(cut), (std::vector<Ranks>{{0, 1}, {2, 3}}));
    EXPECT_EQ(table.holders(one), (std::vector<Ranks>{{3}}));
    EXPECT_EQ(table.part(cut, 2).part[0].offset, 4);
    EXPECT_EQ(table.part(cut, 2).count, 4);
    EXPECT_EQ(table.part(one, 0).count, 0);
    EXPECT_TRUE(table.part(all, 1).is_whole());
    EXPECT_FALSE(table.part(cut, 1).is_whole());
    // The first writes "all", 32 bytes; then each half goes to the one with less, and "one" to its holder.
    const std::vector<size_t> wanted = {all, cut, one};
    const std::vector<size_t> mine = table.written_by(r, wanted);
    const std::vector<std::vector<size_t>> expected = {{all}, {cut}, {cut}, {one}};
    EXPECT_EQ(mine, expected[static_cast<size_t>(r)]) << r;
  });
}

TEST(PartTable, ARangeOfAFlattenedValueIsNotWhole) {
  PersistentValue value = held("p", 12, 5, 7);
  value.logical = {{'D', 3}, {'F', 4}};
  const HeldPart part = held_of(value);
  EXPECT_EQ(part.first, 5);
  EXPECT_EQ(part.count, 7);
  EXPECT_EQ(part.part.rank(), 2u);
  EXPECT_FALSE(part.is_whole());
  value = held("p", 12, 0, 12), value.logical = {{'D', 3}, {'F', 4}};
  EXPECT_TRUE(held_of(value).is_whole());
}

TEST(RunRanks, TellsTheRankThatFailedFirst) {
  for (const int ranks : {1, 3}) {
    try {
      run_ranks({.worlds = ranks == 1 ? open_world({.ranks = 1, .variables = {}}).ranks
                                      : thread_communicators(ranks),
                 .mesh = {.dp = ranks},
                 .device = [](int) { return cpu_device(1); },
                 .sharing = ranks},
                [&](RankContext& rank) {
                  EXPECT_EQ(rank.ranks == nullptr, ranks == 1);
                  EXPECT_EQ(rank.sharing, ranks);
                  const Team team(rank.ranks);
                  if (team.rank() == ranks - 1) throw Error(ErrorKind::kData, "on purpose");
                  team.wait();
                });
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_EQ(std::string(error.what()).find("rank 2") != std::string::npos, ranks == 3) << error.what();
    }
  }
}

}  // namespace
}  // namespace vitrail
