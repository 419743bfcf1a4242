// What vitrail train makes of its words: the length of a run, and its folder's name where none is given.
#include <gtest/gtest.h>

#include <filesystem>

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

}  // namespace
}  // namespace vitrail::cli
