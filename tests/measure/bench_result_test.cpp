// What benchmarks tell of a result, of one process and of several ranks: rates, units and refusals by hand.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/engine.h"
#include "measure/bench.h"
#include "measure/rank_infer.h"
#include "measure/rank_steps.h"
#include "models/vit_params.h"
#include "telemetry/table.h"
#include "temp_folder.h"
#include "thrown.h"

namespace vitrail {
namespace {

using nlohmann::ordered_json;

// 4 images in 20 ms: 200 a second; 3 GFLOP in that time are 150 GFLOP/s, a quarter of the peak.
BenchResult made_bench() {
  BenchResult r{.model = "vit", .device = "cpu (avx2, 2 threads)", .dtype = "f32", .batch = 4};
  r.peak_bytes = 3 << 20, r.flops = 3e9, r.model_flops = 5e9, r.peak_gflops = 600;
  r.seconds = {.count = 7, .min = 0.01, .median = 0.02, .p90 = 0.03, .max = 0.04};
  return r;
}

TEST(BenchResult, IsToldInMillisecondsAndShares) {
  BenchResult r = made_bench();
  EXPECT_DOUBLE_EQ(r.images_per_second(), 200);
  EXPECT_DOUBLE_EQ(r.gflops(), 150);
  const ordered_json json = to_json(r);
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, double>>{{"batch", 4},
                                                             {"runs", 7},
                                                             {"img_per_s", 200},
                                                             {"ms_median", 20},
                                                             {"ms_p90", 30},
                                                             {"ms_min", 10},
                                                             {"ms_max", 40},
                                                             {"gflops", 150},
                                                             {"model_gflop", 5},
                                                             {"peak_gflops", 600},
                                                             {"peak_fraction", 0.25},
                                                             {"memory_peak", 3 << 20}})
    EXPECT_NEAR(json.at(key).get<double>(), value, 1e-9) << key;
  EXPECT_EQ(json["device"], "cpu (avx2, 2 threads)");
  EXPECT_FALSE(json.contains("training") || json.contains("memory_foreign"));
  EXPECT_EQ(format_pairs(text_rows(r)),
            "model       vit, batch 4\n"
            "on          cpu (avx2, 2 threads)\n"
            "latency     20.0 ms median, 10.0 ms min, 30.0 ms p90, 40.0 ms max over 7 runs\n"
            "throughput  200 images/s\n"
            "rate        150 GFLOP/s, 25.0 % of the 600 GFLOP/s measured peak\n"
            "memory      3.00 MiB in arenas\n");
  r.training = true, r.peak_gflops = 0, r.foreign_bytes = 1 << 10;
  EXPECT_TRUE(to_json(r)["peak_gflops"].is_null() && to_json(r)["peak_fraction"].is_null());
  EXPECT_EQ(to_json(r)["training"], true);
  EXPECT_EQ(to_json(r)["memory_foreign"], 1024);
  const auto rows = text_rows(r);
  EXPECT_EQ(rows[2].first, "step");
  EXPECT_TRUE(rows[2].second.ends_with("over 7 steps"));
  EXPECT_EQ(rows[4].second, "150 GFLOP/s, of an unknown peak: the GPU has no room to measure it");
  EXPECT_EQ(rows.back(),
            (std::pair<std::string, std::string>{"foreign", "1.00 KiB of the driver and its libraries"}));
}

// A peak is known where it is above 0, however small it is.
TEST(BenchResult, SharesOfAnyPeakThatIsKnown) {
  BenchResult r = made_bench();
  for (const auto& [peak, share] : {std::pair{1.0, "15000.0 % of the 1.00 GFLOP/s measured peak"},
                                    {0.5, "30000.0 % of the 500 MFLOP/s measured peak"},
                                    {150.0, "100.0 % of the 150 GFLOP/s measured peak"},
                                    {0.0, "of an unknown peak: the GPU has no room to measure it"}}) {
    r.peak_gflops = peak;
    EXPECT_EQ(text_rows(r)[4].second, std::string("150 GFLOP/s, ") + share);
    EXPECT_EQ(to_json(r)["peak_gflops"].is_null(), peak == 0);
  }
}

TEST(BenchResult, CountsTheWorkOfABatch) {
  VitConfig config;
  config.image_height = config.image_width = 32, config.patch = 16;
  config.width = 8, config.heads = 2, config.mlp = 16, config.depth = 2, config.classes = 5;
  const Engine engine(config, {.threads = 1, .batch = 3});
  const BenchResult r = described(engine, "mine", "f32");
  EXPECT_EQ(r.model, "mine");
  EXPECT_EQ(r.batch, 3);
  EXPECT_EQ(r.peak_bytes, engine.plan().memory.peak_bytes());
  EXPECT_EQ(r.model_flops, 6.0 * static_cast<double>(count_macs(config)));
  EXPECT_LT(r.flops, r.model_flops) << "the last block computes the class token alone";
  EXPECT_GT(r.flops, 0.5 * r.model_flops);
}

TEST(SavedBench, OnlyTheSameWorkIsCompared) {
  const TempFolder temp;
  ordered_json json = to_json(made_bench());
  const std::string path = temp.file("saved.json", json.dump());
  const SavedBench saved = SavedBench::read(path);
  EXPECT_DOUBLE_EQ(saved.seconds(), 0.02);
  EXPECT_EQ(saved.path(), path);
  EXPECT_EQ(thrown_by([&] { saved.refuse_another(made_bench()); }), "nothing");
  const auto refused = [&](auto change) {
    BenchResult other = made_bench();
    change(other);
    return thrown_by([&] { saved.refuse_another(other); });
  };
  EXPECT_EQ(
      refused([](BenchResult& r) { r.training = true; }),
      "usage: " + path +
          " measured bench infer of vit at batch 4 in f32 on cpu (avx2, 2 threads); this run is bench train "
          "of vit at batch 4 in f32 on cpu (avx2, 2 threads) | the same command, model, batch, type, threads "
          "and instruction set, or without --compare");
  for (const auto& change : std::initializer_list<void (*)(BenchResult&)>{
           [](BenchResult& r) { r.model = "other"; }, [](BenchResult& r) { r.batch = 5; },
           [](BenchResult& r) { r.dtype = "bf16"; }, [](BenchResult& r) { r.device = "cuda"; }})
    EXPECT_TRUE(refused(change).starts_with("usage: "));
  json["training"] = true;
  EXPECT_EQ(thrown_by([&] {
              BenchResult same = made_bench();
              same.training = true;
              SavedBench::read(temp.file("t.json", json.dump())).refuse_another(same);
            }),
            "nothing");
  for (const char* change : {R"({"model": 1})", R"({"device": null})", R"({"dtype": 2})", R"({"batch": 1.5})",
                             R"({"ms_median": "x"})", R"({"ms_median": 0})", R"({"ms_median": -1})"}) {
    ordered_json bad = json;
    bad.update(ordered_json::parse(change));
    const std::string file = temp.file("bad.json", bad.dump());
    EXPECT_EQ(thrown_by([&] { SavedBench::read(file); }),
              "data: " + file +
                  " is no result of vitrail bench | one saved with: vitrail bench infer --json > FILE")
        << change;
  }
  EXPECT_TRUE(thrown_by([&] { SavedBench::read(temp.file("list.json", "[]")); }).starts_with("data: "));
}

TEST(SavedBench, SlackIsMoreTime) {
  EXPECT_EQ(thrown_by([] { require_speed(0.8, 0.25); }), "nothing") << "1 / 1.25";
  EXPECT_EQ(thrown_by([] { require_speed(0.799, 0.25); }),
            "check: slower than the saved result: 0.799 times its speed, at least 0.800 was asked for | "
            "--slack sets "
            "how much more time is accepted");
  EXPECT_EQ(thrown_by([] { require_speed(1, 0); }), "nothing");
}

TEST(RankStepsResult, SaysWhatRanksSpendOnEachOther) {
  RankStepsResult r{.ranks = 4, .transport = "threads", .mesh = "dp=4"};
  r.batch = 2000, r.seconds = {.count = 5, .min = 0.4, .median = 0.5, .p90 = 0.6, .max = 0.7};
  r.exposed_share = 0.25, r.waited_share = 0.125, r.sent_bytes = 2048, r.flight_s = 0.1,
  r.hidden_share = 0.375;
  r.loss = 1.5, r.steps = 23, r.peak_bytes = 77;
  EXPECT_EQ(to_text(r),
            "ranks          4 (threads), dp=4\n"
            "update         500 ms of 2,000 images, median of 5\n"
            "throughput     4.00 K img/s\n"
            "communication  25.0 % of the time within collectives, 12.5 % waiting; 2.00 KiB sent an update "
            "by a rank\n"
            "hidden         37.5 % of the 100 ms that collectives took an update, within compute\n"
            "loss           1.500000 after 23 steps\n");
  r.devices = "nccl";
  EXPECT_NE(to_text(r).find("4 (threads, nccl), dp=4"), std::string::npos);
  ordered_json json = to_json(r);
  json.erase("timing");
  EXPECT_EQ(json, ordered_json::parse(R"({"ranks": 4, "transport": "threads", "mesh": "dp=4", "batch": 2000,
      "update_s": {"median": 0.5, "min": 0.4, "p90": 0.6}, "images_per_second": 4000.0, "devices": "nccl",
      "loss": 1.5, "exposed_share": 0.25, "flight_s": 0.1, "hidden_share": 0.375, "waited_share": 0.125,
      "sent_bytes": 2048.0, "memory_peak": 77})"));
  r.each = {0.25, 0.75}, r.computes = {{0.125, 0.5}, {0.25, 0.75}};
  EXPECT_EQ(to_json(r)["update_s"]["each"], ordered_json::parse("[0.25, 0.75]"));
  EXPECT_EQ(to_json(r)["compute_s"], ordered_json::parse("[[0.125, 0.5], [0.25, 0.75]]"));
  r.each.resize(kMostTold);
  EXPECT_EQ(to_json(r)["update_s"]["each"].size(), kMostTold);
  r.each.resize(kMostTold + 1);
  EXPECT_FALSE(to_json(r).contains("compute_s")) << "too many to be told";
}

TEST(RankInferResult, ComparesWithOneRank) {
  RankInferResult r;
  r.shared = {.batch = 8,
              .threads = 1,
              .peak_bytes = 1 << 20,
              .seconds = {.count = 3, .min = 0.1, .median = 0.2, .p90 = 0.3, .max = 0.4}};
  r.alone = {.batch = 4,
             .threads = 2,
             .peak_bytes = 2 << 20,
             .seconds = {.count = 3, .min = 0.2, .median = 0.25, .p90 = 0.4, .max = 0.5}};
  r.exposed_share = 0.125, r.difference = 1e-6;
  EXPECT_DOUBLE_EQ(r.throughput_ratio(), 2.5);  // 40 images a second against 16
  EXPECT_DOUBLE_EQ(r.latency_ratio(), 1.25);
  const auto rows = text_rows(r);
  EXPECT_EQ(rows[0].second,
            "200 ms median, 100 ms min, 300 ms p90 at batch 8; 40.0 images/s; 1 thread and 1.00 MiB a rank");
  EXPECT_EQ(rows[1].second,
            "250 ms median, 200 ms min, 400 ms p90 at batch 4; 16.0 images/s; 2 threads and 2.00 MiB a rank");
  EXPECT_EQ(rows[2].second,
            "2.500 of its throughput, 1.250 of its speed for a batch, median of 3 runs each in turn");
  EXPECT_EQ(rows[3].second, "12.5 % of the time within collectives");
  EXPECT_EQ(rows[4].second, "at most 1e-06 apart");
  const ordered_json json = to_json(r);
  EXPECT_EQ(json["shared"],
            ordered_json::parse(R"({"batch": 8, "threads": 1, "ms_median": 200.0, "ms_p90": 300.0,
      "ms_min": 100.0, "ms_max": 400.0, "img_per_s": 40.0, "memory_peak": 1048576})"));
  EXPECT_EQ(json["alone"]["threads"], 2);
  EXPECT_EQ(json["throughput_ratio"], 2.5);
  EXPECT_EQ(json["latency_ratio"], 1.25);
  EXPECT_EQ(json["exposed_share"], 0.125);
  EXPECT_EQ(json["largest_difference"], 1e-6);
  EXPECT_EQ(json["runs"], 3);
}

}  // namespace
}  // namespace vitrail
