// What a case has measured: taken from what its command printed or left, written, read back and checked.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "study_made.h"
#include "temp_folder.h"
#include "thrown.h"

namespace vitrail {
namespace {

TEST(CaseResult, OfOneProcessIsInMilliseconds) {
  const CaseResult r = from_bench(made_case(1, 8),
                                  "note\n"
                                  R"({"batch": 8, "ms_median": 20, "img_per_s": 400,
      "memory_peak": 64, "loss": 2.5})");
  EXPECT_DOUBLE_EQ(r.update_s, 0.02);
  EXPECT_EQ(r.images_per_s, 400);
  EXPECT_EQ(r.memory_bytes, 64);
  EXPECT_EQ(r.loss, 2.5);
  EXPECT_EQ(r.sent_bytes, 0);
  ASSERT_EQ(r.ranks.size(), 1u);
  EXPECT_DOUBLE_EQ(r.ranks[0].compute_s, 0.02);
  EXPECT_EQ(r.ranks[0].exposed_s, 0);
}

std::string of_two_ranks(const char* batch = "16", const char* ranks = "2", const char* median = "0.5") {
  return strf(R"({"ranks": %s, "batch": %s, "update_s": {"median": %s}, "images_per_second": 32,
      "memory_peak": 100, "loss": 1.5, "sent_bytes": 7, "timing": {"updates": 4, "compute_s": [1, 2],
      "exposed_s": [0.5, 0.25], "data_wait_s": [0.25, 0.125], "hidden_s": [4, 8], "imbalance_s": [16, 32]}})",
              ranks, batch, median);
}

TEST(CaseResult, OfSeveralRanksHasTheTimesOfAnUpdate) {
  const CaseResult r = from_bench(made_case(2, 8), of_two_ranks());
  EXPECT_EQ(r.update_s, 0.5);
  EXPECT_EQ(r.images_per_s, 32);
  EXPECT_EQ(r.sent_bytes, 7);
  ASSERT_EQ(r.ranks.size(), 2u);
  const double expected[2][5] = {{0.25, 0.125, 0.0625, 1, 4}, {0.5, 0.0625, 0.03125, 2, 8}};
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(r.ranks[i].compute_s, expected[i][0]);
    EXPECT_EQ(r.ranks[i].exposed_s, expected[i][1]);
    EXPECT_EQ(r.ranks[i].data_wait_s, expected[i][2]);
    EXPECT_EQ(r.ranks[i].hidden_s, expected[i][3]);
    EXPECT_EQ(r.ranks[i].imbalance_s, expected[i][4]);
  }
}

TEST(CaseResult, WhatWasNotAskedForIsRefused) {
  const auto said = [](const StudyCase& one, const std::string& out) {
    return thrown_by([&] { from_bench(one, out); });
  };
  const StudyCase two = made_case(2, 8);
  EXPECT_EQ(said(two, of_two_ranks("15")),
            "data: vit.cpu.threads.r2.b8: 16 images were asked for and 15 measured");
  EXPECT_EQ(said(two, of_two_ranks("16", "3")),
            "data: vit.cpu.threads.r2.b8: 2 ranks were asked for and 3 measured");
  EXPECT_EQ(said(two, R"({"batch": 16, "ms_median": 1})"),
            "data: vit.cpu.threads.r2.b8: 2 ranks were asked for and 1 measured");
  EXPECT_EQ(said(two, of_two_ranks("16", "2", "0")), "data: vit.cpu.threads.r2.b8: an update took no time");
  EXPECT_EQ(said(two, "killed"), "data: vit.cpu.threads.r2.b8: the command printed no result");
}

TEST(CaseResult, OfAnAllReduceIsThatOfItsTransport) {
  const std::string out =
      R"({"copy": {"ms_median": 9}, "threads": {"ranks": 2, "ms_median": 4}, "mpi": {"ranks": 2, "ms_median": 8}})";
  StudyCase one = made_message(2, 1, 0).which;
  EXPECT_EQ(from_all_reduce(one, out).message_s, 0.004);
  for (const char* transport : {"mpi", "nodes"}) {
    one.transport = transport;
    EXPECT_EQ(from_all_reduce(one, out).message_s, 0.008) << transport;
  }
  one.ranks = 4;
  EXPECT_EQ(thrown_by([&] { from_all_reduce(one, out); }),
            "data: all-reduce.nodes.r4.1MB: 4 ranks were asked for and 2 measured");
  EXPECT_EQ(thrown_by([&] { from_all_reduce(one, R"({"threads": {}})"); }),
            "data: all-reduce.nodes.r4.1MB: no all-reduce over mpi came");
}

TEST(CaseResult, OfAPlanIsItsOnlyMesh) {
  const StudyCase one = made_case(2, 8);
  EXPECT_EQ(from_plan(one, R"({"network": "n", "meshes": [{"update_s": 0.25}, {"update_s": 9}]})"), 0.25);
  for (const char* out : {"{}", R"({"meshes": []})", R"({"meshes": 1})", R"({"meshes": [{"mesh": "dp=2"}]})",
                          R"({"meshes": [{"update_s": 0}]})"})
    EXPECT_EQ(thrown_by([&] { from_plan(one, out); }),
              "data: vit.cpu.threads.r2.b8: the plan has no time of an update")
        << out;
  EXPECT_EQ(thrown_by([&] { from_plan(one, "error"); }),
            "data: vit.cpu.threads.r2.b8: the command printed no result");
}

CaseResult whole_result() {
  CaseResult r = made_result(made_case(2, 8, 3), 0.5, 0.125);
  r.which.fraction = 0.5;
  r.time = 1000, r.took_s = 12, r.sent_bytes = 7, r.memory_bytes = 9, r.loss = 0.75;
  r.ranks[0].data_wait_s = 0.03, r.ranks[1].hidden_s = 0.04;
  r.epochs = {{1, 10, 2, 3, 0.25, 40}};
  r.gpus = {{1, "T4", 0.5, 60, 100, 200, 70}};
  return r;
}

const char* const kWhole = R"({"case": "vit.cpu.threads.r2.b8.f0.5.3", "kind": "steps", "model": "vit",
  "device": "cpu", "transport": "threads", "ranks": 2, "batch": 8, "fraction": 0.5, "megabytes": 0.0,
  "repetition": 3, "error": "", "time": 1000.0, "took_s": 12.0, "update_s": 0.5, "images_per_s": 32.0,
  "rank_times": {"compute_s": [0.375, 0.375], "exposed_s": [0.125, 0.125], "data_wait_s": [0.03, 0.0],
                 "hidden_s": [0.0, 0.04], "imbalance_s": [0.0625, 0.0625]},
  "sent_bytes": 7.0, "memory_bytes": 9.0, "loss": 0.75, "message_s": null,
  "epochs": [{"epoch": 1, "seconds": 10.0, "train_loss": 2.0, "eval_loss": 3.0, "top1": 0.25,
              "updates": 40.0}],
  "gpus": [{"id": 1, "name": "T4", "load": 0.5, "temperature": 60.0, "used_bytes": 100.0,
            "total_bytes": 200.0, "watts": 70.0}]})";

TEST(CaseResult, IsKeptWhole) {
  const CaseResult r = whole_result();
  EXPECT_EQ(to_json(r), nlohmann::ordered_json::parse(kWhole));
  const CaseResult back = result_from(r.which, Json::parse(kWhole), "file");
  EXPECT_EQ(to_json(back), to_json(r));
  CaseResult failed{.which = made_case(2, 8), .error = "no luck"};
  failed.which.batch = 8;
  const auto json = to_json(failed);
  EXPECT_TRUE(json["update_s"].is_null() && json["time"].is_null() && !json.contains("epochs"));
  EXPECT_EQ(result_from(failed.which, Json::parse(json.dump()), "file").error, "no luck");
}

// Records of older programs lack times that were not taken yet.
TEST(CaseResult, TimesThatARecordLacksAreNone) {
  Json json = Json::parse(kWhole);
  json["rank_times"] = Json::parse(R"({"compute_s": [0.375, 0.25], "hidden_s": 5})");
  const CaseResult r = result_from(whole_result().which, json, "file");
  ASSERT_EQ(r.ranks.size(), 2u);
  EXPECT_EQ(r.ranks[1].compute_s, 0.25);
  for (const RankTime& rank : r.ranks)
    EXPECT_EQ(rank.exposed_s + rank.data_wait_s + rank.hidden_s + rank.imbalance_s, 0);
}

// The last value that is taken, and the first that is not.
TEST(CaseResult, LimitsOfARecordAreMetExactly) {
  const StudyCase one = whole_result().which;
  const auto said = [&](const char* pointer, const Json& value) {
    Json json = Json::parse(kWhole);
    json[Json::json_pointer(pointer)] = value;
    return thrown_by([&] { result_from(one, json, "file"); });
  };
  const std::string remedy = " | remove the file, and the same command measures that case again";
  for (const char* key : {"/took_s", "/rank_times/hidden_s/1", "/epochs/0/seconds"}) {
    EXPECT_EQ(said(key, 1e9), "nothing") << key;
    EXPECT_EQ(said(key, 0), "nothing") << key;
    EXPECT_TRUE(said(key, 1.1e9).ends_with("is 1.1e+09 and no number from 0 to 1e+09" + remedy) ||
                said(key, 1.1e9).ends_with("is 1100000000.0 and no number from 0 to 1e+09" + remedy))
        << said(key, 1.1e9);
  }
  for (const char* key : {"/sent_bytes", "/memory_bytes", "/gpus/0/used_bytes", "/gpus/0/total_bytes"}) {
    EXPECT_EQ(said(key, 1e18), "nothing") << key;
    EXPECT_NE(said(key, 1.1e18).find("no number from 0 to 1e+18"), std::string::npos) << said(key, 1.1e18);
  }
  EXPECT_EQ(said("/epochs/0/top1", 1), "nothing");
  EXPECT_NE(said("/epochs/0/top1", 1.01).find("file: epochs.top1 is 1.01"), std::string::npos);
  EXPECT_EQ(said("/epochs/0/updates", 1e12), "nothing");
  EXPECT_NE(said("/epochs/0/updates", 1.1e12).find("file: epochs.updates is "), std::string::npos);
  EXPECT_EQ(said("/gpus/0/id", "a"), "data: file: gpus.id is no number" + remedy);
  EXPECT_EQ(said("/epochs/0/epoch", 1.5), "data: file: epochs.epoch is no number" + remedy);
  // 16 images in half a second are 32 a second, within a twentieth.
  EXPECT_EQ(said("/images_per_s", 32 * 1.049), "nothing");
  EXPECT_EQ(said("/images_per_s", 32 * 0.951), "nothing");
  EXPECT_EQ(said("/images_per_s", 30),
            "data: file: images_per_s is 30, and 16 images in update_s = 0.5 are 32 a second" + remedy);
  EXPECT_NE(said("/images_per_s", 32 * 1.051), "nothing");
  EXPECT_EQ(said("/update_s", 0), "data: file: update_s: an update took no time" + remedy);
  EXPECT_EQ(said("/case", "other"),
            "data: file holds the case \"other\" | remove the file, a record of another case, and the study "
            "measures this one again");
  const CaseResult sum = made_message(2, 1, 0);
  EXPECT_EQ(thrown_by([&] { result_from(sum.which, Json::parse(to_json(sum).dump()), "file"); }),
            "data: file: message_s: a message took no time" + remedy);
}

// Epochs of 6 and 4 updates, logged by four: the second four belong to both. By hand: 4 x 0.5 s and half of
// 4 x 0.1 s; the other half and 2 x 0.2 s.
TEST(CaseResult, OfATrainingRunIsReadFromItsFolder) {
  const TempFolder temp;
  const auto timing = [](int step, int updates, const char* update_s, const char* seconds) {
    return strf(R"({"kind": "timing", "step": %d, "updates": %d, "update_s": %s, "compute_s": [%s, 1],)"
                R"( "exposed_s": [2, 3], "data_wait_s": [4, 5], "hidden_s": [6, 7], "imbalance_s": [8, 9],)"
                R"( "collectives": [{"kind": "all_reduce", "count": 1, "bytes": 100, "seconds": 1},)"
                R"( {"kind": "broadcast", "count": 1, "bytes": 10, "seconds": 1}]})"
                "\n",
                step, updates, update_s, seconds);
  };
  temp.file(
      "metrics.jsonl",
      timing(4, 4, "0.5", "10") +
          R"({"kind": "train", "step": 4, "loss": 3, "memory_bytes": 5})"
          "\n" +
          R"({"kind": "epoch", "step": 6, "epoch": 1, "train_loss": 2, "eval_loss": 1.5, "eval_top1": 0.5})"
          "\n" +
          timing(8, 4, "0.1", "20") + timing(10, 2, "0.2", "30") +
          R"({"kind": "train", "step": 10, "loss": 1, "memory_bytes": 6})"
          "\n" +
          R"({"kind": "epoch", "step": 10, "epoch": 2, "train_loss": 1, "eval_loss": 0.5, "eval_top1": 0.75})"
          "\n");
  const CaseResult r = from_run(made_case(2, 8), temp.path().string());
  ASSERT_EQ(r.epochs.size(), 2u);
  EXPECT_EQ(r.epochs[0].epoch, 1);
  EXPECT_NEAR(r.epochs[0].seconds, 2.2, 1e-12);
  EXPECT_NEAR(r.epochs[1].seconds, 0.6, 1e-12);
  EXPECT_EQ(r.epochs[0].updates, 6);
  EXPECT_EQ(r.epochs[1].updates, 4);
  EXPECT_EQ(r.epochs[0].train_loss, 2);
  EXPECT_EQ(r.epochs[0].eval_loss, 1.5);
  EXPECT_EQ(r.epochs[1].top1, 0.75);
  EXPECT_NEAR(r.update_s, 0.15, 1e-12) << "the median without the first";
  EXPECT_NEAR(r.images_per_s, 16 / 0.15, 1e-9);
  EXPECT_DOUBLE_EQ(r.sent_bytes, 3 * 110 / 10.0);
  EXPECT_EQ(r.memory_bytes, 6);
  EXPECT_EQ(r.loss, 1);
  ASSERT_EQ(r.ranks.size(), 2u);
  EXPECT_DOUBLE_EQ(r.ranks[0].compute_s, 6);
  EXPECT_DOUBLE_EQ(r.ranks[1].exposed_s, 0.9);
  EXPECT_DOUBLE_EQ(r.ranks[1].data_wait_s, 1.5);
  EXPECT_DOUBLE_EQ(r.ranks[0].hidden_s, 1.8);
  EXPECT_DOUBLE_EQ(r.ranks[0].imbalance_s, 2.4);
  const std::string path = (temp.path() / "metrics.jsonl").string();
  EXPECT_EQ(thrown_by([&] { from_run(made_case(4, 8), temp.path().string()); }),
            "data: " + path + ": 4 ranks were asked for and 2 have trained");
  temp.file("metrics.jsonl", timing(4, 4, "0.5", "10"));
  EXPECT_EQ(from_run(made_case(2, 8), temp.path().string()).update_s, 0.5) << "there is no other";
  temp.file("metrics.jsonl", "");
  EXPECT_EQ(thrown_by([&] { from_run(made_case(2, 8), temp.path().string()); }),
            "data: " + path + " tells no times of updates");
}

}  // namespace
}  // namespace vitrail
