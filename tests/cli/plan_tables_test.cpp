// Tables of plan about devices that are not here: several models, ways to make a batch fit, parameters,
// energy.
#include <gtest/gtest.h>

#include <filesystem>

#include "h200_words.h"
#include "tiny_training.h"

namespace vitrail::cli {
namespace {

// Figure 3 of document 004: three models at one batch, one table and one figure.
TEST(PlanTables, SeveralModelsMakeOneTable) {
  const TempFolder folder;
  const std::string figure = (folder.path() / "memory.svg").string();
  const std::vector<std::string> models = {"vit_base_patch32_224", "vit_base_patch16_224",
                                           "vit_base_patch8_224"};
  const std::vector<std::string> asked = {"--weights", "rule",     "--targets", "t4",
                                          "--train",   "--batch",  "512",       "--classes",
                                          "10",        "--figure", figure};
  const std::vector<std::string> list = {"-m", models[0] + "," + models[1] + "," + models[2]};
  const auto rows = run_in_process("plan", list + asked).json();
  ASSERT_EQ(rows.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rows[i]["model"], models[i]);
    EXPECT_FALSE(rows[i]["fits"].get<bool>());
    const auto alone = run_in_process("plan", std::vector<std::string>{"-m", models[i]} + asked).json();
    ASSERT_EQ(alone.size(), 1u);
    EXPECT_FALSE(alone[0].contains("model"));
    for (const char* key : {"peak", "largest_batch", "seconds"})
      EXPECT_EQ(alone[0][key], rows[i][key]) << key;
  }
  EXPECT_NE(run_in_process("plan", list + asked, false).out.find("vit_base_patch8_224"), std::string::npos);
  EXPECT_GT(std::filesystem::file_size(figure), 1000u);
  EXPECT_EQ(error_of("plan", {"-m", "vit_base_patch16_224", "--figure", figure}).kind(), ErrorKind::kUsage);
}

// An update is of the whole batch, however many micro-batches it is made of: 64 images are four of them.
TEST(PlanTables, AnUpdateCountsTheImagesOfItsWholeBatch) {
  for (const int64_t micro_batch : {4, 16}) {
    const auto rows =
        run_in_process("plan", tiny_model() +
                                   settings({"data.train=synthetic:3x8x8x4x64", "train.batch=16",
                                             "train.micro_batch=" + std::to_string(micro_batch)}) +
                                   std::vector<std::string>{"--targets", kH200})
            .json();
    ASSERT_EQ(rows.size(), 1u);
    const double update_s = rows[0]["seconds"];
    EXPECT_DOUBLE_EQ(rows[0]["images_per_second"].get<double>() * update_s, 16) << micro_batch;
    EXPECT_DOUBLE_EQ(rows[0]["epoch_s"].get<double>(), 4 * update_s) << micro_batch;
  }
}

TEST(PlanTables, AWantedBatchIsRankedByTime) {
  const std::vector<std::string> asked = {
      "--weights", "rule",      "-m", "vit_base_patch16_224", "--target", "t4", "--wanted-batch",
      "512",       "--classes", "10"};
  const auto all = run_in_process("plan", asked).json();
  ASSERT_GT(all["ways"].size(), 3u);
  for (size_t i = 0; i < all["ways"].size(); ++i) {
    const auto& way = all["ways"][i];
    EXPECT_LE(way["memory"], all["memory_available"]);
    if (i > 0) {
      EXPECT_GE(way["update_s"], all["ways"][i - 1]["update_s"]);
    }
  }
  // What is listed is what the settings give.
  const auto& first = all["ways"][0]["settings"]["train"];
  const auto same =
      run_in_process("plan", {"--weights", "rule", "-m", "vit_base_patch16_224", "--target", "t4",
                              "--classes", "10", "--train", "--set", "train.batch=512", "--set",
                              "train.micro_batch=" + first["micro_batch"].dump(), "--set",
                              "train.dtype=" + first["dtype"].get<std::string>(), "--set",
                              "train.recompute=" + first["recompute"].get<std::string>()})
          .json();
  EXPECT_EQ(same["memory"]["peak"], all["ways"][0]["memory"]);
  EXPECT_EQ(same["update_s"], all["ways"][0]["update_s"]);
  const auto one = run_in_process("plan", asked + std::vector<std::string>{"--dtype", "f32"}).json();
  for (const auto& way : one["ways"]) EXPECT_EQ(way["dtype"], "f32");
}

TEST(PlanTables, OptionsThatWouldHaveNoEffectAreRefused) {
  const std::vector<std::string> wanted = {"--target", "t4", "--wanted-batch", "64"};
  const std::vector<std::string> cluster = {"--target", "t4", "--cluster", "dgx-a100"};
  const std::tuple<std::vector<std::string>, std::string, std::string> cases[] = {
      {{"--parameters", "--targets", "t4"}, "--parameters", "--targets"},
      {{"--parameters", "--target", "t4", "--cluster", "dgx-a100"}, "--parameters", "--cluster"},
      {{"--targets", "t4", "--wanted-batch", "64"}, "--targets", "--wanted-batch"},
      {{"--targets", "t4", "--nodes", "2"}, "--nodes", "--cluster"},
      {wanted + std::vector<std::string>{"--batch", "8"}, "--wanted-batch", "--batch"},
      {wanted + std::vector<std::string>{"--set", "train.accumulation=2"}, "--wanted-batch",
       "--set train.accumulation"},
      {wanted + std::vector<std::string>{"--dump-after", "fuse"}, "--wanted-batch", "--dump-after"},
      {cluster + std::vector<std::string>{"--dump-after", "fuse"}, "--cluster", "--dump-after"}};
  for (const auto& [words, one, other] : cases) {
    const Error error = error_of("plan", std::vector<std::string>{"-m", "vit_tiny_patch16_224"} + words);
    EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
    EXPECT_NE(error.message().find(one), std::string::npos) << error.what();
    EXPECT_NE(error.message().find(other), std::string::npos) << error.what();
    EXPECT_FALSE(error.hint().empty()) << error.what();
  }
}

TEST(PlanTables, SettingsOfRanksThatHaveNoEffectAreSaid) {
  const std::vector<std::string> words = {"--train",   "-m", "vit_tiny_patch16_224", "--weights", "rule",
                                          "--classes", "10"};
  const std::string note = "no effect here: mesh.verify_every compares several ranks";
  EXPECT_EQ(run_in_process("plan", words).err.find(note), std::string::npos);
  const std::string said =
      run_in_process("plan", words + std::vector<std::string>{"--set", "mesh.verify_every=3"}).err;
  EXPECT_NE(said.find(note), std::string::npos) << said;
}

// What --recompute and --set mesh.tp say is kept, however it is written.
TEST(PlanTables, WhatTheCommandNamesIsNotSearched) {
  const std::vector<std::string> tiny = {
      "-m", "vit_tiny_patch16_224", "--weights", "rule", "--classes", "10", "--target", kH200};
  for (const auto& words :
       {std::vector<std::string>{"--recompute", "block"}, {"--set", "train.recompute=block"}}) {
    const auto ways = run_in_process("plan", tiny + std::vector<std::string>{"--wanted-batch", "64"} + words)
                          .json()["ways"];
    ASSERT_FALSE(ways.empty());
    for (const auto& way : ways) EXPECT_EQ(way["settings"]["train"]["recompute"], "block");
  }
  const std::vector<std::string> cluster = {"--cluster", "dgx-a100", "--devices", "6", "--batch", "8"};
  const auto set = run_in_process("plan", tiny + cluster + std::vector<std::string>{"--set", "mesh.tp=3"});
  const auto flag = run_in_process("plan", tiny + cluster + std::vector<std::string>{"--mesh", "tp=3"});
  EXPECT_EQ(set.out, flag.out);
  EXPECT_EQ(set.json()["meshes"].size(), 1u) << set.out;
}

TEST(PlanTables, ParametersByPart) {
  const auto parts =
      run_in_process("plan", {"-m", "vit_base_patch16_224", "--weights", "rule", "--parameters"}).json();
  EXPECT_EQ(parts["params"], 86567656);
  EXPECT_EQ(parts["parts"].size(), 6u);
  const auto table = run_in_process("plan", {"--parameters=table-1"}).json();
  EXPECT_EQ(table[2]["params"], 25557032);
}

TEST(PlanTables, DevicesWithoutTheTypeAreNamedBelow) {
  const std::string xeon = std::string(VT_SOURCE_DIR) + "/configs/devices/xeon-amx-16.json";
  const std::vector<std::string> words = {
      "--weights", "rule", "-m", "vit_base_patch16_224", "--targets", xeon + "," + kH200, "--dtype", "int8"};
  const auto rows = run_in_process("plan", words).json();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(rows[0].contains("problem")) << rows[0];
  EXPECT_GT(rows[1].value("seconds", 0.0), 0) << rows[1];
  EXPECT_NE(run_in_process("plan", words, false).out.find("\nNVIDIA H200: "), std::string::npos);
}

// What the device may draw for as long as an update is predicted to take, on every rank.
TEST(PlanTables, EnergyIsABoundByTheDataSheet) {
  const std::vector<std::string> train = {"--train", "--classes", "10", "--batch", "8", "--dtype", "bf16"};
  const auto one = run_in_process("plan", base_on_h200(train)).json();
  EXPECT_EQ(one["watts"], 700);
  EXPECT_DOUBLE_EQ(one["update_joules_at_most"].get<double>(), 700 * one["update_s"].get<double>());
  EXPECT_FALSE(one.contains("epoch_joules_at_most")) << "the number of images is not known";
  const auto two =
      run_in_process("plan", base_on_h200(train) + std::vector<std::string>{"--mesh", "dp=2"}).json();
  EXPECT_DOUBLE_EQ(two["update_joules_at_most"].get<double>(), 2 * 700 * two["update_s"].get<double>());
  const auto epoch = run_in_process("plan", tiny_run() + std::vector<std::string>{"--target", kH200}).json();
  EXPECT_DOUBLE_EQ(epoch["epoch_joules_at_most"].get<double>(), 700 * epoch["epoch_s"].get<double>());
  const std::string text = run_in_process("plan", base_on_h200(train), false).out;
  EXPECT_NE(text.find("not measured"), std::string::npos);
  EXPECT_NE(text.find(" J an update"), std::string::npos) << text;
  const std::string xeon = std::string(VT_SOURCE_DIR) + "/configs/devices/xeon-amx-16.json";
  EXPECT_FALSE(run_in_process("plan", tiny_run() + std::vector<std::string>{"--target", xeon})
                   .json()
                   .contains("watts"));
}

}  // namespace
}  // namespace vitrail::cli
