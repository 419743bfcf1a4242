// What a plan tells: devices side by side, a run's estimate, its ranks, the host's part, and which questions
// exclude each other.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "api/settings.h"
#include "backend/registry.h"
#include "measure/fit_options.h"
#include "measure/inference_plan.h"
#include "measure/rank_tables.h"
#include "measure/run_estimate.h"
#include "measure/target_table.h"
#include "models/zoo.h"
#include "plan/node_times.h"
#include "source_root.h"
#include "squeezed.h"
#include "thrown.h"

namespace vitrail {
namespace {

using nlohmann::ordered_json;

const std::string kDevices = VT_SOURCE_DIR "/configs/devices/";

TEST(PlanQuestion, OptionsThatExcludeEachOther) {
  const auto asked = [](std::set<std::string> said) {
    return thrown_by(
        [&] { require_one_question([&](const std::string& key) { return said.contains(key); }); });
  };
  EXPECT_EQ(
      asked({"wanted-batch", "train.batch"}),
      "usage: --wanted-batch and --set train.batch ask for different things | one of them: plan answers "
      "--wanted-batch without --set train.batch");
  EXPECT_EQ(asked({"figure"}), "usage: --figure goes with --targets | --targets too, or neither");
  const std::pair<const char*, std::vector<const char*>> apart[] = {
      {"parameters", {"targets", "cluster", "wanted-batch", "dump-after"}},
      {"targets", {"target", "cluster", "wanted-batch", "dump-after"}},
      {"wanted-batch",
       {"dump-after", "batch", "train.batch", "train.micro_batch", "train.accumulation", "mesh.balance"}},
      {"cluster", {"dump-after"}}};
  for (const auto& [question, others] : apart)
    for (const char* other : others)
      EXPECT_TRUE(asked({question, other}).starts_with(std::string("usage: --") + question + " and "))
          << question << other;
  for (const char* other : {"one-device-s", "trace", "points"})
    EXPECT_TRUE(asked({"wanted-batch", "cluster", other}).starts_with("usage: --wanted-batch and --"))
        << other;
  for (const char* part : {"nodes", "devices", "one-device-s", "trace", "points"}) {
    EXPECT_EQ(asked({part}),
              std::string("usage: --") + part + " goes with --cluster | --cluster too, or neither");
    EXPECT_EQ(asked({part, "cluster"}), "nothing") << part;
  }
  EXPECT_EQ(asked({"wanted-batch", "cluster", "target"}), "nothing");
  EXPECT_EQ(asked({"parameters", "target"}), "nothing");
  for (const char* key : {"mesh", "mesh.dp", "mesh.tp", "mesh.sp", "mesh.pp", "mesh.zero"})
    EXPECT_TRUE(names_a_mesh([&](const std::string& said) { return said == key; })) << key;
  EXPECT_FALSE(names_a_mesh([](const std::string& said) { return said == "mesh.offload"; }));
}

std::vector<TargetRow> made_targets() {
  TargetRow roomy{.device = "A", .source = "measured", .problem = {}};
  roomy.needed_bytes = size_t{1} << 30, roomy.available_bytes = size_t{1} << 30, roomy.largest = 12;
  roomy.seconds = 0.5, roomy.images = 8, roomy.epoch_s = 90;
  TargetRow full = roomy, lacks = roomy;
  full.device = "B", full.available_bytes -= 1, full.epoch_s = 0, full.largest = 0;
  lacks.device = "C", lacks.problem = "no bf16";
  return {roomy, full, lacks};
}

TEST(TargetTable, SaysWhatFitsWhere) {
  std::vector<TargetRow> rows = made_targets();
  EXPECT_TRUE(rows[0].fits());
  EXPECT_FALSE(rows[1].fits() || rows[2].fits());
  const ordered_json json = to_json(rows);
  EXPECT_EQ(json[0],
            ordered_json::parse(R"({"device": "A", "source": "measured", "fits": true, "peak": 1073741824,
      "memory_available": 1073741824, "largest_batch": 12, "seconds": 0.5, "images_per_second": 16.0, "epoch_s": 90.0})"));
  EXPECT_EQ(json[1]["fits"], false);
  EXPECT_FALSE(json[1].contains("epoch_s"));
  EXPECT_EQ(json[2], ordered_json::parse(R"({"device": "C", "source": "measured", "problem": "no bf16"})"));
  std::string text = to_text(rows);
  EXPECT_NE(
      text.find("A       measured  yes   1.00 GiB  1.00 GiB             12  500 ms   16.0  1 min 30 s\n"),
      std::string::npos)
      << text;
  EXPECT_NE(squeezed(text).find("\nB measured no 1.00 GiB 1.00 GiB 0 500 ms 16.0\n"), std::string::npos)
      << "it has no epoch\n"
      << squeezed(text);
  EXPECT_TRUE(text.ends_with("C: no bf16\n")) << text;
  EXPECT_EQ(text.find("\nC "), std::string::npos) << "it has no row\n" << text;
  const Figure alone = memory_figure(rows);
  EXPECT_EQ(alone.title, "Memory that is needed, and that there is");
  EXPECT_NE(alone.body.find("A: needed 1 GiB"), std::string::npos) << alone.body;
  rows[0].available_bytes *= 3;
  EXPECT_NE(memory_figure(rows).body.find("A: available 3 GiB"), std::string::npos);
  EXPECT_NE(memory_figure(rows).body.find("A: needed 1 GiB"), std::string::npos);
  EXPECT_EQ(alone.body.find("C: "), std::string::npos);
  for (TargetRow& row : rows) row.model = "m" + row.device;
  EXPECT_EQ(to_json(rows)[1]["model"], "mB");
  EXPECT_TRUE(to_text(rows).ends_with("mC on C: no bf16\n"));
  EXPECT_TRUE(to_text(rows).starts_with("model  device  by"));
  EXPECT_NE(memory_figure(rows).body.find("mA, A: needed"), std::string::npos);
  for (TargetRow& row : rows) row.device = "D";
  EXPECT_EQ(memory_figure(rows).title, "Memory that is needed, and that there is on D");
  EXPECT_NE(memory_figure(rows).body.find("mA: needed"), std::string::npos);
  rows.resize(1);
  const std::vector<TargetRow> one = rows;  // no row lies behind it in memory
  EXPECT_EQ(memory_figure(one).title, "Memory that is needed, and that there is on D");
  EXPECT_EQ(memory_figure({}).title, "Memory that is needed, and that there is");
}

// The slowest first; what a device does not compute is its problem, unless it is everyone's.
TEST(TargetTable, DevicesComeByTheirTime) {
  const std::vector<std::string> files = {kDevices + "t4.json", kDevices + "xeon-amx-16.json",
                                          kDevices + "h200.json"};
  const auto rows = plan_on_all(files, {}, [](const PlanTarget& target, TargetRow& row) {
    EXPECT_EQ(row.available_bytes, target.available_bytes);
    if (target.device.compute == 75) throw Error(ErrorKind::kUsage, "no fp8");
    row.seconds = target.device.shares_host_memory ? 2 : 1;
  });
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].problem, "no fp8");
  EXPECT_EQ(rows[0].source, "data sheet");
  EXPECT_EQ(rows[1].seconds, 2);
  EXPECT_EQ(rows[2].seconds, 1);
  EXPECT_EQ(rows[2].source, "measured");
  const auto all_refuse = [&](ErrorKind kind) {
    return thrown_by(
        [&] { plan_on_all(files, {}, [&](const PlanTarget&, TargetRow&) { throw Error(kind, "no"); }); });
  };
  EXPECT_EQ(all_refuse(ErrorKind::kDevice),
            "usage: none of the devices computes this: " + read_device_file(files[0]).name +
                ": no | another --dtype, or --target with a device that has it");
  EXPECT_EQ(all_refuse(ErrorKind::kData), "data: no");
  EXPECT_TRUE(plan_on_all({}, {}, {}).empty());
}

TEST(InferencePlan, TellsOfRunAndTarget) {
  VitConfig config = find_architecture("vit_tiny_patch16_224").config;
  config.image_height = 32, config.image_width = 48;
  PlanTarget target = file_target(read_device_file(kDevices + "xeon-amx-16.json"), 0, "");
  target.foreign_bytes = 3 << 20;
  const InferencePlan plan(config, {.batch = 4}, target);
  const ordered_json json = to_json(plan);
  EXPECT_EQ(json["batch"], 4);
  EXPECT_EQ(json["nodes"], plan.plan.program.nodes.size());
  EXPECT_EQ(json["flops"], plan.plan.program.cost().flops);
  EXPECT_EQ(json["memory"]["peak"], plan.plan.memory.peak_bytes());
  EXPECT_EQ(json["memory_available"], target.available_bytes);
  EXPECT_EQ(json["memory_foreign"], 3 << 20);
  EXPECT_EQ(json["memory_lower_bound"],
            plan.plan.memory.persistent_bytes + plan.plan.memory.lower_bound_bytes);
  EXPECT_DOUBLE_EQ(json["run_s"].get<double>(), run_seconds(plan.plan, *target.file));
  EXPECT_EQ(json["target"], target.file->name);
  EXPECT_FALSE(json.contains("mesh"));
  size_t sum = 0;
  for (const auto& [name, bytes] : json["memory"].items()) sum += name == "peak" ? 0 : bytes.get<size_t>();
  EXPECT_EQ(sum, plan.plan.memory.peak_bytes());
  const std::string text = to_text(plan);
  EXPECT_NE(text.find("4 x 3 x 32 x 48, 7 tokens an image"), std::string::npos) << text;
  EXPECT_NE(text.find("3.00 MiB of the driver and its libraries, beside what is planned"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("ranks exchange"), std::string::npos);
  for (const size_t foreign : {0, 1}) {
    target.foreign_bytes = foreign;
    const InferencePlan other(config, {.batch = 4}, target);
    EXPECT_EQ(to_json(other).value("memory_foreign", 0), static_cast<int>(foreign));
    EXPECT_EQ(to_json(other).contains("memory_foreign"), foreign > 0);
    EXPECT_EQ(to_text(other).find("of the driver and its libraries") != std::string::npos, foreign > 0);
  }
  EXPECT_TRUE(plan.fits());
  target.available_bytes = plan.plan.memory.peak_bytes();
  EXPECT_TRUE(InferencePlan(config, {.batch = 4}, target).fits());
  EXPECT_EQ(InferencePlan(config, {.batch = 4}, target).largest_batch, 4);
  --target.available_bytes;
  EXPECT_FALSE(InferencePlan(config, {.batch = 4}, target).fits());
  EXPECT_LT(InferencePlan(config, {.batch = 4}, target).largest_batch, 4);
  target.file.reset();
  const InferencePlan unknown(config, {.batch = 1}, target);
  EXPECT_FALSE(to_json(unknown).contains("run_s"));
  EXPECT_NE(to_text(unknown).find("not known without a device file"), std::string::npos);
}

TEST(InferencePlan, OfAMeshIsThatOfItsLastRank) {
  VitConfig config = find_architecture("vit_small_patch16_224").config;
  EngineOptions options{.batch = 1};
  MeshConfig mesh;
  mesh.dp = 2, mesh.tp = 2;
  take_last_rank(mesh, options);
  EXPECT_EQ(options.distribution.mesh.rank, 3);
  EXPECT_EQ(options.distribution.mesh.world(), 4);
  EXPECT_EQ(options.batch, 2) << "an image for each of two";
  options.batch = 6;
  take_last_rank(mesh, options);
  EXPECT_EQ(options.batch, 6);
  const InferencePlan plan(config, options, resolve_target({.threads = 1}));
  const ordered_json json = to_json(plan);
  EXPECT_EQ(json["rank"], 3);
  EXPECT_EQ(json["mesh"], to_string(options.distribution.mesh));
  ASSERT_EQ(json["collectives"].size(), 1u) << json["collectives"];
  const std::string text = to_text(plan);
  EXPECT_NE(text.find("3 of 4 (" + to_string(options.distribution.mesh) + "), which has the most to hold"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(std::to_string(json["collectives"][0]["count"].get<int>()) + " all_reduce along tp, "),
            std::string::npos)
      << text;
  MeshConfig apart;
  apart.dp = 2;
  EngineOptions own{.batch = 2};
  take_last_rank(apart, own);
  EXPECT_NE(to_text(InferencePlan(config, own, resolve_target({.threads = 1})))
                .find("nothing: each has its own images"),
            std::string::npos);
}

}  // namespace
}  // namespace vitrail
