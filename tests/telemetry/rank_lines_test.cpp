// Where the time of ranks went, as lines, tables and keys of metrics.jsonl.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run_folder.h"
#include "squeezed.h"
#include "telemetry/rank_times.h"
#include "telemetry/run_log.h"

namespace vitrail {
namespace {

using nlohmann::ordered_json;

// Two updates: rank 0 has 10 s, 6 of them compute; rank 1 has 8 s, all but one compute.
TimingStatus two_ranks() {
  TimingStatus s{.step = 12, .updates = 2, .ranks = {}, .collectives = {}, .time = 7};
  s.ranks = {{.compute_s = 6, .exposed_s = 3, .data_wait_s = 1, .hidden_s = 2, .imbalance_s = 1.5},
             {.compute_s = 7, .exposed_s = 1, .data_wait_s = 0, .hidden_s = 4, .imbalance_s = 0.5}};
  s.collectives = {{"all_reduce", 4, 8e6, 2}, {"receive", 2, 0, 1}};
  return s;
}

TEST(RankLine, RangesOverTheRanks) {
  EXPECT_DOUBLE_EQ(two_ranks().update_s(), 5);
  EXPECT_EQ(breakdown_line(two_ranks()),
            "2 updates of 5.00 s: compute 60-88 %, exposed 12-30 % (imbalance 6-15 %), data wait 0-10 %, "
            "hidden 20-50 %, "
            "all_reduce 4.00 MB/s");
  TimingStatus alone = two_ranks();
  alone.ranks.resize(1), alone.collectives.clear();
  EXPECT_EQ(breakdown_line(alone),
            "2 updates of 5.00 s: compute 60 %, exposed 30 % (imbalance 15 %), data wait 10 %, hidden 20 %");
  const std::string text = squeezed(breakdown_tables(two_ranks()));
  EXPECT_TRUE(text.starts_with("rank an update compute exposed of it imbalance data wait hidden\n")) << text;
  for (const char* part : {"\n0 5.00 s 60.00 % 30.00 % 15.00 % 10.00 % 20.00 %\n",
                           "\n1 4.00 s 87.50 % 12.50 % 6.25 % 0.00 % 50.00 %\n",
                           "\nall_reduce 2 3.81 MiB 500 ms 4.00 MB/s\n", "\nreceive 1 0 B 500 ms"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
  EXPECT_FALSE(text.ends_with('\n'));
  EXPECT_EQ(TimingStatus().update_s(), 0);
}

TEST(RankLine, LaterUpdatesAreAdded) {
  TimingStatus sum = two_ranks(), later = two_ranks();
  later.step = 20, later.updates = 3, later.time = 9;
  later.collectives = {{"broadcast", 1, 5, 0.5}, {"all_reduce", 1, 2e6, 1}};
  sum.add(later);
  EXPECT_EQ(sum.step, 20);
  EXPECT_EQ(sum.updates, 5);
  EXPECT_EQ(sum.time, 9);
  EXPECT_DOUBLE_EQ(sum.ranks[0].compute_s, 12);
  EXPECT_DOUBLE_EQ(sum.ranks[0].exposed_s, 6);
  EXPECT_DOUBLE_EQ(sum.ranks[0].data_wait_s, 2);
  EXPECT_DOUBLE_EQ(sum.ranks[1].hidden_s, 8);
  EXPECT_DOUBLE_EQ(sum.ranks[1].imbalance_s, 1);
  ASSERT_EQ(sum.collectives.size(), 3u);
  EXPECT_EQ(sum.collectives[0].count, 5);
  EXPECT_EQ(sum.collectives[0].bytes, 1e7);
  EXPECT_EQ(sum.collectives[0].seconds, 3);
  EXPECT_EQ(sum.collectives[2].kind, "broadcast");
}

TEST(RankLine, KeysAndHistory) {
  EXPECT_EQ(to_json(two_ranks()),
            ordered_json::parse(R"({"kind": "timing", "step": 12, "updates": 2, "update_s": 5.0,
      "compute_s": [6.0, 7.0], "exposed_s": [3.0, 1.0], "imbalance_s": [1.5, 0.5], "data_wait_s": [1.0, 0.0],
      "hidden_s": [2.0, 4.0], "collectives": [
        {"kind": "all_reduce", "count": 4, "bytes": 8e6, "seconds": 2.0, "bus_bytes_per_s": 4e6},
        {"kind": "receive", "count": 2, "bytes": 0.0, "seconds": 1.0, "bus_bytes_per_s": 0.0}], "time": 7.0})"));
  const StartStatus start{.step = 3, .phases = {{"plan", {0.5, 0.25}}, {"load", {1, 2}}}, .time = 4};
  EXPECT_EQ(to_json(start), ordered_json::parse(R"({"kind": "start", "step": 3, "phases": [
      {"phase": "plan", "seconds": [0.5, 0.25]}, {"phase": "load", "seconds": [1.0, 2.0]}], "time": 4.0})"));
  EXPECT_EQ(start_line(start), "start 2.50 s: plan 500 ms, load 2.00 s");
  const RunFolder folder;
  TimingStatus one = two_ranks();
  one.ranks.resize(1);
  {
    RunLog log(folder.path(), {.tensorboard = false});
    log.start({.step = 0, .phases = {{"first", {1}}}, .time = 0});
    log.timing(one);
    log.start(start);
    log.timing(two_ranks());
    log.timing(two_ranks());
  }
  const RankHistory history = read_rank_history(folder.file("metrics.jsonl"));
  ASSERT_TRUE(history.timing && history.start);
  EXPECT_EQ(history.timing->updates, 4) << "those of another number of ranks are left out";
  EXPECT_EQ(history.timing->ranks[1].imbalance_s, 1);
  EXPECT_EQ(history.timing->collectives[0].count, 8);
  EXPECT_EQ(history.start->phases[1].seconds, (std::vector<double>{1, 2})) << "the last one";
}

TEST(RankLine, WhatIsNoListIsNone) {
  const RunFolder folder;
  write_file(
      folder.file("metrics.jsonl"),
      R"({"kind": "timing", "step": 1, "updates": 2, "compute_s": [1, "x"], "exposed_s": 3, "collectives": 5})"
      "\n"
      R"({"kind": "start", "step": 0, "phases": "load"})"
      "\n");
  const RankHistory history = read_rank_history(folder.file("metrics.jsonl"));
  ASSERT_TRUE(history.timing && history.start);
  ASSERT_EQ(history.timing->ranks.size(), 2u);
  EXPECT_EQ(history.timing->ranks[0].compute_s, 1);
  EXPECT_EQ(history.timing->ranks[0].exposed_s + history.timing->ranks[1].compute_s, 0);
  EXPECT_TRUE(history.timing->collectives.empty() && history.start->phases.empty());
}

}  // namespace
}  // namespace vitrail
