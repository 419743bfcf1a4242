// The plan of a cluster as it is told: tables, advice, failures, JSON and the timeline, from synthetic rows;
// and what the simulator keeps for them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backend/registry.h"
#include "models/vit_config.h"
#include "simulate/cluster_plan.h"
#include "simulate/one_device.h"
#include "simulate/simulator.h"
#include "source_root.h"
#include "squeezed.h"
#include "thrown.h"

namespace vitrail {
namespace {

using nlohmann::ordered_json;

ClusterRow made_row(int64_t dp, int64_t tp, double step_s) {
  ClusterRow row;
  row.mesh.dp = dp, row.mesh.tp = tp, row.mesh.sp = row.mesh.pp = 1, row.mesh.zero = 1;
  row.batch = 64, row.micro_batch = 8, row.accumulation = 2, row.peak_bytes = 3 << 20, row.fits = true;
  row.compute_s = 0.5, row.exposed_s = step_s - 0.875, row.bubble_s = 0.25, row.slowest_s = 0.125;
  row.step_s = step_s, row.hidden_s = 0.0625, row.images_s = 64 / step_s, row.efficiency = 0.5;
  return row;
}

ClusterPlan made_plan() {
  ClusterPlan plan{.network = "net",
                   .device = "D",
                   .nodes = 2,
                   .devices = 4,
                   .batch = 64,
                   .available_bytes = 4 << 20,
                   .slowest = 1.25};
  ClusterRow full = made_row(2, 4, 3), refused;
  full.fits = false;
  refused.mesh.dp = 8, refused.refused = "no heads";
  plan.rows = {made_row(8, 1, 1), made_row(4, 2, 1.25), full, refused};
  plan.rows[0].exchanges[{CollectiveKind::kAllReduce, AxisSet(Axis::kData).bits()}] = {
      3, 2048, 0.5, Algorithm::kTree, 1024};
  plan.rows[0].exchanges[{CollectiveKind::kSend, AxisSet(Axis::kPipeline).bits()}] = {1, 1024, 0.25,
                                                                                      Algorithm::kRing, 1024};
  return plan;
}

void expect_told(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(squeezed(text).find(part), std::string::npos) << part << "\n" << text;
}

TEST(ClusterReport, TextTellsRowsAndAdvice) {
  ClusterPlan plan = made_plan();
  expect_told(
      to_text(plan),
      {"cluster 2 nodes of 4 devices, net\n", "device D, 4.00 MiB available\n", "batch 64 images an update\n",
       "times predicted node by node for D\n",
       "slowest the slowest of 8 devices is expected to take 1.250 times as long as one\n",
       "dp=8 1 2 x 8 1.00 s 500 ms 125 ms 62.5 ms 250 ms 125 ms 64.0 50.0 % 3.00 MiB\n",
       "dp=2 tp=4 1 2 x 8 3.00 s 500 ms 2.12 s 62.5 ms 250 ms 125 ms 21.3 50.0 % 3.00 MiB does not fit\n",
       "dp=8 0 no heads\n", "Advice: dp=8, ZeRO 1, 2 x 8 images: 1.00 s an update, 64.0 img/s.\n",
       ("Runner-up: dp=4 tp=2, ZeRO 1, 2 x 8 images: 25.0 % longer (250 ms more exposed communication), 3.00 "
        "MiB of memory instead of 3.00 MiB.\n"),
       "The collectives of the first:\n", "all_reduce dp 3 2.00 KiB 500 ms tree\n",
       "send pp 1 1.00 KiB 250 ms\n"});
  plan.rows[1].host_s = 0.5, plan.rows[1].compute_s = 0.25, plan.rows[1].bubble_s = 0.2519,
  plan.rows[1].exposed_s = 0.125;
  expect_told(to_text(plan), {"(500 ms more waiting for the host, 250 ms less compute)",
                              "Offload assumes 12 GB/s between host and device and ",
                              "dp=8 1 2 x 8 1.00 s 500 ms 125 ms 62.5 ms 250 ms 125 ms 0 us 64.0"});
  plan.rows[1].host_s = 0, plan.rows[1].compute_s = 0.5;
  expect_told(to_text(plan), {"(nothing that counts)"});
  plan.rows.erase(plan.rows.begin() + 1);
  expect_told(to_text(plan), {"Nothing else runs.\n"});
  plan.rows.erase(plan.rows.begin());
  expect_told(to_text(plan), {"No mesh runs: none fits into 4.00 MiB a device.\n"});
  EXPECT_EQ(plan.best(), nullptr);
  plan.rows.resize(1), plan.one_device_s = 0.25;
  expect_told(to_text(plan), {"times 250 ms an update of one device, as measured\n",
                              "64 images an update, 16 of them on each of the 2 groups of 4 devices\n"});
}

// What is refused is said in the last column, whose cells have no title.
TEST(ClusterReport, WhyARowIsRefusedStandsBelowTheOtherRemarks) {
  const std::string text = to_text(made_plan());
  const auto column = [&](const char* remark) {
    const size_t at = text.find(remark);
    EXPECT_NE(at, std::string::npos) << text;
    return at - text.rfind('\n', at);
  };
  EXPECT_EQ(column("no heads"), column("does not fit")) << text;
}

TEST(ClusterReport, FailuresAreTold) {
  ClusterPlan plan = made_plan();
  plan.failures = {{.mtbf_s = 10000, .checkpoint_s = 50, .restart_s = 100}, 600};
  expect_told(to_text(plan),
              {"A failure every 2 h 46 min on the average, a checkpoint takes 50.0 s, a restart 1 min 40 s\n",
               "Young 16 min 40 s ", "train.save_minutes 10 min 00 s "});
  const ordered_json json = to_json(plan)["failures"];
  EXPECT_EQ(json["mtbf_s"], 10000);
  EXPECT_EQ(json["checkpoint_s"], 50);
  EXPECT_EQ(json["restart_s"], 100);
  EXPECT_EQ(json["intervals"]["Young"]["seconds"], 1000);
  EXPECT_EQ(json["intervals"]["Young"]["effective"], effective_share(plan.failures->model, 1000));
}

TEST(ClusterReport, JsonTellsEveryNumber) {
  const ClusterPlan plan = made_plan();
  ordered_json json = to_json(plan);
  EXPECT_EQ(json["meshes"][0],
            ordered_json::parse(R"({"mesh": "dp=8", "dp": 8, "tp": 1, "sp": 1, "pp": 1, "zero": 1,
      "micro_batch": 8, "accumulation": 2, "update_s": 1.0, "compute_s": 0.5, "exposed_s": 0.125, "hidden_s": 0.0625,
      "bubble_s": 0.25, "slowest_s": 0.125, "host_s": 0.0, "images_s": 64.0, "efficiency": 0.5, "memory": 3145728,
      "fits": true, "collectives": [
        {"kind": "all_reduce", "along": "dp", "count": 3, "bytes": 2048.0, "seconds": 0.5, "algorithm": "tree"},
        {"kind": "send", "along": "pp", "count": 1, "bytes": 1024.0, "seconds": 0.25, "algorithm": "ring"}]})"));
  EXPECT_EQ(json["meshes"][3]["refused"], "no heads");
  EXPECT_FALSE(json["meshes"][3].contains("update_s"));
  json.erase("meshes");
  EXPECT_EQ(json,
            ordered_json::parse(R"({"network": "net", "target": "D", "nodes": 2, "devices": 4, "batch": 64,
      "memory_available": 4194304, "slowest": 1.25, "advice": "dp=8", "runner_up": "dp=4 tp=2"})"));
}

TEST(ClusterReport, TheTimelineIsInMicroseconds) {
  ClusterRow row;
  row.span_ranks = {5};
  row.spans = {{0, false, "matmul", 1, 1.5}, {0, true, "sum", 2, 4}};
  const ordered_json events = trace_of(row)["traceEvents"];
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["args"]["name"], "rank 5");
  EXPECT_EQ(events[1]["args"]["name"], "compute");
  EXPECT_EQ(
      events[2],
      ordered_json::parse(
          R"({"name": "thread_name", "ph": "M", "pid": 0, "tid": 1, "args": {"name": "communication"}})"));
  EXPECT_EQ(
      events[3],
      ordered_json::parse(
          R"({"name": "matmul", "cat": "compute", "ph": "X", "ts": 1e6, "dur": 5e5, "pid": 0, "tid": 0})"));
  EXPECT_EQ(
      events[4],
      ordered_json::parse(
          R"({"name": "sum", "cat": "communication", "ph": "X", "ts": 2e6, "dur": 2e6, "pid": 0, "tid": 1})"));
}

TEST(ClusterMeshes, ZeroNeedsSeveralAndPipelinesAllowOne) {
  VitConfig model;
  model.heads = 2, model.depth = 4;
  std::vector<std::string> found;
  for (const MeshConfig& mesh : sensible_meshes({}, model, 2, 2, true))
    found.push_back(to_string(mesh_of(mesh, 0)) + " z" + std::to_string(mesh.zero));
  EXPECT_EQ(found, (std::vector<std::string>{"dp=4 z0", "dp=4 z1", "dp=4 z2", "dp=4 z3", "dp=2 pp=2 z0",
                                             "dp=2 pp=2 z1", "pp=4 z0", "dp=2 sp=2 z0", "dp=2 sp=2 z1",
                                             "dp=2 sp=2 z2", "dp=2 sp=2 z3", "dp=2 tp=2 z0", "dp=2 tp=2 z1",
                                             "dp=2 tp=2 z2", "dp=2 tp=2 z3", "tp=2 pp=2 z0"}));
  model.depth = 3;
  for (const MeshConfig& mesh : sensible_meshes({}, model, 2, 2, true))
    EXPECT_LE(mesh.pp, 2) << "no more stages than blocks";
  const std::vector<FieldSpec> fields = cluster_fields();
  ASSERT_EQ(fields.size(), 6u);
  EXPECT_EQ(fields[1].usual, "1");
  EXPECT_EQ(fields[2].usual, "8");
  EXPECT_EQ(fields[3].usual, "");
}

ClusterRun tiny_run(int64_t micro_batch) {
  ClusterRun run;
  run.config.model.arch = "deit_tiny_patch16_224";
  run.config.train.micro_batch = micro_batch;
  run.classes = 10;
  run.target = file_target(read_device_file(VT_SOURCE_DIR "/configs/devices/h200.json"), 0, "");
  return run;
}

// Shares are rounded up to whole images and whole micro-batches, and count for their part.
TEST(OneDevice, SharesAreEven) {
  const ClusterRun run = tiny_run(8);
  OneDevice one(run, find_backend("cuda"));
  EXPECT_DOUBLE_EQ(one.share_seconds(16, 2, 8), one.seconds(8, 1));
  EXPECT_DOUBLE_EQ(one.share_seconds(16, 2, 4), one.seconds(4, 2));
  EXPECT_DOUBLE_EQ(one.share_seconds(10, 2, 4), one.seconds(4, 2) * 10 / 16);
  EXPECT_DOUBLE_EQ(one.share_seconds(1, 4, 8), one.seconds(1, 1) / 4);
  EXPECT_GT(one.seconds(4, 2), one.seconds(4, 1));
  EXPECT_EQ(one.share_micro_batch(64, 2), 32);
  ClusterRun tight = tiny_run(8);
  tight.target.available_bytes = one.plan(16, 2).peak_bytes();
  OneDevice small(tight, find_backend("cuda"));
  EXPECT_EQ(small.share_micro_batch(64, 2), 16) << "by halves";
  tight.target.available_bytes = 1;
  EXPECT_EQ(small.share_micro_batch(64, 2), 32) << "all of it where none fits";
  ClusterRun mixes = tiny_run(8);
  mixes.config.augment.mixup = 0.2, mixes.config.augment.mix_group = 4;
  ASSERT_TRUE(mixes.config.augment.mixes());
  OneDevice groups(mixes, find_backend("cuda"));
  EXPECT_DOUBLE_EQ(groups.share_seconds(10, 2, 8), groups.seconds(8, 1) * 10 / 16)
      << "five images are two groups of four";
}

TEST(ClusterPlan, LimitsOfSizesAreMetExactly) {
  const auto said = [](int64_t nodes, int64_t devices, double one_device_s = 0) {
    ClusterSettings settings;
    settings.cluster = "nowhere", settings.nodes = nodes, settings.devices = devices,
    settings.one_device_s = one_device_s;
    const std::string text = thrown_by([&] { plan_cluster(settings, {}, tiny_run(8)); });
    return text.substr(0, text.find(" | "));
  };
  const std::string passed = "data: no network \"nowhere\"";
  EXPECT_EQ(said(1 << 20, 4), passed);
  EXPECT_EQ(said((1 << 20) + 1, 1), "config: --nodes is 1048577; expected 1 to 1048576");
  EXPECT_EQ(said(1, 1024), passed);
  EXPECT_EQ(said(1, 1025), "config: --devices is 1025; expected 1 to 1024");
  EXPECT_EQ(said((1 << 20), 5), "config: --nodes times --devices is 5242880; expected 1 to 4194304");
  EXPECT_EQ(said(1, 1, 1e6), passed);
  EXPECT_EQ(said(1, 1, 1.1e6), "config: --one-device-s is 1100000; expected 0 to 1000000");
  ClusterSettings settings;
  settings.cluster = "dgx-a100", settings.devices = 2, settings.one_device_s = 1;
  ClusterRun every = tiny_run(8);
  every.every_mesh = true;
  EXPECT_EQ(thrown_by([&] { plan_cluster(settings, {VT_SOURCE_DIR "/configs/networks"}, every); }),
            "usage: --one-device-s is of one micro-batch, and meshes differ in theirs | --mesh dp=8, one "
            "mesh at a time");
  every.target.file.reset();
  EXPECT_EQ(thrown_by([&] { plan_cluster(settings, {}, every); }),
            "config: --cluster needs the speed of its devices | --target h200, or a file that bench "
            "calibrate wrote");
}

// Where neither a batch nor a micro-batch is given, meshes are compared with 64 images a device.
TEST(ClusterPlan, TheComparedBatchFollowsTheRun) {
  ClusterSettings settings;
  settings.cluster = "dgx-a100", settings.devices = 2;
  const auto batch = [&](int64_t micro_batch, int64_t accumulation) {
    ClusterRun run = tiny_run(micro_batch);
    run.config.train.accumulation = accumulation, run.every_mesh = true;
    return plan_cluster(settings, {VT_SOURCE_DIR "/configs/networks"}, run).batch;
  };
  EXPECT_EQ(batch(0, 0), 128);
  EXPECT_EQ(batch(4, 3), 24);
}

// An all-reduce of n bytes over two devices takes n seconds, and a second to begin.
TEST(Simulator, KeepsSpansAndExchanges) {
  const std::vector<Tier> tiers = {{"line", Topology::kSwitch, 2, 1, 0, 0}};
  const auto sum = [](double bytes) {
    return StepTask{.kind = StepTask::Kind::kCollective,
                    .name = "sum",
                    .exchange = CollectiveKind::kAllReduce,
                    .axes = Axis::kData,
                    .bytes = bytes};
  };
  const StepTasks step{{{{{.seconds = 3, .name = "work"}, sum(2), sum(4), sum(1)}, 1}}};
  const SimulatedStep result =
      simulate_step({{Mesh{{2, 1, 1, 1}, 1}, &step}}, tiers,
                    {.slowest = 2, .collective_s = 1, .algorithm = Algorithm::kHierarchical, .spans = true});
  EXPECT_DOUBLE_EQ(result.step_s, 6 + 3 + 5 + 2);
  EXPECT_DOUBLE_EQ(result.ranks[0].flight_s, 10);
  ASSERT_EQ(result.exchanges.size(), 1u);
  const ExchangeTimes& times = result.exchanges.begin()->second;
  EXPECT_EQ(times.count, 3);
  EXPECT_EQ(times.bytes, 7);
  EXPECT_EQ(times.seconds, 10);
  EXPECT_EQ(times.largest, 4);
  EXPECT_EQ(times.algorithm, Algorithm::kHierarchical);
  ASSERT_EQ(result.spans.size(), 4u);
  EXPECT_EQ(result.spans[0].name, "work");
  EXPECT_FALSE(result.spans[0].exchange);
  EXPECT_DOUBLE_EQ(result.spans[0].end, 6);
  EXPECT_TRUE(result.spans[2].exchange);
  EXPECT_DOUBLE_EQ(result.spans[2].begin, 9);
  EXPECT_DOUBLE_EQ(result.spans[2].end, 14);
  EXPECT_TRUE(simulate_step({{Mesh{{2, 1, 1, 1}, 1}, &step}}, tiers).spans.empty());
}

}  // namespace
}  // namespace vitrail
