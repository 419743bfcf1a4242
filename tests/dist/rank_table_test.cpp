// The table of ranks judges by reports and the clock alone: who ends a job, why, and when.
#include "dist/liveness/rank_table.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace vitrail::liveness {
namespace {

Json report(int rank, const char* phase, int64_t step, double idle = 0) {
  return {{"rank", rank},  {"phase", phase},          {"step", step},  {"made", step},
          {"node", "qkv"}, {"events", Json::array()}, {"idle_s", idle}};
}

RankTable two_ranks() {
  RankTable table(2, {.deadline_s = 15}, 100);
  for (int r = 0; r < 2; ++r) table.join(r, "vt1", 40 + r, 100);
  return table;
}

bool is_cut_off(int) {
  return true;
}

TEST(RankTable, NamesTheRankThatIsGoneAndWhereItWas) {
  RankTable table = two_ranks();
  table.report(report(1, "reduction", 12), 101);
  table.gone(1);
  table.gone(0);  // a consequence
  ASSERT_TRUE(table.judge(101, {}));
  EXPECT_EQ(table.verdict()->rank, 1);
  EXPECT_EQ(table.verdict()->code, 137);
  EXPECT_EQ(table.verdict()->text, "rank 1 on vt1 (pid 41) was killed in reduction at step 12, node qkv");
}

TEST(RankTable, ForgivesAShortSilenceAndTellsIt) {
  RankTable table = two_ranks();
  EXPECT_EQ(table.report(report(0, "forward", 3), 101), "");
  table.report(report(1, "forward", 3), 101);
  table.report(report(0, "forward", 4), 106);
  EXPECT_FALSE(table.judge(106, {}));
  EXPECT_NE(table.report(report(1, "forward", 4), 106.5).find("was silent for 5.5 s in forward at step 3"),
            std::string::npos);
}

TEST(RankTable, TellsAStoppedRankFromOneThatIsCutOff) {
  for (const bool cut : {false, true}) {
    RankTable table = two_ranks();
    table.report(report(0, "reduction", 9), 109);
    EXPECT_FALSE(table.judge(109.9, {}));
    ASSERT_TRUE(table.judge(110.1, cut ? is_cut_off : nullptr));
    EXPECT_EQ(table.verdict()->rank, 1);
    EXPECT_EQ(table.verdict()->code, cut ? 69 : 70);
  }
}

TEST(RankTable, IsNotFooledByItsOwnPause) {
  RankTable table = two_ranks();
  table.forgive(60);
  EXPECT_FALSE(table.judge(160, {}));
}

TEST(RankTable, PrefersARanksOwnErrorToOthersFailedExchanges) {
  RankTable table = two_ranks();
  table.failed(0, 69, true, "rank 0 lost the others", 101);
  EXPECT_FALSE(table.judge(101.5, {}));
  table.failed(1, 65, false, "cat.jpg is cut short", 101.6);
  ASSERT_TRUE(table.judge(101.7, {}));
  EXPECT_EQ(table.verdict()->rank, 1);
  EXPECT_EQ(table.verdict()->code, 65);
  EXPECT_NE(table.verdict()->text.find("cat.jpg is cut short"), std::string::npos);
}

TEST(RankTable, TakesAFailedExchangeWhenNothingElseShows) {
  RankTable table = two_ranks();
  table.failed(0, 69, true, "the network is down", 101);
  table.report(report(1, "forward", 1), 102);
  ASSERT_TRUE(table.judge(102.1, {}));
  EXPECT_EQ(table.verdict()->code, 69);
}

TEST(RankTable, NamesThoseWhoNeverCame) {
  RankTable table(4, {.deadline_s = 1}, 100);
  table.join(0, "vt1", 1, 107.5);
  table.join(2, "vt1", 2, 107.5);
  EXPECT_FALSE(table.judge(107.9, {}));
  ASSERT_TRUE(table.judge(108.1, {}));
  EXPECT_EQ(table.verdict()->code, 69);
  EXPECT_EQ(table.verdict()->text, "ranks 1, 3 of 4 never came within 8 s");
}

TEST(RankTable, BlamesTheRankThatHangsNotThoseThatWaitForIt) {
  RankTable table = two_ranks();
  table.report(report(0, "reduction", 12, 400), 101);
  table.report(report(1, "forward", 12, 390), 101);
  ASSERT_TRUE(table.judge(101, {}));
  EXPECT_EQ(table.verdict()->rank, 1);
  EXPECT_EQ(table.verdict()->code, 70);
}

TEST(RankTable, KeepsTheLastEventsForTheCrashFile) {
  RankTable table = two_ranks();
  for (int i = 0; i < 100; ++i) {
    Json one = report(1, "forward", i);
    one["events"].push_back({{"step", i}});
    table.report(one, 101);
  }
  const Json crash = parse_json(crash_text(table.rows()[1], {1, 137, "was killed"}), "crash");
  EXPECT_EQ(crash["events"].size(), Pulse::kEvents);
  EXPECT_EQ(crash["events"].back()["step"], 99);
  EXPECT_EQ(crash["ended_by"]["code"], 137);
}

TEST(RankTable, WhoHasLeftIsNeitherSilentNorIdleNorKilled) {
  RankTable table = two_ranks();
  table.report(report(1, "forward", 3, 400), 101);
  table.leave(1);
  table.gone(1);  // its connection ends after its last word
  table.report(report(0, "forward", 9), 119);
  EXPECT_FALSE(table.judge(120, {})) << table.verdict()->text;
  EXPECT_FALSE(table.all_left());
  table.leave(0);
  EXPECT_TRUE(table.all_left());
}

TEST(RankTable, ASaveMayTakeLongerThanAStep) {
  RankTable table = two_ranks();
  table.report(report(0, "save", 5, 1190), 101);
  table.report(report(1, "evaluation", 5, 590), 101);
  EXPECT_FALSE(table.judge(101, {})) << table.verdict()->text;
  table.report(report(0, "save", 5, 1210), 101);
  ASSERT_TRUE(table.judge(101, {}));
  EXPECT_EQ(table.verdict()->rank, 0);
}

TEST(RankTable, OfTwoThatHangBlamesTheOneBehind) {
  RankTable table = two_ranks();
  table.report(report(0, "forward", 13, 400), 101);
  table.report(report(1, "forward", 12, 390), 101);
  ASSERT_TRUE(table.judge(101, {}));
  EXPECT_EQ(table.verdict()->rank, 1);
}

TEST(RankTable, OfTwoFailedExchangesTheFirstCounts) {
  RankTable table = two_ranks();
  table.failed(1, 69, true, "the network is down", 101);
  table.failed(0, 69, true, "rank 0 lost the others", 101.9);
  ASSERT_TRUE(table.judge(102.1, {}));
  EXPECT_EQ(table.verdict()->rank, 1);
}

TEST(RankTable, WaitsForThoseWhoAreToComeAsLongAfterItsOwnPause) {
  RankTable table(2, {.deadline_s = 1}, 100);
  table.join(0, "vt1", 40, 100);
  table.forgive(60);
  table.report(report(0, "init", 0), 167.9);
  EXPECT_FALSE(table.judge(167.9, {})) << table.verdict()->text;
  ASSERT_TRUE(table.judge(168.1, {}));
  EXPECT_EQ(table.verdict()->text, "rank 1 of 2 never came within 8 s");
}

// A job that is started again counts as one that got further when any of its ranks did.
TEST(RankTable, KnowsTheFurthestStepOfAnyRank) {
  RankTable table = two_ranks();
  table.report(report(0, "forward", 5), 101);
  table.report(report(1, "forward", 3), 101);
  EXPECT_EQ(table.made(), 5);
}

TEST(Limits, FollowTheDeadline) {
  const auto all = [](const Limits& l) {
    return std::vector<double>{l.period(), l.silence(), l.reported_silence(), l.join(), l.grace()};
  };
  EXPECT_EQ(all({.deadline_s = 3}), (std::vector<double>{0.3, 2, 1.2, 24, 0.5}));
  EXPECT_EQ(all({.deadline_s = 15}), (std::vector<double>{1, 10, 3, 120, 2.5}));
  EXPECT_EQ(all({.deadline_s = 60}), (std::vector<double>{1, 40, 12, 480, 2.5}));
}

}  // namespace
}  // namespace vitrail::liveness
