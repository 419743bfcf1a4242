// vitrail plan of a training run: what it predicts is what the run then holds.
#include <gtest/gtest.h>

#include <map>

#include "backend/cpu/kernels.h"
#include "cli/train_plan.h"
#include "cli/train_settings.h"
#include "tiny_training.h"
#include "train/trainer.h"

namespace vitrail::cli {
namespace {

constexpr Category kHeld[] = {Category::kParameters, Category::kGradients, Category::kOptimizer,
                              Category::kTransient, Category::kStaging};

// Bytes of every category during the first update, above what the process held before.
std::map<Category, size_t> allocated_by(const std::vector<std::string>& arguments, uint64_t* reported) {
  std::map<Category, size_t> before, held;
  for (const Category category : kHeld) before[category] = Buffer::allocated(category);
  TrainHooks hooks;
  hooks.step = [&](const TrainStatus& status) {
    *reported = status.memory_bytes;
    for (const Category category : kHeld) held[category] = Buffer::allocated(category) - before[category];
  };
  const TempFolder folder;
  const TrainConfig config = read_train_config(options_of("train", arguments));
  RankContext rank(cpu_device(1, ""));
  Trainer(config, {(folder.path() / "run").string(), ResumeMode::kFresh, ""}, find_backend("cpu"), rank,
          hooks)
      .run();
  return held;
}

TEST(TrainPlan, PredictedIsAllocated) {
  const TempFolder folder;
  const std::string teacher = (folder.path() / "teacher").string();
  run_in_process("train", tiny_run() + std::vector<std::string>{"--out", teacher});
  for (const auto& variant : std::vector<std::vector<std::string>>{
           {},
           {"train.dtype=bf16", "optim.name=lamb"},
           {"train.dtype=f16", "train.recompute=block", "optim.name=sgd"},
           {"train.micro_batch=4", "train.eval_batch=7", "optim.ema_decay=0.9", "train.recompute=mlp"},
           {"lora.rank=2", "train.dropout=0.1", "optim.name=lion"},
           {"distill.kind=soft", "distill.teacher=" + teacher, "loader.prefetch=5"}}) {
    SCOPED_TRACE(testing::PrintToString(variant));
    const auto arguments = tiny_run() + settings({"train.steps=1"}) + settings(variant);
    auto memory = run_in_process("plan", arguments).json()["memory"];
    uint64_t reported = 0;
    auto held = allocated_by(arguments, &reported);
    const auto planned = [&](const char* name) { return memory.value(name, size_t{0}); };
    // The teacher has parameters and activations of its own.
    EXPECT_EQ(held[Category::kParameters] + held[Category::kTransient],
              planned("parameters") + planned("saved") + planned("transient") + planned("scratch") +
                  planned("staging") + planned("alignment and gaps") + planned("teacher"));
    if (!memory.contains("teacher")) {
      EXPECT_EQ(held[Category::kParameters], planned("parameters"));
    }
    EXPECT_EQ(held[Category::kGradients], planned("gradients"));
    EXPECT_EQ(held[Category::kOptimizer], planned("optimizer"));
    EXPECT_EQ(held[Category::kStaging], planned("batches being loaded"));
    size_t sum = 0;
    for (const Category category : kHeld) sum += held[category];
    EXPECT_EQ(sum, planned("peak"));
    EXPECT_EQ(reported, planned("peak"));
  }
}

// A plan for vectors of 8: with wider ones, such a small model would need scratch most of all.
std::vector<std::string> small_scratch_run() {
  return tiny_run() + std::vector<std::string>{"--isa", "avx2"};
}

// An instruction set that no device file of this machine was measured with: the time is by a rule of thumb.
TEST(TrainPlan, RowsAddUpAndTheFiguresAreThere) {
  const auto answer = run_in_process("plan", small_scratch_run()).json();
  size_t sum = 0;
  for (const auto& [name, bytes] : answer["memory"].items()) sum += name == "peak" ? 0 : bytes.get<size_t>();
  EXPECT_EQ(sum, answer["memory"]["peak"]);
  EXPECT_LE(answer["memory_lower_bound"], answer["memory"]["peak"]);
  EXPECT_EQ(answer["steps"], 8);
  EXPECT_TRUE(answer["fits"].get<bool>());
  // Forward and backward cost at least three forwards, over 16 images; the last block computes the class
  // token alone.
  const double spared = 4 * (2 * 5 * 16 + 16 * 16 + 2 * 16 * 32);  // multiply-adds of the four patches there
  EXPECT_GT(answer["flops"].get<double>(), 16 * 6 * (answer["macs"].get<double>() - spared));
  EXPECT_LT(answer["flops"].get<double>(), 1.3 * 16 * 6 * answer["macs"].get<double>());
  for (const char* key : {"params", "largest_micro_batch", "peak_gflops", "update_s", "total_s"})
    EXPECT_GT(answer[key].get<double>(), 0) << key;
  const double rate = 1e9 * answer["peak_gflops"].get<double>() * answer["assumed_share"].get<double>();
  EXPECT_NEAR(answer["update_s"].get<double>() * rate / answer["flops"].get<double>(), 1, 1e-9);
  EXPECT_NEAR(answer["total_s"].get<double>() / answer["update_s"].get<double>(), 8, 1e-9);
  const std::string text = run_in_process("plan", small_scratch_run(), false).out;
  for (const char* part : {"saved activations", "optimizer state", "batches being loaded", "assumes 50 %",
                           "largest micro-batch", "this plan"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(TrainPlan, AccumulationAddsWorkAndSavesMemory) {
  const auto whole = run_in_process("plan", small_scratch_run()).json();
  for (const auto& how : {settings({"train.micro_batch=4"}), std::vector<std::string>{"--batch", "4"}}) {
    const auto parts = run_in_process("plan", small_scratch_run() + how).json();
    EXPECT_EQ(parts["accumulation"], 4);
    EXPECT_EQ(parts["batch"], 16);
    EXPECT_LT(parts["memory"]["saved"], whole["memory"]["saved"]);
    EXPECT_NEAR(parts["flops"].get<double>() / whole["flops"].get<double>(), 1, 0.05);
  }
}

TEST(TrainPlan, AModelOfTheCommandReplacesThatOfTheConfig) {
  const TempFolder folder;
  const std::string config = (folder.path() / "config.json").string();
  write_file(config,
             R"({"model": {"image": 28, "patch": 4, "width": 128, "depth": 2, "heads": 2, "classes": 10}})");
  const std::vector<std::string> named = {"--config",  config, "-m", "vit_tiny_patch16_224",
                                          "--weights", "rule"};
  const auto params = [&](const std::vector<std::string>& more) {
    return run_in_process("plan", named + std::vector<std::string>{"--train", "--classes", "1000"} + more)
        .json()["params"]
        .get<int64_t>();
  };
  EXPECT_EQ(params({}), 5'717'416);
  EXPECT_EQ(params(settings({"model.depth=11"})), 5'717'416 - 444'864);  // a block of width 192
}

TEST(TrainPlan, WhatTheCommandSaysOfABatchHolds) {
  const std::vector<std::string> tiny = {
      "-m", "vit_tiny_patch16_224", "--weights", "rule", "--train", "--batch", "4"};
  EXPECT_EQ(run_in_process("plan", tiny).json()["batch"], 4);
  const auto three = run_in_process("plan", tiny + settings({"train.accumulation=3"})).json();
  EXPECT_EQ(three["batch"], 12);
  EXPECT_EQ(three["accumulation"], 3);
  EXPECT_EQ(error_of("plan", tiny + settings({"train.batch=6"})).kind(), ErrorKind::kConfig);
}

TEST(TrainPlan, FrozenParametersNeedNoGradients) {
  const auto probe = run_in_process("plan", tiny_run() + settings({"params.linear_probe=true"})).json();
  EXPECT_EQ(probe["params_trained"], 4 * 16 + 4);
  EXPECT_LT(probe["memory"]["gradients"].get<int64_t>() * 10, probe["memory"]["parameters"].get<int64_t>());
}

TEST(TrainPlan, RecomputingTradesMemoryForWork) {
  const auto levels =
      run_in_process("plan", small_scratch_run() + settings({"model.depth=6"})).json()["recompute"];
  ASSERT_EQ(levels.size(), 5u);
  const auto peak = [&](size_t level) { return levels[level]["peak"].get<int64_t>(); };
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_LT(peak(i), peak(0));
    EXPECT_LE(peak(i), peak(i - 1));
    EXPECT_GT(levels[i]["flops"], levels[i - 1]["flops"]);
  }
  EXPECT_LT(peak(4), peak(3));
  const auto block = run_in_process("plan", small_scratch_run() + settings({"model.depth=6"}) +
                                                std::vector<std::string>{"--recompute", "block"});
  EXPECT_EQ(block.json()["memory"]["peak"], levels[4]["peak"]);
}

TEST(TrainPlan, TheLargestMicroBatchFitsAndAFewMoreDoNot) {
  const RunPlan plan =
      planned_run(options_of("plan", tiny_run() + settings({"train.batch=64"})), cpu_device());
  EXPECT_EQ(plan.largest_micro_batch(plan.peak_bytes()), 64);
  EXPECT_EQ(plan.largest_micro_batch(plan.peak_bytes() - 1), 63);
  EXPECT_EQ(plan.largest_micro_batch(1000), 0);
  const RunPlan mixed = planned_run(
      options_of("plan",
                 tiny_run() + settings({"train.batch=64", "augment.mixup=0.8", "augment.mix_group=8"})),
      cpu_device());
  EXPECT_EQ(mixed.largest_micro_batch(mixed.peak_bytes() - 1), 56);
}

// The teacher answers a micro-batch of the size that is tried, not of the plan's own.
TEST(TrainPlan, TheLargestMicroBatchLeavesRoomForItsTeacher) {
  const TempFolder folder;
  const std::string teacher = (folder.path() / "teacher").string();
  run_in_process("train", tiny_run() + std::vector<std::string>{"--out", teacher});
  const auto planned = [&](const char* batch) {
    const auto distilled = settings({"distill.kind=soft", "distill.teacher=" + teacher, batch});
    return planned_run(options_of("plan", tiny_run() + distilled), cpu_device());
  };
  const RunPlan small = planned("train.batch=8"), large = planned("train.batch=64");
  EXPECT_EQ(small.largest_micro_batch(large.peak_bytes()), 64);
  EXPECT_EQ(small.largest_micro_batch(large.peak_bytes() - 1), 63);
}

TEST(TrainPlan, WithoutDataClassesAreAssumedAndSaid) {
  const std::vector<std::string> model = {
      "--model", "vit_tiny_patch16_224", "--weights", "rule", "--image", "32", "--train", "--batch", "2"};
  const Answer own = run_in_process("plan", model);
  EXPECT_NE(own.err.find("1000 classes assumed"), std::string::npos) << own.err;
  EXPECT_TRUE(own.json()["steps"].is_null());
  const Answer ten = run_in_process("plan", model + std::vector<std::string>{"--classes", "10"});
  EXPECT_EQ(own.json()["params"].get<int64_t>() - ten.json()["params"].get<int64_t>(), 990 * 193);
  EXPECT_EQ(ten.json()["micro_batch"], 2);
  const Answer gone = run_in_process("plan", tiny_run() + settings({"data.train=folder:/nowhere"}));
  EXPECT_NE(gone.err.find("/nowhere"), std::string::npos) << gone.err;
  EXPECT_NE(gone.err.find("classes assumed"), std::string::npos) << gone.err;
  // A wrong format is a mistake, not missing data.
  EXPECT_EQ(error_of("plan", tiny_run() + settings({"data.train=folderr:/nowhere"})).kind(),
            ErrorKind::kConfig);
}

TEST(TrainPlan, DumpsShowWhatEachPassDid) {
  const auto dumped = [](const char* pass) {
    return run_in_process("plan",
                          tiny_run() + settings({"train.recompute=block"}) +
                              std::vector<std::string>{"--dtype", "bf16", "--dump-after", pass},
                          false)
        .out;
  };
  const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  const std::string recorded = dumped("record"), differentiated = dumped("differentiate"),
                    lowered = dumped("precision"), recomputed = dumped("recompute"), fused = dumped("fuse");
  EXPECT_EQ(recorded.find("linear_dw"), std::string::npos);
  EXPECT_NE(differentiated.find("linear_dw"), std::string::npos);
  EXPECT_EQ(differentiated.find("bf16"), std::string::npos);
  EXPECT_NE(lowered.find("bf16"), std::string::npos);
  EXPECT_GT(lines(recomputed), lines(lowered));
  EXPECT_LT(lines(fused), lines(recomputed));
  for (const auto& only : std::vector<std::vector<std::string>>{
           {"--dump-after", "recompute"}, {"--dtype", "f16"}, {"--train", "--dtype", "int8"}})
    EXPECT_EQ(error_of("plan", only + std::vector<std::string>{"--weights", "rule"}).kind(),
              ErrorKind::kUsage);
}

TEST(TrainPlan, ADumpIsToldInJsonWithItsPass) {
  const auto dump = tiny_run() + std::vector<std::string>{"--dump-after", "fuse"};
  const auto json = run_in_process("plan", dump).json();
  EXPECT_EQ(json.size(), 2u);
  EXPECT_EQ(json["after"], "fuse");
  EXPECT_EQ(json["program"], run_in_process("plan", dump, false).out);
}

// A device of 20 megabytes, and one of a thousand.
TEST(TrainPlan, WhatDoesNotFitIsWarnedOf) {
  const TempFolder folder;
  const auto told = [&](const char* bytes) {
    const std::string desk = folder.file(
        "desk.json", R"({"format": "vitrail device 2", "kind": "cpu", "name": "desk", "source": "here",
        "isa": "avx2", "cores": 1, "rates": [{"threads": 1, "fma_gflops": 100, "copy_gbps": 10}],
        "products": [{"m": 64, "n": 32, "k": 16, "threads": 1, "gflops": 80}], "memory_bytes": )" +
                         std::string(bytes) + "}");
    const auto wide = tiny_run() + settings({"model.width=512", "model.mlp=2048"});
    return run_in_process("plan", wide + std::vector<std::string>{"--target", desk}).err;
  };
  EXPECT_NE(told("20000000").find("warning: this does not fit"), std::string::npos) << told("20000000");
  EXPECT_EQ(told("1000000000").find("does not fit"), std::string::npos);
}

TEST(TrainPlan, DumpsShowTheOtherProgramsOfAStep) {
  const auto dumped = [](const char* program) {
    return run_in_process("plan",
                          tiny_run() + std::vector<std::string>{"--mesh", "dp=2", "--dump-after", program},
                          false)
        .out;
  };
  EXPECT_EQ(dumped("group_updates").find("all_reduce"), std::string::npos);
  EXPECT_NE(dumped("last_micro").find("all_reduce"), std::string::npos);
  EXPECT_NE(dumped("update").find("adam_update"), std::string::npos);
  EXPECT_EQ(dumped("evaluation").find("linear_dw"), std::string::npos);
  EXPECT_NE(dumped("evaluation").find("linear"), std::string::npos);
  EXPECT_EQ(dumped("teacher"), "none: distill.kind is none\n");
  EXPECT_NE(dumped("offload_update").find("none: mesh.offload is none"), std::string::npos);
  EXPECT_EQ(error_of("plan", {"--weights", "rule", "--dump-after", "update"}).kind(), ErrorKind::kUsage);
}

}  // namespace
}  // namespace vitrail::cli
