// How nodes become rows of a profile, what a sweep may be and what it sets, and the lines about kernels.
#include <gtest/gtest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "api/engine.h"
#include "dist/communicator.h"
#include "measure/dist_bench.h"
#include "measure/host.h"
#include "measure/host_load.h"
#include "measure/libraries.h"
#include "measure/profile_run.h"
#include "measure/profile_sweep.h"
#include "measure/timing.h"
#include "measure/trace.h"
#include "squeezed.h"
#include "thrown.h"

namespace vitrail {
namespace {

using nlohmann::ordered_json;

TEST(ProfileParts, NamesOfOperationsAndPhases) {
  EXPECT_EQ(operation_of("blocks.12.a.3b.x4"), "blocks.*.a.*b.x4");
  EXPECT_STREQ(phase_name(Phase::kForward), "forward");
  EXPECT_STREQ(phase_name(Phase::kBackward), "backward");
  EXPECT_STREQ(phase_name(Phase::kUpdate), "update");
}

VitConfig profiled_config() {
  VitConfig config;
  config.image_height = config.image_width = 32, config.patch = 16;
  config.width = 8, config.heads = 2, config.mlp = 16, config.depth = 2, config.classes = 5;
  return config;
}

TEST(ProfileParts, NodesThatDidNotRunTakeNoTime) {
  const ExecutionPlan plan = plan_inference(profiled_config(), {.threads = 1, .fuse = false});
  std::vector<NodeTime> times(plan.program.nodes.size(), {0.6, 6});
  times[0] = {0, 0};
  const std::vector<ProfileRow> nodes = profile_rows(plan, times, ProfileBy::kNode);
  ASSERT_EQ(nodes.size(), times.size());
  EXPECT_EQ(nodes[0].seconds, 0);
  EXPECT_DOUBLE_EQ(nodes[1].seconds, 0.1);
  EXPECT_EQ(profile_rows({{plan, times, 3}}, ProfileBy::kNode).size(), times.size() - 1)
      << "no part of these steps";
  // Of two runs a step the node has twice its FLOPs and bytes.
  const ProfileRow step = profile_rows({{plan, times, 3}}, ProfileBy::kNode)[0];
  EXPECT_DOUBLE_EQ(step.seconds, 0.2);
  EXPECT_DOUBLE_EQ(step.flops, 2 * nodes[1].flops);
  EXPECT_DOUBLE_EQ(step.bytes, 2 * nodes[1].bytes);
  for (const ProfileRow& row : profile_rows(plan, times, ProfileBy::kOperation))
    if (row.name == "blocks.*.mlp.fc1") {
      EXPECT_EQ(row.nodes, 2);
      EXPECT_EQ(row.layer_numbers, (std::vector<int>{0, 1}));
      EXPECT_EQ(row.kind, "linear");
    }
  const ProfileRow total = total_of(nodes);
  EXPECT_EQ(total.name, "total");
  EXPECT_EQ(total.nodes, static_cast<int64_t>(times.size()));
  EXPECT_DOUBLE_EQ(total.flops, plan.program.cost().flops);
  EXPECT_DOUBLE_EQ(total.bytes, plan.program.cost().bytes);
  const std::vector<std::string> lines = kernel_lines(plan);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& line) { return line.starts_with("blocks.*.mlp.fc1: "); }),
            1);
}

TEST(ProfileParts, TheTimelineSkipsWhatDidNotRun) {
  const ExecutionPlan plan = plan_inference(profiled_config(), {.threads = 1});
  std::vector<NodeTime> times(plan.program.nodes.size(), {0.5, 5});
  times[1] = {0, 0};
  const ordered_json events = trace_events(plan, times, "here", 3);
  ASSERT_EQ(events.size(), times.size());
  EXPECT_EQ(events[0], ordered_json::parse(
                           R"({"name": "process_name", "ph": "M", "pid": 3, "args": {"name": "here"}})"));
  EXPECT_EQ(events[1]["ts"], 0);
  EXPECT_NEAR(events[2]["ts"].get<double>(), 1e5, 1e-6);
  EXPECT_EQ(events[1]["cat"], std::string(plan.program.nodes[0].op->kind()));
  EXPECT_EQ(events[1]["tid"], 1);
}

TEST(SweepLimits, WhatIsRefusedIsNamed) {
  const auto said = [](std::vector<std::string> texts) {
    const std::string text = thrown_by([&] { parse_sweeps(texts); });
    return text.substr(0, text.find(" | "));
  };
  EXPECT_EQ(said({"threads=1,65536"}), "nothing");
  EXPECT_EQ(said({"threads=65537"}), "usage: --sweep threads expects numbers from 1 to 65536, not \"65537\"");
  EXPECT_EQ(said({"batch=0"}), "usage: --sweep batch expects numbers from 1 to 65536, not \"0\"");
  EXPECT_EQ(said({"batch=2,2"}), "usage: --sweep batch has \"2\" twice");
  EXPECT_EQ(said({"dtype=f64"}),
            "usage: --sweep dtype expects one of f32, bf16, f16, int8, fp8, tf32, not \"f64\"");
  EXPECT_EQ(said({"dtype=f32,bf16,f16,int8,fp8,tf32"}), "nothing");
  EXPECT_EQ(said({"batch=1", "batch=2"}), "usage: --sweep batch is there twice: name all values in one");
  EXPECT_EQ(said({"colour=1"}), "usage: --sweep expects NAME=VALUES, not \"colour=1\"");
  EXPECT_EQ(said({"parallel=heads+columns"}), "usage: --sweep parallel does not know \"columns\"");
  std::string hundred = "threads=1", two = "batch=1,2", three = "batch=1,2,3";
  for (int i = 2; i <= 100; ++i) hundred += "," + std::to_string(i);
  EXPECT_EQ(said({hundred, two}), "nothing") << "two hundred";
  EXPECT_EQ(said({hundred, three}), "usage: the sweeps multiply to more than 200 measurements");
  EXPECT_TRUE(run_sweep({}, {}).rows.empty());
}

TEST(SweepLimits, ValuesAreSet) {
  const auto kinds = [](const char* text) {
    const ParallelKinds k = parse_parallel(text, '+', "--p");
    return std::vector<bool>{k.heads, k.rows, k.softmax};
  };
  EXPECT_EQ(kinds("heads"), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(kinds("rows+softmax"), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(kinds("all"), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(kinds("none"), (std::vector<bool>{false, false, false}));
  EngineOptions engine;
  apply(parse_sweeps({"batch=7", "dtype=bf16", "parallel=rows"}), {"7", "bf16", "rows"}, "cuda", engine);
  EXPECT_EQ(engine.batch, 7);
  EXPECT_EQ(engine.compute, DType::kBF16);
  EXPECT_TRUE(engine.parallel_rows && !engine.parallel_heads && !engine.parallel_softmax);
  TrainConfig config;
  config.train.batch = 64, config.train.accumulation = 2;
  DeviceInfo device;
  apply(parse_sweeps({"batch=7", "threads=3", "parallel=softmax"}), {"7", "3", "softmax"}, config, device);
  EXPECT_EQ(config.train.micro_batch, 7);
  EXPECT_EQ(config.train.batch, 0);
  EXPECT_EQ(config.train.accumulation, 0);
  EXPECT_EQ(device.threads, 3);
  EXPECT_TRUE(device.parallel_softmax && !device.parallel_heads && !device.parallel_rows);
  EXPECT_EQ(thrown_by([&] { apply(parse_sweeps({"dtype=f32"}), {"f32"}, config, device); }),
            "usage: --sweep dtype is for an inference; of training one --dtype at a time");
}

TEST(ProfiledEngine, SaysWhatRunsInParallel) {
  const auto text = [](bool heads, bool rows, bool softmax) {
    EngineOptions options{.threads = 1};
    options.parallel_heads = heads, options.parallel_rows = rows, options.parallel_softmax = softmax;
    return ProfiledEngine(Engine(profiled_config(), options), {.warmup = 0, .runs = 1}, {}).parallel_text();
  };
  EXPECT_EQ(text(true, false, true), ", only heads and softmax in parallel");
  EXPECT_EQ(text(false, false, false), ", nothing in parallel");
}

TEST(ProfiledEngine, MeasuresAsOftenAsAsked) {
  int warm = 0, measured = 0;
  const ProfiledEngine one(Engine(profiled_config(), {.threads = 1, .batch = 2}), {.warmup = 1, .runs = 4},
                           {.warm = [&] { ++warm; }, .measured = [&] { ++measured; }});
  EXPECT_EQ(warm, 1);
  EXPECT_EQ(measured, 4);
  EXPECT_EQ(one.profile.seconds.count, 4u);
  EXPECT_EQ(one.profile.batch, 2);
  EXPECT_EQ(one.parallel_text(), "");
  EXPECT_STREQ(one.backend(), "cpu");
  EXPECT_EQ(one.engine.executor().times()[0].runs, 4) << "the warm-up is not counted";
  EXPECT_EQ(one.rows(ProfileBy::kNode).size(), one.profile.nodes.size());
  EXPECT_TRUE(one.profile.ranks.empty());
  const ordered_json events = ordered_json::parse(timeline_of({&one, &one}));
  EXPECT_EQ(events.front()["pid"], 1);
  EXPECT_EQ(events.back()["pid"], 2);
  EXPECT_EQ(rule_images(profiled_config(), 3).size(), 3u * 3 * 32 * 32);
}

// The word of a file of the system, without what ends its line; empty where there is none.
std::string system_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// Caches of data are told from those of both by their letter; those of instructions alone are left out.
TEST(HostText, CachesAreThoseThatTheSystemLists) {
  std::vector<std::string> wanted;
  std::vector<uint64_t> bytes;
  for (int i = 0;; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string level = system_word(folder + "level"), type = system_word(folder + "type");
    if (level.empty()) break;
    if (type == "Data") wanted.push_back("L" + level + "d");
    if (type == "Unified") wanted.push_back("L" + level);
    if (type == "Data" || type == "Unified") bytes.push_back(parse_cache_size(system_word(folder + "size")));
  }
  const MachineInfo machine = read_machine();
  std::vector<std::string> found;
  for (const CacheInfo& cache : machine.caches) found.push_back(cache.name);
  EXPECT_EQ(found, wanted);
  for (size_t i = 0; i < machine.caches.size() && i < bytes.size(); ++i) {
    EXPECT_EQ(machine.caches[i].bytes, bytes[i]) << found[i];
    EXPECT_GE(machine.caches[i].shared_by, 1) << found[i];
  }
}

TEST(HostText, LinesOfTheSystem) {
  EXPECT_DOUBLE_EQ(busy_seconds("cpu  100 200 300 9000 5000 40 50 60 7 8\ncpu0 1\n", 100), 7.5)
      << "neither idle nor waiting, and guests once";
  EXPECT_EQ(busy_seconds("intr 5\n", 100), 0);
  EXPECT_EQ(busy_warning(0.1, 2), "") << "a twentieth";
  EXPECT_EQ(busy_warning(0.11, 2),
            "warning: other work kept 0.1 of 2 cores busy meanwhile, so these figures are too low; measure "
            "again on an idle machine");
  EXPECT_EQ(proc_field("model name\t: Z80 A\nflags :\n", "model name"), "Z80 A");
  EXPECT_EQ(proc_field("model name\t: Z80\nflags :\n", "flags"), "");
  EXPECT_EQ(proc_field("my model name : x", "model name"), "");
  const std::pair<const char*, uint64_t> sizes[] = {{"32K", 32 << 10}, {"8M", 8 << 20}, {"77", 77}};
  for (const auto& [text, bytes] : sizes) EXPECT_EQ(parse_cache_size(text), bytes) << text;
  EXPECT_EQ(version_in_soname("/lib/libjpeg.so.62.3.0"), "62.3.0");
  EXPECT_EQ(version_in_soname("/lib/libjpeg.so"), "");
  const MachineInfo machine = read_machine();
  EXPECT_GE(machine.cores, machine.usable);
  EXPECT_EQ(machine.isa.size() + machine.isa_missing.size(), 12u);
  EXPECT_GE(machine.memory_bytes, machine.memory_available_bytes);
  EXPECT_GT(free_disk_bytes("/"), 0u);
  EXPECT_EQ(free_disk_bytes("/no/such/place"), 0u);
  std::vector<std::string> names;
  for (const LibraryInfo& library : find_libraries()) {
    names.push_back(library.name);
    EXPECT_EQ(library.needed, library.name != "oneDNN");
    if (library.needed) {
      EXPECT_TRUE(library.found && !library.version.empty() && !library.path.empty()) << library.name;
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"libjpeg-turbo", "libpng", "libwebp", "zlib", "oneDNN"}));
}

TEST(DistBench, TextAndJsonTellTheSame) {
  DistBench bench(DType::kF32, 250'000);
  bench.add(std::make_unique<SummingRanks>(2, DType::kF32, 250'000));
  for (int i = 0; i < 2; ++i) bench.round();
  const ordered_json json = bench.to_json();
  EXPECT_EQ(json["mb"], 1);
  EXPECT_EQ(json["dtype"], "f32");
  const auto number = [&](const char* row, const char* key) { return json[row][key].get<double>(); };
  EXPECT_NEAR(number("copy", "gb_per_s") * number("copy", "ms_median"), 1, 1e-9)
      << "a megabyte in so many milliseconds";
  EXPECT_NEAR(number("threads", "bus_gb_per_s"), number("threads", "gb_per_s"), 1e-9)
      << "2 (p - 1) / p of two";
  EXPECT_NEAR(number("threads", "copies"), number("threads", "ms_median") / number("copy", "ms_median"),
              1e-9);
  EXPECT_LE(number("threads", "ms_min"), number("threads", "ms_median"));
  EXPECT_LE(number("threads", "ms_p90"), number("threads", "ms_max"));
  EXPECT_FALSE(json["copy"].contains("ranks"));
  const std::string text = squeezed(bench.to_text());
  EXPECT_TRUE(
      text.starts_with("1 MB of f32 in place, 2 rounds; copies: the median in copies of the same bytes\n"))
      << text;
  EXPECT_NE(text.find("\n(a plain copy) "), std::string::npos);
  EXPECT_NE(text.find("\nthreads 2 "), std::string::npos);
}

}  // namespace
}  // namespace vitrail
