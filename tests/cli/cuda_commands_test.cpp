// The commands on a GPU, as a user calls them.
#include "cli/train_plan.h"
#include "cuda_test.h"
#include "measure/timing.h"
#include "models/zoo.h"
#include "source_root.h"
#include "tiny_training.h"
#include "train/micro_feed.h"

namespace vitrail::cli {
namespace {

using CudaCommands = CudaTest;

const std::vector<std::string> kOnGpu = {"--device", "cuda"};

std::vector<std::string> on_gpu(const char* model, const std::vector<std::string>& more) {
  return std::vector<std::string>{"--weights", "rule", "-m", model} + kOnGpu + more;
}

TEST_F(CudaCommands, BenchKnowsTheGpusPeakAndTheForeignMemory) {
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    const auto answer =
        run_in_process("bench infer", on_gpu("vit_base_patch16_224",
                                             {"--batch", "64", "--seconds", "0.2", "--dtype", dtype}))
            .json();
    EXPECT_GT(answer["peak_gflops"].get<double>(), 1000) << dtype;
    EXPECT_GT(answer["peak_fraction"].get<double>(), 0.05) << dtype;
    EXPECT_LT(answer["peak_fraction"].get<double>(), 1.1) << dtype;
    EXPECT_GT(answer["memory_foreign"].get<double>(), 16e6) << dtype;
  }
}

// What was measured is kept where --out says, and a plan of the same program takes its kernels from there.
TEST_F(CudaCommands, TuningKeepsATableOfTheGpu) {
  const TempFolder folder;
  const std::string file = (folder.path() / "kernels.json").string();
  const std::vector<std::string> model = on_gpu("vit_tiny_patch16_224", {"--image", "32", "--batch", "2"});
  const auto told =
      run_in_process("bench tune", model + std::vector<std::string>{"--rounds", "1", "--out", file}).json();
  EXPECT_EQ(told["file"], file);
  ASSERT_GT(told["rows"].size(), 0u);
  const auto kept = nlohmann::json::parse(read_file(file, 1 << 20));
  EXPECT_EQ(kept["rows"].size(), told["rows"].size());
  EXPECT_GT(run_in_process("plan", model + std::vector<std::string>{"--kernels", file}).json()["nodes"], 0);
}

// The time runs from the process's start to the end of a step, including the loading of kernels.
TEST_F(CudaCommands, TheTotalIsThePlannedAndTheForeign) {
  const RunPlan plan = planned_run(
      options_of("bench train",
                 on_gpu("vit_base_patch16_224", {"--batch", "64", "--classes", "1000", "--dtype", "bf16"})),
      cuda_device());
  ASSERT_EQ(plan.step().config.images, ImageForm::kPixels);
  RankContext rank(plan.device());
  const auto foreign = static_cast<double>(rank.hardware->foreign_bytes());
  const auto free_before = static_cast<double>(rank.hardware->free_bytes());
  TrainStep step(plan.step(), rank);
  step.start(plan.setup().model->filler());
  bring_images(plan.setup(), step);
  const VitConfig& model = plan.setup().model->card.config;
  const std::vector<float> weights(64, 1.0f / 64), targets(static_cast<size_t>(64 * model.classes), 1e-3f);
  const std::vector<uint8_t> pixels(rule_images(model, 64).size(), 128);
  std::vector<ImageRecipe> recipes(64);
  for (int32_t i = 0; i < 64; ++i) recipes[static_cast<size_t>(i)].source = i;
  for (int i = 0; i < 3; ++i) {
    step.run_micro({{}, targets, weights, {}, 0, i, 0, pixels, recipes});
    step.run_update(1e-4);
  }
  const double total = foreign + free_before - static_cast<double>(rank.hardware->free_bytes());
  const auto planned = static_cast<double>(plan.step().peak_bytes());
  EXPECT_GT(foreign, 16e6);
  EXPECT_GT(planned, 2e9);
  EXPECT_NEAR(total / (planned + foreign), 1, 0.02);
}

TEST_F(CudaCommands, WhatDoesNotFitIsRefusedBeforeItIsAllocated) {
  const std::unique_ptr<Device> device = open_device(cuda_device());
  const size_t free = device->free_bytes();
  for (const auto& [command, more] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"bench infer", {"--batch", "65536"}},
           {"bench train", {"--batch", "65536", "--classes", "10", "--dtype", "bf16"}}}) {
    const Error error = error_of(command, on_gpu("vit_large_patch16_224", more));
    EXPECT_EQ(error.kind(), ErrorKind::kMemory) << error.what();
    EXPECT_NE(error.message().find("free"), std::string::npos) << error.message();
    EXPECT_NE(error.hint().find("batch"), std::string::npos) << error.hint();
  }
  EXPECT_NEAR(static_cast<double>(device->free_bytes()), static_cast<double>(free), 64e6);
}

TEST_F(CudaCommands, ProfileStandsBesideTheCpu) {
  const TempFolder folder;
  const std::string trace = folder.file("trace.json", "");
  const auto answer =
      run_in_process("profile", on_gpu("vit_tiny_patch16_224", {"--seconds", "0.1", "--no-fuse", "--beside",
                                                                "cpu", "--trace", trace}))
          .json();
  ASSERT_EQ(answer["parts"].size(), answer["beside"]["parts"].size());
  for (size_t i = 0; i < answer["parts"].size(); ++i) {
    EXPECT_EQ(answer["parts"][i]["name"], answer["beside"]["parts"][i]["name"]);
    EXPECT_GT(answer["parts"][i]["ms"].get<double>(), 0);
  }
  EXPECT_GT(answer["copy_gbps"].get<double>(), 50);
  EXPECT_GT(nlohmann::json::parse(read_file(trace, 1 << 24)).size(), 100u);
}

TEST_F(CudaCommands, PlanAndCalibrateMeasureTheGpu) {
  const auto plan = run_in_process("plan", on_gpu("vit_base_patch16_224", {"--dtype", "bf16"})).json();
  EXPECT_GT(plan["run_s"].get<double>(), 0);
  EXPECT_GT(plan["memory_foreign"].get<double>(), 0);
  EXPECT_LT(plan["memory_available"].get<double>(), static_cast<double>(cuda_device().memory_bytes));
  const TempFolder folder;
  const std::string file = folder.file("card.json", "");
  run_in_process("bench calibrate",
                 kOnGpu + std::vector<std::string>{"--out", file, "--name", "a GPU", "--budget", "0"});
  const auto elsewhere = run_in_process("plan", {"--weights", "rule", "-m", "vit_base_patch16_224", "--dtype",
                                                 "bf16", "--target", file})
                             .json();
  EXPECT_EQ(elsewhere["target"], "a GPU");
  EXPECT_NEAR(elsewhere["run_s"].get<double>() / plan["run_s"].get<double>(), 1, 0.3);
}

// The attention weights come from a kernel of their own.
TEST_F(CudaCommands, PredictsAndExplainsAsTheCpu) {
  const std::vector<std::string> asked = {"-m", VT_SOURCE_DIR "/tests/golden/models/hf_single",
                                          VT_SOURCE_DIR "/examples/images/chelsea.png"};
  const TempFolder folder;
  const auto explained = [&](const std::vector<std::string>& more) {
    const std::string out = (folder.path() / "out").string();
    return run_in_process("explain", asked + std::vector<std::string>{"--out", out} + more).json()["maps"];
  };
  const auto predicted = [&](const std::vector<std::string>& more) {
    return run_in_process("predict", asked + more).json()["top"];
  };
  const auto maps = explained({}), top = predicted({});
  for (const auto& [dtype, bound] : {std::pair{"f32", 1e-4}, {"bf16", 0.05}, {"f16", 0.01}}) {
    const auto on_gpu = kOnGpu + std::vector<std::string>{"--dtype", dtype};
    const auto found = explained(on_gpu);
    ASSERT_EQ(found.size(), maps.size()) << dtype;
    for (size_t i = 0; i < maps.size(); ++i) {
      EXPECT_EQ(found[i]["name"], maps[i]["name"]);
      EXPECT_NEAR(found[i]["spread"].get<double>(), maps[i]["spread"].get<double>(), bound) << dtype;
    }
    EXPECT_NEAR(predicted(on_gpu)[0]["prob"].get<double>(), top[0]["prob"].get<double>(), bound) << dtype;
  }
  EXPECT_NE(run_in_process("predict", asked + kOnGpu + std::vector<std::string>{"--check", "ref"})
                .err.find("nodes agree"),
            std::string::npos);
}

TEST_F(CudaCommands, DoctorNamesTheGpuAndAGpuThatIsNotThereIsRefused) {
  const auto answer = run_in_process("doctor", {}).json();
  EXPECT_TRUE(answer["backends"]["cuda"].get<bool>());
  for (const char* key : {"driver", "runtime", "cublas", "plugin"})
    EXPECT_FALSE(answer["cuda"][key].get<std::string>().empty()) << key;
  const size_t gpus = answer["cuda"]["cards"].size();
  EXPECT_GE(gpus, 1u);
  const Error error = error_of(
      "bench infer", {"--weights", "rule", "-m", "vit_tiny_patch16_224", "--device", strf("cuda:%zu", gpus)});
  EXPECT_EQ(error.kind(), ErrorKind::kDevice) << error.what();
}

// The memory suffices for a smaller GEMM, or for none at all.
TEST_F(CudaCommands, AFullGpuLeavesThePeakUnknown) {
  const ExecutionPlan plan = plan_inference(find_architecture("vit_tiny_patch16_224").config,
                                            {.backend = "cuda", .compute = DType::kBF16});
  const std::unique_ptr<Device> device = open_device(cuda_device());
  for (const auto& [left, known] : {std::pair{size_t{512} << 20, true}, {size_t{8} << 20, false}}) {
    const Buffer hog(device->free_bytes() - left, Category::kScratch, device.get());
    const Peaks peaks = peaks_of(plan);
    EXPECT_EQ(peaks.gflops > 0, known) << left;
    EXPECT_EQ(peaks.gbps > 0, known) << left;
  }
}

TEST_F(CudaCommands, TrainsAndEvaluates) {
  const TempFolder folder;
  const std::string run = (folder.path() / "run").string();
  run_in_process("train", tiny_run() + kOnGpu + std::vector<std::string>{"--out", run});
  const std::vector<std::string> eval = {"-m", run, "--data", "synthetic:3x8x8x4x64", "--threads", "1"};
  const auto gpu = run_in_process("eval", eval + kOnGpu).json(), cpu = run_in_process("eval", eval).json();
  EXPECT_EQ(gpu["top1"], cpu["top1"]);
  EXPECT_NEAR(gpu["loss"].get<double>(), cpu["loss"].get<double>(), 1e-3);
}

}  // namespace
}  // namespace vitrail::cli
