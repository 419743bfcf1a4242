// Reports about a GPU on a machine that has none: plans, estimates, tables, traces.
#include <gtest/gtest.h>

#include <filesystem>

#include "api/engine.h"
#include "cli/cmd_plan.h"
#include "cli/model_choice.h"
#include "h200_words.h"
#include "measure/profile_table.h"
#include "measure/trace.h"
#include "models/zoo.h"
#include "runtime/rank_context.h"
#include "tiny_training.h"

namespace vitrail::cli {
namespace {

double h200_tflops(const char* type) {
  return std::get<GpuSpec>(read_device_file(kH200).spec).tflops.at(type);
}

TEST(GpuPlan, InferenceGoesByWhatNodesTook) {
  const auto plan = [](const char* dtype) {
    return run_in_process("plan", base_on_h200({"--batch", "256", "--dtype", dtype})).json();
  };
  const auto half = plan("bf16"), full = plan("f32");
  EXPECT_EQ(half["device"], "cuda (NVIDIA H200)");
  const double flops =
      2 * 256 * half["macs"].get<double>() * 11 / 12;  // of the last block the class token alone
  for (const auto& [answer, tflops] : {std::pair{half, 766.0}, {full, 67.0}}) {
    EXPECT_GT(answer["run_s"].get<double>(), flops / (tflops * 1e12));
    EXPECT_LT(answer["run_s"].get<double>(), 2 * flops / (tflops * 1e12));
  }
  EXPECT_LT(half["memory"]["parameters"].get<double>(), 0.51 * full["memory"]["parameters"].get<double>());
  EXPECT_GT(half["largest_batch"].get<int>(), 256);
  const std::string text =
      run_in_process("plan", base_on_h200({"--batch", "256", "--dtype", "f16"}), false).out;
  EXPECT_NE(text.find("by what nodes took on NVIDIA H200"), std::string::npos) << text;
}

TEST(GpuPlan, AllTargetsTakeTheSameOptionsAsOne) {
  const std::string xeon = std::string(VT_SOURCE_DIR) + "/configs/devices/xeon-amx-16.json";
  const std::vector<std::string> model = {"--weights", "rule", "-m", "vit_tiny_patch16_224",
                                          "--threads", "1"};
  const auto one = run_in_process("plan", model + std::vector<std::string>{"--target", xeon}).json();
  const auto all =
      run_in_process("plan", model + std::vector<std::string>{"--targets", "xeon-amx-16"}).json();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["seconds"], one["run_s"]);
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--target", kH200}, {"--dump-after", "fuse"}, {"--dtype", "fp8"}})
    EXPECT_EQ(error_of("plan", model + std::vector<std::string>{"--targets", "xeon-amx-16"} + wrong).kind(),
              ErrorKind::kUsage)
        << wrong[0];
}

TEST(GpuPlan, TrainingCountsTheGpusMemoryAlone) {
  const auto plan =
      run_in_process("plan",
                     base_on_h200({"--train", "--classes", "1000", "--batch", "64", "--dtype", "bf16"}))
          .json();
  EXPECT_EQ(plan["device"], "cuda (NVIDIA H200)");
  EXPECT_FALSE(plan["memory"].contains("batches being loaded"));
  // The buffers hold an evaluation's floats, and 8-bit pixels that are prefetched while a micro-batch
  // computes.
  EXPECT_GT(plan["memory"]["staging"].get<double>(), 64 * 3 * 224 * 224 * (4 + 1.0));
  EXPECT_TRUE(plan["fits"].get<bool>());
  EXPECT_GT(plan["largest_micro_batch"].get<int>(), 1000);
  EXPECT_DOUBLE_EQ(plan["peak_gflops"].get<double>(), h200_tflops("bf16") * 1e3);
  EXPECT_GT(plan["update_s"].get<double>(),
            plan["flops"].get<double>() / plan["peak_gflops"].get<double>() / 1e9);
  const std::string fused =
      run_in_process("plan", base_on_h200({"--train", "--classes", "10", "--dump-after", "fuse"}), false).out;
  EXPECT_NE(fused.find("accumulate"), std::string::npos);
}

TEST(GpuPlan, EachTypeHasItsOwnPeak) {
  const auto planned = [](const char* dtype) {
    return run_in_process("plan",
                          base_on_h200({"--train", "--classes", "1000", "--batch", "8", "--dtype", dtype}))
        .json();
  };
  const auto full = planned("f32"), low = planned("bf16");
  EXPECT_DOUBLE_EQ(full["peak_gflops"].get<double>(), h200_tflops("f32") * 1e3);
  EXPECT_GT(full["update_s"].get<double>(), 4 * low["update_s"].get<double>());
}

TEST(GpuPlan, Fp8HalvesTheWeightsAndTf32IsPlainF32InMemory) {
  const auto plan = [](const char* dtype, const std::vector<std::string>& more = {}) {
    return run_in_process("plan", base_on_h200(std::vector<std::string>{"--dtype", dtype} + more)).json();
  };
  const auto bytes = [](const nlohmann::json& answer) {
    return answer["memory"]["parameters"].get<double>();
  };
  const std::vector<std::string> batch = {"--batch", "64"};
  const auto half = plan("bf16"), full = plan("f32"), tf32 = plan("tf32");
  // But for those of the last block that only the class tokens pass through: too few rows.
  EXPECT_LT(bytes(plan("fp8", batch)), 0.56 * bytes(half));
  EXPECT_EQ(bytes(plan("fp8")), bytes(half)) << "one image has too few rows";
  EXPECT_EQ(bytes(tf32), bytes(full));
  EXPECT_LT(plan("fp8", batch)["run_s"].get<double>(), plan("bf16", batch)["run_s"].get<double>());
  EXPECT_LT(plan("tf32", batch)["run_s"].get<double>(), 0.5 * plan("f32", batch)["run_s"].get<double>());
  const std::vector<std::string> train = {"--train", "--classes", "10", "--batch", "64"};
  const auto lower = plan("bf16", train), lowest = plan("fp8", train);
  EXPECT_EQ(bytes(lowest), bytes(lower)) << "masters and copies as in bf16";
  // With few images what fp8 saves goes into rounding; with many it is faster.
  const std::vector<std::string> many = {"--train", "--classes", "10", "--batch", "512"};
  EXPECT_LT(plan("fp8", many)["update_s"].get<double>(), plan("bf16", many)["update_s"].get<double>());
}

TEST(GpuPlan, WhatNoProcessorHasIsRefusedThere) {
  for (const char* dtype : {"fp8", "tf32"}) {
    const std::vector<std::string> tiny = {"--weights", "rule", "-m", "vit_tiny_patch16_224",
                                           "--dtype",   dtype};
    for (const char* command : {"bench infer", "profile", "plan"})
      EXPECT_EQ(error_of(command, tiny).kind(), ErrorKind::kUsage) << command << " " << dtype;
    const Error training = error_of("plan", tiny + std::vector<std::string>{"--train", "--classes", "10"});
    EXPECT_EQ(training.kind(), ErrorKind::kUsage);
    EXPECT_NE(training.message().find("NVIDIA"), std::string::npos) << training.message();
  }
}

// The cost of rounding can then be seen without a GPU.
TEST(GpuPlan, TheReferenceRoundsOnAnyProcessor) {
  for (const char* dtype : {"fp8", "tf32"}) {
    EXPECT_NO_THROW(check_precision(dtype, "cpu", "ref"));
    EXPECT_THROW(check_precision(dtype, "cpu", "cpu"), Error);
  }
  EXPECT_THROW(check_precision("f16", "cpu", "ref"), Error);
}

TEST(GpuPlan, WhatAGpuHasNotIsRefused) {
  for (const auto& more : std::vector<std::vector<std::string>>{
           {"--isa", "avx2"}, {"--dtype", "int8"}, {"--device", "cuda"}, {"--backend", "ref"}})
    EXPECT_EQ(error_of("plan", base_on_h200(more)).kind(), ErrorKind::kUsage) << more[1];
  EXPECT_EQ(error_of("plan", {"--weights", "rule", "--dtype", "f16"}).kind(), ErrorKind::kUsage);
}

TEST(GpuPlan, ATargetIsAPathOrAName) {
  const std::vector<std::filesystem::path> places = {"/nowhere", std::filesystem::path(kH200).parent_path()};
  EXPECT_EQ(find_device_file("h200", places), kH200);
  EXPECT_EQ(find_device_file("some/where.json", places), "some/where.json");
  try {
    find_device_file("h20", places);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.hint().find("h200"), std::string::npos) << error.hint();
  }
}

TEST(GpuPlan, AFileOfAGpuIsReadBackAndMissesNothing) {
  const DeviceFile device = read_device_file(kH200);
  const nlohmann::json written = nlohmann::json::parse(to_json(device).dump());
  const TempFolder folder;
  EXPECT_EQ(to_json(read_device_file(folder.file("d.json", written.dump()))), to_json(device));
  for (const char* name : {"compute", "processors", "memory_bytes", "l2_bytes", "copy_gbps", "tflops"}) {
    nlohmann::json bad = written;
    bad.erase(name);
    EXPECT_THROW(read_device_file(folder.file("d.json", bad.dump())), Error) << name;
  }
  nlohmann::json foreign = written;
  foreign["foreign_bytes"] = 1 << 30;
  EXPECT_EQ(read_device_file(folder.file("d.json", foreign.dump())).available_bytes(),
            device.memory_bytes - (1 << 30));
  foreign["foreign_bytes"] = device.memory_bytes;
  EXPECT_THROW(read_device_file(folder.file("d.json", foreign.dump())), Error);
  foreign.erase("foreign_bytes");
  foreign["tflops"].erase("f32");
  EXPECT_THROW(read_device_file(folder.file("d.json", foreign.dump())), Error);
  for (const nlohmann::json& watts :
       {nlohmann::json(0), nlohmann::json(-70), nlohmann::json(1e30), nlohmann::json("70")}) {
    nlohmann::json bad = written;
    bad["watts"] = watts;
    EXPECT_THROW(read_device_file(folder.file("d.json", bad.dump())), Error) << watts;
  }
}

// A GPU whose memory lies between what a step needs with its state there and without.
TEST(GpuPlan, AStepThatDoesNotFitNamesTheOffloadThatWould) {
  const std::vector<std::string> train = {"--train", "--classes", "10", "--batch", "4", "--dtype", "bf16"};
  const std::vector<std::string> moved = {"--set", "mesh.offload=optimizer"};
  const auto all = run_in_process("plan", base_on_h200(train)).json(),
             less = run_in_process("plan", base_on_h200(train + moved)).json();
  const auto peak = [](const nlohmann::json& plan) { return plan["memory"]["peak"].get<double>(); };
  // Moments and masters are 12 bytes a parameter; of vectors, which stay f32, a copy is left.
  EXPECT_NEAR((peak(all) - peak(less)) / all["params"].get<double>(), 12, 0.1);
  EXPECT_FALSE(all.contains("host_memory"));
  EXPECT_GT(less["host_memory"]["peak"].get<double>(), 12 * less["params"].get<double>());
  EXPECT_GT(less["host_page_locked"].get<double>(), 0);

  const TempFolder folder;
  nlohmann::json device = nlohmann::json::parse(to_json(read_device_file(kH200)).dump());
  const auto foreign = device.value("foreign_bytes", uint64_t{0});
  device["memory_bytes"] = static_cast<uint64_t>((peak(all) + peak(less)) / 2) + foreign;
  const std::string small = folder.file("small.json", device.dump());
  const auto on_small = [&](const std::vector<std::string>& more) {
    return run_in_process("plan", std::vector<std::string>{"--weights", "rule", "-m", "vit_base_patch16_224",
                                                           "--target", small} +
                                      train + more);
  };
  const auto does_not = on_small({}).json();
  ASSERT_FALSE(does_not["fits"].get<bool>()) << does_not["memory_available"];
  ASSERT_TRUE(does_not.contains("offload"));
  EXPECT_EQ(does_not["offload"][0]["settings"], "mesh.offload=optimizer");
  EXPECT_EQ(does_not["offload"][0]["peak"], less["memory"]["peak"]);
  EXPECT_TRUE(on_small(moved).json()["fits"].get<bool>());
}

TEST(GpuPlan, EachNodeTakesTheSlowerOfArithmeticAndTraffic) {
  const ExecutionPlan plan = plan_inference(find_architecture("vit_tiny_patch16_224").config, {.threads = 1});
  const Cost cost = plan.program.cost();
  const double fast = 1e30;
  EXPECT_NEAR(estimate_seconds(plan.program, {{{"f32", 1e12}}, fast}), cost.flops / 1e12, 1e-9);
  EXPECT_NEAR(estimate_seconds(plan.program, {{{"f32", fast}}, 1e9}), cost.bytes / 1e9, 1e-9);
  EXPECT_GT(estimate_seconds(plan.program, {{{"f32", 1e12}}, 1e11}),
            std::max(cost.flops / 1e12, cost.bytes / 1e11));
}

TEST(Trace, NodesFollowEachOther) {
  const ExecutionPlan plan = plan_inference(find_architecture("vit_tiny_patch16_224").config, {.threads = 1});
  const std::vector<NodeTime> times(plan.program.nodes.size(), {0.5, 5});
  const nlohmann::ordered_json events = trace_events(plan, times, "here", 3);
  ASSERT_EQ(events.size(), times.size() + 1);
  EXPECT_EQ(events[0]["args"]["name"], "here");
  double flops = 0;
  for (size_t i = 1; i < events.size(); ++i) {
    EXPECT_EQ(events[i]["ph"], "X");
    EXPECT_EQ(events[i]["pid"], 3);
    EXPECT_NEAR(events[i]["ts"].get<double>(), 1e5 * static_cast<double>(i - 1), 1e-3);
    EXPECT_NEAR(events[i]["dur"].get<double>(), 1e5, 1e-6);
    EXPECT_NE(events[i]["args"]["shape"].get<std::string>().find("f32["), std::string::npos);
    flops += events[i]["args"]["flops"].get<double>();
  }
  EXPECT_DOUBLE_EQ(flops, plan.program.cost().flops);
}

TEST(Trace, ProfileWritesItForBothDevices) {
  const TempFolder folder;
  const std::string path = folder.file("trace.json", "");
  const Answer answer =
      run_in_process("profile", {"--weights", "rule", "-m", "vit_tiny_patch16_224", "--image", "32",
                                 "--seconds", "0", "--threads", "1", "--beside", "cpu", "--trace", path});
  EXPECT_EQ(answer.json()["beside"]["parts"].size(), answer.json()["parts"].size());
  EXPECT_GT(answer.json()["copy_gbps"].get<double>(), 0);
  const auto events = nlohmann::json::parse(read_file(path, 1 << 24));
  EXPECT_EQ(events.front()["pid"], 1);
  EXPECT_EQ(events.back()["pid"], 2);
}

TEST(Profile, TwoDevicesStandSideBySide) {
  const auto row = [](const char* name, double seconds) {
    return ProfileRow{.name = name,
                      .kind = "",
                      .kernel = "",
                      .seconds = seconds,
                      .flops = 1e9,
                      .layer_seconds = {seconds / 2, seconds / 2}};
  };
  const std::string text = beside_table({"cuda", {row("MLP", 1e-3), row("only here", 1e-3)}, {4000, 0}},
                                        {"cpu", {row("MLP", 0.02), row("only there", 0.02)}, {100, 0}});
  for (const char* part : {"cpu / cuda", "20.0 x", "only here", "only there", "500 us", "25 %", "50 %"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(GpuPlan, MessagesNameWhoseMemoryIsLeft) {
  RankContext rank(DeviceInfo{.name = "this processor", .memory_bytes = 1 << 20});
  EXPECT_EQ(rank.available().where, "all that this processor has");
  EXPECT_EQ(rank.available().bytes, 1u << 20);
  rank.device.memory_bytes = 0;
  EXPECT_EQ(rank.available().where, free_memory().where);
}

}  // namespace
}  // namespace vitrail::cli
