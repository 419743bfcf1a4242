// bench train: what it reports about a step it ran. What either bench refuses to compare.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backend/cpu/host/levels.h"
#include "tiny_training.h"

namespace vitrail::cli {
namespace {

std::vector<std::string> tiny_bench(const std::vector<std::string>& more = {}) {
  return tiny_model() + std::vector<std::string>{"--classes", "4",        "--batch", "8",         "--steps",
                                                 "3",         "--warmup", "1",       "--threads", "1"} +
         more;
}

TEST(BenchTrain, ReportsAStepThatLearned) {
  const auto one = run_in_process("bench train", tiny_bench()).json();
  EXPECT_EQ(one["runs"], 3);
  EXPECT_EQ(one["batch"], 8);
  EXPECT_TRUE(one["training"].get<bool>());
  for (const char* key : {"img_per_s", "ms_median", "ms_p90", "ms_min", "gflops", "peak_fraction", "loss"})
    EXPECT_GT(one[key].get<double>(), 0) << key;
  const auto later =
      run_in_process("bench train", tiny_bench({"--steps", "40", "--set", "optim.lr=0.05"})).json();
  EXPECT_LT(later["loss"].get<double>(), 0.7 * one["loss"].get<double>());
}

TEST(BenchTrain, TheLossDoesNotDependOnThreadsRecomputingOrMicroBatches) {
  const auto loss = [](const std::vector<std::string>& how) {
    return run_in_process("bench train", tiny_bench(how)).json()["loss"].get<double>();
  };
  const double expected = loss({});
  EXPECT_EQ(loss({"--threads", "3"}), expected);
  EXPECT_EQ(loss({"--recompute", "block"}), expected);
  EXPECT_NEAR(loss({"--dtype", "bf16"}), expected, 0.02);
  EXPECT_NE(loss({"--optimizer", "sgd"}), expected);
}

TEST(BenchTrain, MemoryIsWhatThePlanSays) {
  const auto bench = run_in_process("bench train", tiny_bench()).json();
  const auto memory =
      run_in_process("plan", tiny_model() + std::vector<std::string>{"--train", "--classes", "4", "--batch",
                                                                     "8", "--threads", "1"})
          .json()["memory"];
  EXPECT_EQ(bench["memory_peak"].get<int64_t>(),
            memory["peak"].get<int64_t>() - memory["batches being loaded"].get<int64_t>());
}

TEST(BenchTrain, AccumulatesAsTheConfigSays) {
  const auto bench =
      run_in_process("bench train", tiny_bench() + settings({"train.batch=24", "train.dropout=0.1"})).json();
  EXPECT_EQ(bench["batch"], 24);
  EXPECT_EQ(bench["micro_batch"], 8);
  EXPECT_TRUE(std::isfinite(bench["loss"].get<double>()));
}

// The 90th percentile of three steps lies four fifths of the way from the second to the third.
TEST(BenchTrain, TheFiguresOfAResultFitEachOther) {
  const auto result = run_in_process("bench train", tiny_bench()).json();
  const auto figure = [&](const char* name) { return result[name].get<double>(); };
  EXPECT_LE(figure("ms_min"), figure("ms_median"));
  EXPECT_NEAR(figure("ms_p90"), figure("ms_median") + 0.8 * (figure("ms_max") - figure("ms_median")),
              1e-9 * figure("ms_max"));
  EXPECT_NEAR(figure("img_per_s") * figure("ms_median"), 8e3, 1e-6);
  auto each = result["ms_each"].get<std::vector<double>>();
  std::sort(each.begin(), each.end());
  EXPECT_EQ(each, (std::vector<double>{figure("ms_min"), figure("ms_median"), figure("ms_max")}));
  EXPECT_NEAR(figure("peak_fraction") * figure("peak_gflops"), figure("gflops"), 1e-9 * figure("gflops"));
}

TEST(BenchInfer, TheFiguresOfAResultFitEachOther) {
  const auto result = run_in_process("bench infer", {"--weights", "rule", "--model", "vit_tiny_patch16_224",
                                                     "--image", "32", "--seconds", "0", "--threads", "1"})
                          .json();
  const auto figure = [&](const char* name) { return result[name].get<double>(); };
  EXPECT_EQ(result["runs"], 3) << "at least so many";
  EXPECT_GT(figure("peak_gflops"), 0);
  EXPECT_NEAR(figure("img_per_s") * figure("ms_median"), 1e3, 1e-6);
  EXPECT_NEAR(figure("peak_fraction") * figure("peak_gflops"), figure("gflops"), 1e-9 * figure("gflops"));
  EXPECT_FALSE(result.contains("speedup"));
}

// Ranks time as many updates as --steps says, and otherwise twenty.
TEST(BenchTrain, RanksTimeTwentyUpdatesUnlessStepsAreNamed) {
  const std::vector<std::string> ranks =
      tiny_model() + std::vector<std::string>{"--classes", "4",         "--batch", "8",       "--warmup",
                                              "1",         "--threads", "1",       "--ranks", "2"};
  EXPECT_EQ(run_in_process("bench train", ranks).json()["timing"]["updates"], 20);
  EXPECT_EQ(run_in_process("bench train", ranks + std::vector<std::string>{"--steps", "3"})
                .json()["timing"]["updates"],
            3);
}

// A slack of 1 is twice the time, so a result ten times as fast is missed.
TEST(BenchTrain, SlackIsAShareOfTheSavedTime) {
  const TempFolder folder;
  auto result = run_in_process("bench train", tiny_bench()).json();
  result["ms_median"] = result["ms_median"].get<double>() / 20;
  const std::string faster = folder.file("faster.json", result.dump());
  try {
    run_in_process("bench train", tiny_bench({"--compare", faster, "--slack", "1"}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCheck);
    EXPECT_NE(error.message().find("at least 0.500"), std::string::npos) << error.message();
  }
}

TEST(BenchTrain, AResultOfInferenceIsNoneOfTraining) {
  const TempFolder folder;
  const auto result = run_in_process("bench train", tiny_bench()).json();
  const std::string own = folder.file("own.json", result.dump());
  EXPECT_GT(run_in_process("bench train", tiny_bench({"--compare", own, "--slack", "1000"}))
                .json()["speedup"]
                .get<double>(),
            0);
  auto inference = result;
  inference.erase("training");
  try {
    run_in_process("bench train", tiny_bench({"--compare", folder.file("other.json", inference.dump())}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("bench infer"), std::string::npos) << error.what();
  }
}

TEST(BenchInfer, OnlyTheSameWorkIsCompared) {
  const TempFolder folder;
  const std::vector<std::string> base = {"--weights", "rule", "--model",   "vit_tiny_patch16_224",
                                         "--image",   "32",   "--seconds", "0",
                                         "--warmup",  "0",    "--slack",   "1000"};
  const auto run = [&](const std::vector<std::string>& more) {
    return run_in_process("bench infer", base + more).json();
  };
  const std::vector<std::string> how = {"--threads", "2", "--isa", "baseline"};
  const std::string saved = folder.file("saved.json", run(how).dump());
  const auto compared = [&](const std::vector<std::string>& more) {
    return run(how + more + std::vector<std::string>{"--compare", saved});
  };
  EXPECT_GT(compared({})["speedup"].get<double>(), 0);
  struct Case {
    std::vector<std::string> more;
    const char* says;
  };
  for (const Case& c : {Case{{"--dtype", "bf16"}, "in bf16"},
                        {{"--threads", "1"}, "1 thread)"},
                        {{"--isa", to_string(best_isa())}, to_string(best_isa())},
                        {{"--batch", "2"}, "at batch 2"},
                        {{"--backend", "ref"}, "on ref"},
                        {{"--model", "vit_small_patch16_224"}, "of vit_small_patch16_224"}}) {
    if (c.more[0] == "--isa" && best_isa() == IsaLevel::kBaseline) continue;
    try {
      compared(c.more);
      ADD_FAILURE() << c.says;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(error.message().find("baseline, 2 threads"), std::string::npos) << error.message();
      EXPECT_NE(error.message().find(c.says), std::string::npos) << error.message();
    }
  }
}

TEST(BenchTrain, ProfilesBothPrograms) {
  const std::string text = run_in_process("bench train", tiny_bench({"--profile"}), false).out;
  for (const char* part : {"blocks.*.attn.qkv.dw", "update.head.weight", "after 4 steps"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

}  // namespace
}  // namespace vitrail::cli
