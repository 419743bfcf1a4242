// --deepspeed on the command line: appendix B of the scaling study as it stands, what plan prints of it, and
// who wins.
#include <gtest/gtest.h>

#include "cli/deepspeed_choice.h"
#include "source_root.h"
#include "tiny_training.h"

namespace vitrail::cli {
namespace {

const std::string kAppendixB =
    std::string(VT_SOURCE_DIR) + "/tests/golden/deepspeed/seed-003-appendix-b.json";

std::vector<std::string> tiny_settings() {
  return tiny_model() + settings({"data.train=synthetic:3x8x8x4x64", "train.steps=2", "train.log_every=1",
                                  "train.tensorboard=false", "optim.lr=0.01"});
}

std::vector<double> losses(const std::vector<std::string>& arguments) {
  const TempFolder folder;
  const Answer answer = run_in_process(
      "train",
      arguments + std::vector<std::string>{"--threads", "1", "--out", (folder.path() / "run").string()});
  std::vector<double> values;
  for (const auto& line : json_lines(answer.out))
    if (line["kind"] == "train") values.push_back(line["loss"]);
  return values;
}

TEST(DeepSpeedCommand, AppendixBRunsAsThePrintedConfigDoes) {
  for (const std::string ranks : {"1", "2"}) {
    const std::vector<std::string> file = {"--deepspeed", kAppendixB};
    const Answer plan = run_in_process(
        "plan", file + tiny_settings() + std::vector<std::string>{"--mesh", "dp=" + ranks}, false);
    EXPECT_NE(plan.err.find("micro_batch_per_gpu 16 is no key of DeepSpeed"), std::string::npos);
    EXPECT_NE(plan.err.find("pin_memory has no effect"), std::string::npos);
    const nlohmann::json config = nlohmann::json::parse(plan.out);
    EXPECT_EQ(config["train"]["micro_batch"], ranks == "1" ? 32 : 16);
    const TempFolder folder;
    const std::string printed = folder.file("run.json", plan.out);
    const auto given = losses(file + tiny_settings() + std::vector<std::string>{"--ranks", ranks});
    EXPECT_EQ(given.size(), 2U);
    EXPECT_EQ(given, losses({"--config", printed, "--ranks", ranks}));
  }
}

TEST(DeepSpeedCommand, RanksThatDoNotDivideTheBatchAreRefusedWithTheNumbers) {
  const Error error = error_of(
      "train", std::vector<std::string>{"--deepspeed", kAppendixB, "--ranks", "3"} + tiny_settings());
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  for (const char* number : {"32", "10", "3 data-parallel ranks"})
    EXPECT_NE(error.message().find(number), std::string::npos) << error.message();
}

TEST(DeepSpeedCommand, StandsBetweenConfigAndSet) {
  const TempFolder folder;
  const std::string config = folder.file("run.json", R"({"optim": {"lr": 0.5, "clip_norm": 3}})");
  const std::string file = folder.file(
      "ds.json",
      R"({"train_batch_size": 8, "gradient_clipping": 1, "optimizer": {"type": "SGD", "params": {"lr": 0.25}}})");
  const Answer plan = run_in_process(
      "plan",
      std::vector<std::string>{"--config", config, "--deepspeed", file, "--set", "optim.clip_norm=2"} +
          tiny_model(),
      false);
  const nlohmann::json became = nlohmann::json::parse(plan.out);
  EXPECT_EQ(became["optim"]["lr"], 0.25);
  EXPECT_EQ(became["optim"]["clip_norm"], 2);
  EXPECT_NE(plan.err.find("replaces optim.lr=0.5 of the config"), std::string::npos) << plan.err;
  EXPECT_NE(plan.err.find("gives way to optim.clip_norm=2"), std::string::npos) << plan.err;
  EXPECT_FALSE(became.contains("model") && became["model"].contains("init"));
}

// A flag, a variable and --set are the command's; what a config file says is not.
TEST(DeepSpeedCommand, WhatACommandSaysIsToldFromItsConfig) {
  const TempFolder folder;
  const std::string config = folder.file(
      "run.json",
      R"({"seed": 3, "batch": 4, "optimizer": "lamb", "mesh": "dp=2,zero=1", "train": {"epochs": 2}})");
  const std::pair<std::string, std::vector<std::string>> rows[] = {
      {"train.seed", {"--seed", "3"}},          {"train.micro_batch", {"--batch", "4"}},
      {"optim.name", {"--optimizer", "lamb"}},  {"mesh.dp", {"--mesh", "dp=2,zero=1"}},
      {"mesh.zero", {"--mesh", "dp=2,zero=1"}}, {"train.epochs", {"--set", "train.epochs=2"}},
      {"train.dtype", {"--dtype", "bf16"}},     {"train.recompute", {"--recompute", "block"}}};
  const Options by_config = options_of("plan", {"--config", config}), by_nobody = options_of("plan", {});
  for (const auto& [key, words] : rows) {
    EXPECT_FALSE(given_on_command_line(by_nobody, key)) << key;
    EXPECT_FALSE(given_on_command_line(by_config, key)) << key;
    EXPECT_TRUE(given_on_command_line(options_of("plan", words), key)) << key;
  }
  const Options variable = parse_options(
      command_named("plan").spec, std::vector<std::string>{},
      [](const std::string& name) { return name == "VITRAIL_BATCH" ? "4" : nullptr; }, read_config_file);
  EXPECT_TRUE(given_on_command_line(variable, "train.micro_batch"));
  EXPECT_FALSE(given_on_command_line(options_of("plan", {"--mesh", "dp=2"}), "mesh.zero"));
}

TEST(DeepSpeedCommand, WhatCannotBeReadIsRefused) {
  for (const char* file : {"/nowhere/ds.json", "/tmp"}) {
    const Error error = error_of("train", std::vector<std::string>{"--deepspeed", file} + tiny_settings());
    EXPECT_EQ(error.kind(), ErrorKind::kConfig) << error.what();
  }
}

}  // namespace
}  // namespace vitrail::cli
