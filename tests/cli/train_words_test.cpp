// What vitrail train makes of its words: the length of a run, and its folder's name where none is given.
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/train_settings.h"
#include "tiny_training.h"
#include "working_folder.h"

namespace vitrail::cli {
namespace {

TEST(TrainWords, ATimeIsOfSecondsMinutesOrHours) {
  const std::pair<const char*, double> rows[] = {{"90s", 1.5}, {"55m", 55}, {"1.5h", 90}, {"7", 7}};
  for (const auto& [text, minutes] : rows) {
    const TempFolder folder;
    const std::string run = (folder.path() / "run").string();
    run_in_process("train", tiny_run() + settings({"train.steps=1"}) +
                                std::vector<std::string>{"--out", run, "--max-time", text});
    const auto config = nlohmann::json::parse(read_file(run + "/config.json", 1 << 20));
    EXPECT_DOUBLE_EQ(config["train"]["max_minutes"].get<double>(), minutes) << text;
  }
}

// The name of the config's file without its last ending.
TEST(TrainWords, ARunIsNamedAfterItsConfig) {
  const TempFolder folder;
  const WorkingFolder there(folder.path());
  std::filesystem::create_directory("of.mine");
  const std::pair<const char*, const char*> rows[] = {{"my.b16.json", "my.b16"},
                                                      {"of.mine/other.json", "other"}};
  for (const auto& [file, name] : rows) {
    write_file(file, "{}");
    run_in_process("train",
                   std::vector<std::string>{"--config", file} + tiny_run() + settings({"train.steps=1"}));
    EXPECT_TRUE(std::filesystem::exists(std::string("runs/") + name + "/config.json")) << file;
  }
  run_in_process("train", tiny_run() + settings({"train.steps=1"}));
  EXPECT_TRUE(std::filesystem::exists("runs/run/config.json"));
}

TEST(TrainWords, TheEnvironmentsSeedCountsMoreThanTheConfigs) {
  const TempFolder folder;
  const std::vector<std::string> words = {"--config", folder.file("c.json", R"({"train": {"seed": 3}})")};
  const auto seed = [&](const char* variable, const std::vector<std::string>& more) {
    const Environment environment = [&](const std::string& name) {
      return name == "VITRAIL_SEED" ? variable : nullptr;
    };
    return read_train_config(
               parse_options(command_named("train").spec, words + more, environment, read_config_file))
        .train.seed;
  };
  EXPECT_EQ(seed(nullptr, {}), 3);
  EXPECT_EQ(seed("7", {}), 7);
  EXPECT_EQ(seed("7", {"--seed", "9"}), 9);
}

TEST(TrainWords, PointsToTheReportWhereThereIsOne) {
  const TempFolder folder;
  const std::string report = (folder.path() / "run/report.html").string();
  const std::vector<std::string> run =
      tiny_run() + std::vector<std::string>{"--out", (folder.path() / "run").string()};
  EXPECT_NE(run_in_process("train", run, false).err.find("; see " + report), std::string::npos);
  std::filesystem::remove(report);
  std::filesystem::create_directories(report + "/in the way");
  const std::string said = run_in_process("train", run + std::vector<std::string>{"--resume"}, false).err;
  EXPECT_NE(said.find("report.html was not written"), std::string::npos) << said;
  EXPECT_NE(said.find("done: "), std::string::npos) << said;
  EXPECT_EQ(said.find("; see "), std::string::npos) << said;
}

}  // namespace
}  // namespace vitrail::cli
