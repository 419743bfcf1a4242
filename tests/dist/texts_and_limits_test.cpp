// What ranks say of collectives and of each other, and the limits of their sums, tables and lines.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "base/json.h"
#include "dist/communicator.h"
#include "dist/liveness/heartbeat.h"
#include "dist/liveness/rank_table.h"
#include "dist/liveness/watch.h"
#include "dist/transport.h"
#include "ranks.h"
#include "thrown.h"

namespace vitrail {
namespace {

using Kind = Collective::Kind;

TEST(CollectiveText, NamesKindTypeAndCounts) {
  const char* names[] = {"all-reduce", "reduce-scatter", "all-gather", "all-to-all",
                         "broadcast",  "send",           "receive",    "barrier"};
  for (int i = 0; i < 8; ++i) EXPECT_STREQ(to_string(static_cast<Kind>(i)), names[i]);
  EXPECT_EQ(to_string(Collective{.kind = Kind::kAllGather, .dtype = DType::kBF16, .counts = {1, 2}}),
            "all-gather of bf16 [1 2]");
  EXPECT_EQ(to_string(Collective{.kind = Kind::kBroadcast, .dtype = DType::kF32, .counts = {3}, .peer = 1}),
            "broadcast of f32 [3] from rank 1");
  EXPECT_EQ(to_string(Collective{}), "barrier");
}

Collective made(Kind kind, std::vector<size_t> counts, int peer = 0, DType dtype = DType::kF32) {
  return {.kind = kind, .dtype = dtype, .counts = std::move(counts), .peer = peer};
}

TEST(Checks, RanksMustAgree) {
  const auto agree = [](const Collective& a, const Collective& b) {
    return disagreement(a, 0, b, 1, 2).empty();
  };
  const Collective sum = made(Kind::kAllReduce, {4});
  EXPECT_TRUE(agree(sum, sum));
  EXPECT_TRUE(agree(made(Kind::kAllReduce, {4}, 0), made(Kind::kAllReduce, {4}, 1))) << "a sum has no peer";
  EXPECT_FALSE(agree(sum, made(Kind::kAllReduce, {5})));
  EXPECT_FALSE(agree(sum, made(Kind::kAllReduce, {4}, 0, DType::kF64)));
  EXPECT_FALSE(agree(sum, made(Kind::kAllGather, {4})));
  EXPECT_FALSE(agree(sum, Collective{}));
  EXPECT_FALSE(agree(Collective{}, sum));
  EXPECT_TRUE(agree(made(Kind::kSend, {4}, 1), made(Kind::kReceive, {4}, 0)));
  EXPECT_FALSE(agree(made(Kind::kSend, {4}, 1), made(Kind::kSend, {4}, 0)));
  EXPECT_FALSE(agree(made(Kind::kSend, {4}, 1), made(Kind::kReceive, {3}, 0)));
  EXPECT_FALSE(agree(made(Kind::kBroadcast, {4}, 1), made(Kind::kBroadcast, {4}, 0)));
  // Rank 0 sends 2 to rank 1 and takes 3 of it.
  EXPECT_TRUE(agree(made(Kind::kAllToAll, {1, 2, 1, 3}), made(Kind::kAllToAll, {3, 5, 2, 5})));
  EXPECT_FALSE(agree(made(Kind::kAllToAll, {1, 2, 1, 3}), made(Kind::kAllToAll, {3, 5, 1, 5})));
  EXPECT_FALSE(agree(made(Kind::kAllToAll, {1, 2, 1, 3}), made(Kind::kAllToAll, {2, 5, 2, 5})));
  EXPECT_EQ(disagreement(sum, 0, made(Kind::kAllReduce, {5}), 1, 2),
            "rank 1 started all-reduce of f32 [5], rank 0 started all-reduce of f32 [4]");
}

TEST(Checks, EachCollectiveHasItsCountsAndPeer) {
  const auto taken = [](const Collective& c, int rank = 0) {
    return thrown_by([&] { check_collective(c, rank, 3); }) == "nothing";
  };
  EXPECT_TRUE(taken(Collective{}));
  EXPECT_TRUE(taken(made(Kind::kReduceScatter, {1, 2, 3})) && !taken(made(Kind::kReduceScatter, {1, 2})));
  EXPECT_TRUE(taken(made(Kind::kAllGather, {1, 2, 3})) && !taken(made(Kind::kAllGather, {1, 2, 3, 4})));
  EXPECT_TRUE(taken(made(Kind::kAllToAll, {1, 2, 3, 4, 5, 6})) && !taken(made(Kind::kAllToAll, {1, 2, 3})));
  EXPECT_TRUE(taken(made(Kind::kBroadcast, {1}, 2)) && !taken(made(Kind::kBroadcast, {1}, 3)) &&
              !taken(made(Kind::kBroadcast, {1}, -1)));
  EXPECT_TRUE(taken(made(Kind::kSend, {1}, 1)) && !taken(made(Kind::kSend, {1}, 1), 1) &&
              !taken(made(Kind::kReceive, {1}, 1), 1));
  EXPECT_TRUE(taken(made(Kind::kBroadcast, {1}, 1), 1));
  EXPECT_FALSE(taken(made(Kind::kReduceScatter, {1, 2, 3}, 0, DType::kU8)));
  EXPECT_TRUE(taken(made(Kind::kAllGather, {1, 2, 3}, 0, DType::kU8))) << "bytes are moved, not summed";
  Collective channel = made(Kind::kSend, {1}, 1);
  for (const auto& [number, good] : {std::pair{0, true}, {1, true}, {2, false}, {-1, false}}) {
    channel.channel = number;
    EXPECT_EQ(taken(channel), good) << number;
  }
}

TEST(SumRanges, PiecesAreWholeLinesOfTheCache) {
  // 100 floats are 7 lines of 16: of three ranks 2, 2 and 3.
  const size_t floats[] = {0, 32, 64, 100};
  for (int r = 0; r < 4; ++r) EXPECT_EQ(cut_of(100, r, 3, DType::kF32), floats[r]) << r;
  const size_t halves[] = {0, 32, 64, 100};  // 4 lines of 32: 1, 1 and 2
  for (int r = 0; r < 4; ++r) EXPECT_EQ(cut_of(100, r, 3, DType::kBF16), halves[r]) << r;
  EXPECT_EQ(cut_of(5, 1, 3, DType::kF32), 0u);
  EXPECT_EQ(cut_of(5, 3, 3, DType::kF32), 5u);
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32})
    EXPECT_TRUE(can_sum(dtype));
  EXPECT_FALSE(can_sum(DType::kU8));
}

TEST(SumRanges, EveryTypeOverBlocksAndOutputs) {
  const auto sum = [](DType dtype, auto one, auto two) {
    using T = decltype(one);
    std::vector<T> a(5000, one), b(5000, two), first(5000), second(5000);
    const void* ins[] = {a.data(), b.data()};
    void* outs[] = {first.data(), second.data()};
    sum_ranges(dtype, ins, outs, a.size());
    EXPECT_EQ(first, second);
    EXPECT_EQ(first, std::vector<T>(5000, first[0])) << "beyond a block, too";
    return first[0];
  };
  EXPECT_EQ(sum(DType::kF64, 0.1, 0.2), 0.1 + 0.2);
  EXPECT_EQ(sum(DType::kF32, 0.5f, 0.25f), 0.75f);
  EXPECT_EQ(sum(DType::kI64, int64_t{1} << 40, int64_t{-3}), (int64_t{1} << 40) - 3);
  EXPECT_EQ(sum(DType::kI32, std::numeric_limits<int32_t>::max(), int32_t{1}),
            std::numeric_limits<int32_t>::min())
      << "integers wrap around";
}

TEST(SelfCommunicator, CopiesUnlessInputIsOutput) {
  const std::unique_ptr<Communicator> alone = self_communicator();
  EXPECT_EQ(alone->rank(), 0);
  EXPECT_EQ(alone->size(), 1);
  EXPECT_STREQ(alone->transport(), "self");
  const float in[] = {1, 2};
  float out[] = {0, 0};
  alone->run({.kind = Kind::kAllReduce, .dtype = DType::kF32, .in = in, .out = out, .counts = {2}});
  EXPECT_EQ(out[1], 2);
  out[1] = 5;
  alone->run({.kind = Kind::kBroadcast, .dtype = DType::kF32, .in = in, .out = out, .counts = {2}});
  EXPECT_EQ(out[1], 5);
  EXPECT_THROW(alone->start({.kind = Kind::kSend, .in = in, .counts = {1}}), Error);
}

// Up to 4 KiB are copied at the start, so that a rank may go before the others have read them.
TEST(ThreadsFailure, WhoLeavesASmallCollectiveIsNotMissed) {
  run_on_threads(2, [](Communicator& comm) {
    std::vector<float> values(1024, static_cast<float>(comm.rank() + 1));
    const auto pending =
        comm.start({.kind = Kind::kAllReduce, .in = values.data(), .out = values.data(), .counts = {1024}});
    if (comm.rank() == 1) return;
    pending->wait();
    EXPECT_EQ(values[1023], 3);
  });
}

using liveness::Loss;
using liveness::RankTable;

Json told_by(int rank, const char* phase, double idle = 0) {
  return {{"rank", rank}, {"phase", phase},          {"step", 0},     {"made", 2},
          {"node", ""},   {"events", Json::array()}, {"idle_s", idle}};
}

RankTable table_of_two() {
  RankTable table(2, {.deadline_s = 15}, 100);
  for (int r = 0; r < 2; ++r) table.join(r, "vt1", 40 + r, 100);
  return table;
}

TEST(RankTable, SaysWhoAndWhere) {
  liveness::RankRow row{.rank = 3};
  EXPECT_EQ(row.who(), "rank 3");
  EXPECT_EQ(row.where(), "in init");
  row.joined = true, row.host = "h", row.pid = 7, row.step = 2, row.node = "fc1";
  EXPECT_EQ(row.who(), "rank 3 on h (pid 7)");
  EXPECT_EQ(row.where(), "in init at step 2, node fc1");
  row.idle_s = 1.5, row.events = Json::parse(R"([{"step": 1}])");
  EXPECT_EQ(Json::parse(crash_text(row, {1, 65, "why"})),
            Json::parse(R"({"rank": 3, "host": "h", "pid": 7, "phase": "init",
      "step": 2, "node": "fc1", "idle_s": 1.5, "ended_by": {"rank": 1, "code": 65, "text": "why"}, "events": [{"step": 1}]})"));
}

TEST(RankTable, SilenceIsJudgedWhenItsTimeIsUp) {
  RankTable silent = table_of_two();  // ten seconds of fifteen
  EXPECT_FALSE(silent.judge(109.99, {}));
  ASSERT_TRUE(silent.judge(110, {}));
  EXPECT_EQ(silent.verdict()->text,
            "rank 0 on vt1 (pid 40) is stopped: it has said nothing for 10.0 s, last seen in init");
  EXPECT_EQ(silent.verdict()->loss, Loss::kVanished);
  RankTable cut = table_of_two();
  ASSERT_TRUE(cut.judge(110, [](int rank) { return rank == 0; }));
  EXPECT_EQ(
      cut.verdict()->text,
      "rank 0 on vt1 (pid 40) is cut off: nothing sent to it was acknowledged for 10.0 s, last seen in init");
  EXPECT_EQ(cut.verdict()->loss, Loss::kUnreachable);
  RankTable paused = table_of_two();  // three tenths of that are told
  EXPECT_EQ(paused.report(told_by(0, "init"), 102.99), "");
  EXPECT_EQ(
      paused.report(told_by(1, "init"), 103),
      "rank 1 on vt1 (pid 41) was silent for 3.0 s in init: stopped, or without a processor; it goes on");
}

TEST(RankTable, EachPhaseMayBeIdleSoLong) {
  const std::pair<const char*, double> limits[] = {{"init", 600},      {"forward", 300},    {"update", 300},
                                                   {"reduction", 300}, {"evaluation", 600}, {"save", 1200}};
  for (const auto& [phase, seconds] : limits) {
    RankTable table = table_of_two();
    table.report(told_by(0, phase, seconds - 0.1), 101);
    EXPECT_FALSE(table.judge(101, {})) << phase;
    table.report(told_by(0, phase, seconds), 101);
    ASSERT_TRUE(table.judge(101, {})) << phase;
    EXPECT_EQ(table.verdict()->text,
              strf("rank 0 on vt1 (pid 40) hangs: nothing has happened for %.0f s in %s", seconds, phase));
    EXPECT_EQ(table.verdict()->loss, Loss::kVanished);
  }
}

TEST(RankTable, LossesAreOfTheirKind) {
  RankTable killed = table_of_two(), failed = table_of_two(), late = table_of_two(),
            absent(2, {.deadline_s = 1}, 100);
  killed.gone(1);
  EXPECT_EQ(killed.judge(101, {})->loss, Loss::kVanished);
  failed.failed(1, 65, false, "why", 101);
  EXPECT_EQ(failed.judge(101, {})->loss, Loss::kTold);
  EXPECT_EQ(failed.verdict()->text, "rank 1 on vt1 (pid 41) failed in init: why");
  late.failed(1, 69, true, "lost", 101);
  EXPECT_FALSE(late.judge(101.99, {}));
  EXPECT_TRUE(late.judge(102, {})) << "a second is given to the cause";
  EXPECT_FALSE(absent.judge(107.99, {}));
  EXPECT_EQ(absent.judge(108, {})->loss, Loss::kUnreachable);
  EXPECT_EQ(absent.verdict()->text, "ranks 0, 1 of 2 never came within 8 s");
  EXPECT_EQ(absent.verdict()->rank, 0);
}

TEST(Heartbeat, AddressesHaveHostPortAndWord) {
  const auto said = [](const char* address) {
    return thrown_by([&] { liveness::Heartbeat beat({.address = address, .limits = {.deadline_s = 0.3}}); });
  };
  for (const char* none : {"host", "host:1", "host/word", "a/b:1"})
    EXPECT_EQ(said(none), std::string("comm: \"") + none + "\" is no address that ranks report to");
  for (const char* port : {"h:0/w", "h:65536/w", "h:x/w", "h:/w"})
    EXPECT_EQ(said(port), std::string("comm: \"") + port + "\" has no port");
  const liveness::Watch watch({.ranks = 1, .host = "127.0.0.1"});
  const std::string& address = watch.address();
  EXPECT_TRUE(address.starts_with("127.0.0.1:"));
  EXPECT_EQ(address.size() - address.find('/'), 25u) << "a word of 24 digits";
  EXPECT_NE(
      address.substr(address.find('/')),
      liveness::Watch({.ranks = 1}).address().substr(liveness::Watch({.ranks = 1}).address().find('/')));
}

}  // namespace
}  // namespace vitrail
