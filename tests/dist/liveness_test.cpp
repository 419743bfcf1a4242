// The table of ranks judges by reports and the clock alone; a watch and the heartbeats of processes carry
// them over TCP, here as threads of one process.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "base/error.h"
#include "base/timing.h"
#include "dist/liveness/heartbeat.h"
#include "dist/liveness/watch.h"

namespace vitrail::liveness {
namespace {

Json report(int rank, const char* phase, int64_t step, double idle = 0) {
  return {{"rank", rank},  {"phase", phase},          {"step", step},  {"updates", step},
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

TEST(Pulse, CountsEventsThatWereNotReadYet) {
  Pulse pulse;
  uint64_t seen = 0;
  pulse.begin_step(1);
  EXPECT_EQ(pulse.events(seen).size(), 1u);
  EXPECT_EQ(pulse.events(seen).size(), 0u);
  for (int i = 0; i < 200; ++i) pulse.note("again");
  EXPECT_EQ(pulse.events(seen).size(), Pulse::kEvents);
}

// Turns the watch until `holds`; false after five seconds.
template <typename Holds>
bool turned(Watch& watch, const Holds& holds) {
  for (const auto start = Clock::now(); seconds_since(start) < 5;) {
    watch.turn(10);
    if (holds()) return true;
  }
  return false;
}

TEST(Watch, SeesWhatRanksPostAndTellsAllWhyOneFailed) {
  Watch watch({.ranks = 2, .limits = {.deadline_s = 5}});
  Heartbeat first({.address = watch.address(), .first = 0, .ranks = 2, .limits = {.deadline_s = 5}});
  Heartbeat second({.address = watch.address(), .first = 1, .ranks = 2, .limits = {.deadline_s = 5}});
  second.pulse(1).begin_step(7);
  second.pulse(1).at_node("blocks.0.mlp");
  ASSERT_TRUE(turned(watch, [&] { return watch.table().rows()[1].node == "blocks.0.mlp"; }));
  EXPECT_EQ(watch.table().rows()[1].step, 7);
  std::thread failing([&] { second.failed(1, 65, false, "cat.jpg is cut short"); });
  ASSERT_TRUE(turned(watch, [&] { return first.verdict().has_value(); }));
  failing.join();
  EXPECT_EQ(first.verdict()->rank, 1);
  EXPECT_EQ(first.verdict()->code, 65);
  EXPECT_NE(first.verdict()->text.find("in forward at step 7, node blocks.0.mlp: cat.jpg"),
            std::string::npos);
}

TEST(Watch, FailsTheExchangesOfRanksThatAreLeft) {
  Watch watch({.ranks = 2, .limits = {.deadline_s = 5}});
  Heartbeat left({.address = watch.address(), .first = 0, .ranks = 2, .limits = {.deadline_s = 5}});
  std::vector<std::unique_ptr<Communicator>> ranks = thread_communicators(2);
  left.attach(ranks[0].get());
  {
    const Heartbeat gone({.address = watch.address(), .first = 1, .ranks = 2, .limits = {.deadline_s = 5}});
    ASSERT_TRUE(turned(watch, [&] { return watch.table().rows()[1].joined; }));
  }
  std::thread waiting([&] { EXPECT_THROW(ranks[0]->barrier(), Error); });
  EXPECT_TRUE(turned(watch, [&] { return left.verdict().has_value(); }));
  waiting.join();
  left.detach(ranks[0].get());
  EXPECT_EQ(left.verdict()->code, 137);
}

TEST(Watch, LetsNobodyInWithoutTheWord) {
  Watch watch({.ranks = 1});
  std::string address = watch.address();
  address.back() = address.back() == '0' ? '1' : '0';
  const Heartbeat stranger({.address = address});
  for (int i = 0; i < 20; ++i) watch.turn(10);
  EXPECT_FALSE(watch.table().rows()[0].joined);
}

TEST(Watch, SaysWhichPortIsTaken) {
  const Watch watch({.ranks = 1});
  const std::string& address = watch.address();
  const size_t colon = address.find(':');
  const int port = std::stoi(address.substr(colon + 1));
  try {
    Watch({.ranks = 1, .port = port});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(exit_code(error.kind()), 69);
    EXPECT_NE(error.message().find(std::to_string(port)), std::string::npos);
  }
}

}  // namespace
}  // namespace vitrail::liveness
