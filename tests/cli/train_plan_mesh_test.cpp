// vitrail plan of a training run on several ranks: what the largest of them holds, what they exchange and how
// long they wait.
#include <gtest/gtest.h>

#include <map>

#include "backend/cpu/kernels.h"
#include "cli/train_plan.h"
#include "cli/train_settings.h"
#include "tiny_training.h"

namespace vitrail::cli {
namespace {

// The first rank gets the smallest part of what does not divide: the plan is of the one that needs most.
TEST(TrainPlan, AMeshIsPlannedForItsLargestRank) {
  const auto uneven = tiny_run() + settings({"train.batch=17", "train.micro_batch=0"});
  const auto answer = run_in_process("plan", uneven + std::vector<std::string>{"--mesh", "dp=3"}).json();
  EXPECT_EQ(answer["ranks"], 3);
  EXPECT_GT(answer["largest_rank"], 0);
  EXPECT_EQ(answer["least_rank"]["rank"], 0);
  EXPECT_LT(answer["least_rank"]["peak"], answer["memory"]["peak"]);
  const std::string text =
      run_in_process("plan", uneven + std::vector<std::string>{"--mesh", "dp=3"}, false).out;
  EXPECT_NE(text.find("which needs most"), std::string::npos) << text;
  // It is what the largest rank of a run holds.
  size_t most = 0;
  for (int rank = 0; rank < 3; ++rank) {
    TrainConfig config = read_train_config(options_of("train", uneven));
    config.mesh.dp = 3;
    most = std::max(
        most, RunPlan(config, std::nullopt, find_backend("cpu"), cpu_device(1), {rank, 3, 3}).peak_bytes());
  }
  EXPECT_EQ(answer["memory"]["peak"], most);
  const auto even = run_in_process("plan", tiny_run() + std::vector<std::string>{"--mesh", "dp=2"}).json();
  EXPECT_EQ(even["largest_rank"], 0);
  EXPECT_EQ(even["least_rank"]["peak"], even["memory"]["peak"]);
}

TEST(TrainPlan, WhatIsKeptOfTheSumsIsAChoiceBetweenMicroBatches) {
  const auto zero2 = tiny_run() + std::vector<std::string>{"--mesh", "dp=2,zero=2"};
  EXPECT_FALSE(run_in_process("plan", zero2).json().contains("accumulate")) << "there is one alone";
  const auto parts = run_in_process("plan", zero2 + settings({"train.micro_batch=4"})).json();
  ASSERT_EQ(parts["accumulate"].size(), 2u);
  EXPECT_EQ(parts["accumulate"][0]["sums"], "piece");
  EXPECT_LT(parts["accumulate"][0]["peak"], parts["accumulate"][1]["peak"]);
  EXPECT_GT(parts["accumulate"][0]["bytes"], parts["accumulate"][1]["bytes"]);
}

// Collectives and bytes of an update, by the textbook: data parallelism sums every gradient once, tensor
// parallelism takes two all-reduces a block each way.
TEST(TrainPlan, AMeshHasItsCollectivesAndBytes) {
  const auto rows_of = [](const std::string& mesh) {
    const auto answer = run_in_process("plan", tiny_run() + std::vector<std::string>{"--mesh", mesh}).json();
    std::map<std::pair<std::string, std::string>, std::pair<int64_t, double>> rows;
    for (const auto& row : answer["collectives"])
      rows[{row["kind"], row["along"]}] = {row["count"].get<int64_t>(), row["bytes"].get<double>()};
    return std::pair(answer, rows);
  };
  const auto [dp, summed] = rows_of("dp=2");
  const double gradients = 4 * dp["params"].get<double>();
  const double reduced = summed.at({"all_reduce", "dp"}).second;
  EXPECT_GE(reduced, gradients) << "2 (p - 1) / p of all gradients";
  EXPECT_LT(reduced, 1.05 * gradients);
  const auto [tp, shared] = rows_of("tp=2");
  EXPECT_GE(shared.at({"all_reduce", "tp"}).first, 2 * 4 - 1) << "two blocks, the last of them for one token";
  const auto [zero, gathered] = rows_of("dp=2,zero=3");
  EXPECT_GT(gathered.at({"all_gather", "dp"}).first, 0);
  EXPECT_GT(gathered.at({"reduce_scatter", "dp"}).first, 0);
  EXPECT_LT(zero["memory"]["optimizer"], dp["memory"]["optimizer"]);
}

// Two stages, four micro-batches: (p - 1) / (m + p - 1) of the time is waiting, every stage has its row, and
// the grid is the one that is drawn by hand.
TEST(TrainPlan, APipelineHasItsBubbleItsStagesAndItsTurns) {
  const auto run = tiny_run() + settings({"train.micro_batch=4", "mesh.pp=2"});
  const auto by = [&](const char* schedule) {
    return run + settings({std::string("mesh.schedule=") + schedule});
  };
  const auto plan = run_in_process("plan", by("gpipe")).json();
  const auto& pipeline = plan["pipeline"];
  EXPECT_EQ(plan["ranks"], 2);
  EXPECT_EQ(pipeline["schedule"], "gpipe");
  EXPECT_EQ(pipeline["stages"], 2);
  EXPECT_EQ(pipeline["virtual_stages"], 1);
  EXPECT_EQ(pipeline["micro_batches"], 4);
  EXPECT_NEAR(pipeline["bubble"].get<double>(), 0.2, 1e-12);
  ASSERT_EQ(pipeline["by_stage"].size(), 2u);
  const double sent = 4.0 * (4 * 5 * 16) * 4;  // micro-batches of 4 images of 5 tokens of width 16, in f32
  for (size_t stage : {0, 1}) {
    const auto& row = pipeline["by_stage"][stage];
    EXPECT_EQ(row["blocks"], std::to_string(stage));
    EXPECT_EQ(row["micro_batches_kept"], 4);
    EXPECT_EQ(row["sent_bytes"].get<double>(), sent) << "activations there, their gradients back";
    EXPECT_GT(row["flops"].get<double>(), 0);
  }
  EXPECT_EQ(plan["memory"]["peak"], std::max(pipeline["by_stage"][0]["peak"].get<int64_t>(),
                                             pipeline["by_stage"][1]["peak"].get<int64_t>()));
  ASSERT_EQ(pipeline["turns"].size(), 16u);
  const nlohmann::json first = {
      {"time", 0}, {"stage", 0}, {"chunk", 0}, {"micro_batch", 0}, {"direction", "forward"}};
  const nlohmann::json last = {
      {"time", 13}, {"stage", 0}, {"chunk", 0}, {"micro_batch", 3}, {"direction", "backward"}};
  EXPECT_EQ(pipeline["turns"].front(), first);
  EXPECT_EQ(pipeline["turns"].back(), last);

  const auto one = run_in_process("plan", by("1f1b")).json()["pipeline"];
  EXPECT_NEAR(one["bubble"].get<double>(), 0.2, 1e-12);
  EXPECT_EQ(one["by_stage"][0]["micro_batches_kept"], 2);
  EXPECT_EQ(one["by_stage"][1]["micro_batches_kept"], 1);
  EXPECT_LT(one["by_stage"][0]["peak"], pipeline["by_stage"][0]["peak"]);

  const std::string text = run_in_process("plan", by("gpipe"), false).out;
  for (const char* part :
       {"Pipeline: gpipe, 4 micro-batches an update; with stages of equal cost they wait 20.0 % of",
        "micro-batches kept", "stage 0  F0 F1 F2 F3 .  .  .  B0 B0 B1 B1 B2 B2 B3 B3\n",
        "stage 1  .  F0 F1 F2 F3 B0 B0 B1 B1 B2 B2 B3 B3 .  .\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

}  // namespace
}  // namespace vitrail::cli
