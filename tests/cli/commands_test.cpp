// Commands run inside the test on small models: what they compute, beyond what the contract script sees.
#include <gtest/gtest.h>

#include <set>

#include "backend/cpu/host/peak.h"
#include "data/decode.h"
#include "in_process.h"
#include "run_words.h"
#include "source_root.h"
#include "telemetry/format.h"

namespace vitrail::cli {
namespace {

const std::string kModels = std::string(VT_SOURCE_DIR) + "/tests/golden/models/";
const std::string kImages = std::string(VT_SOURCE_DIR) + "/examples/images/";

TEST(Profile, EveryNodeHasAKernelAndTheFlopsOfThePlan) {
  const std::vector<std::string> model = {"--weights", "rule", "--model", "vit_tiny_patch16_224",
                                          "--image",   "32"};
  std::vector<std::string> arguments = model;
  arguments.insert(arguments.end(), {"--seconds", "0", "--by", "node", "--threads", "1"});
  const auto answer = run_in_process("profile", arguments).json();
  std::set<std::string> names;
  double flops = 0;
  for (const auto& row : answer["nodes"]) {
    EXPECT_FALSE(row["kernel"].get<std::string>().empty()) << row.dump();
    EXPECT_GE(row["ms"].get<double>(), 0);
    names.insert(row["name"]);
    flops += row["flops"].get<double>();
  }
  EXPECT_EQ(names.size(), answer["nodes"].size()) << "names are unique";
  EXPECT_DOUBLE_EQ(flops, run_in_process("plan", model).json()["flops"].get<double>());
}

TEST(Bench, LogitsDoNotDependOnHowItRuns) {
  const auto logits = [](std::vector<std::string> how) {
    how.insert(how.end(), {"--weights", "rule", "--model", "vit_tiny_patch16_224", "--image", "32",
                           "--seconds", "0", "--warmup", "0", "--logits"});
    return run_in_process("bench infer", how).json()["logits"].get<std::vector<double>>();
  };
  const std::vector<double> expected = logits({"--threads", "1"});
  ASSERT_EQ(expected.size(), 1000u);
  EXPECT_EQ(logits({"--threads", "3"}), expected);
  EXPECT_EQ(logits({"--parallel", "none", "--threads", "2"}), expected);
  const std::vector<double> reference = logits({"--backend", "ref"});
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(reference[i], expected[i], 1e-4);
}

TEST(Bench, ASavedResultIsCheckedBeforeMeasuring) {
  const TempFolder folder;
  const auto said = [&](const std::string& content) -> std::string {
    try {
      // The saved result is refused at once, although measuring would take an hour.
      run_in_process("bench infer", {"--weights", "rule", "--model", "vit_tiny_patch16_224", "--seconds",
                                     "3600", "--compare", folder.file("saved.json", content)});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(said("[]").find("is no result of vitrail bench"), std::string::npos);
  EXPECT_NE(said("{\"model\": \"vit_tiny_patch16_224\", \"batch\": 1}").find("is no result"),
            std::string::npos);
}

TEST(Inspect, AFilterThatMatchesNothingSaysSo) {
  const Answer answer = run_in_process("inspect", {kModels + "hf_single", "--filter", "nothing*"}, false);
  EXPECT_NE(answer.err.find("matches \"nothing*\""), std::string::npos) << answer.err;
  EXPECT_NE(answer.out.find("0 tensors"), std::string::npos);
  const Answer one = run_in_process("inspect", {kModels + "hf_single", "--filter", "*cls_token"}, false);
  EXPECT_NE(one.out.find("1 tensor "), std::string::npos) << one.out;
}

TEST(Inspect, ListsTheArchitectures) {
  const auto list = run_in_process("inspect", {"--architectures"}).json();
  EXPECT_GT(list.size(), 60u);
  EXPECT_EQ(list[1]["name"], "vit_base_patch16_224");
  EXPECT_EQ(list[1]["params"], 86'567'656);
  EXPECT_THROW(run_in_process("inspect", {}), Error);
}

TEST(Predict, AnotherImageSizeIsAllowed) {
  const std::string image = kImages + "coffee.png";
  const auto own = run_in_process("predict", {"-m", kModels + "hf_single", image}).json();
  const auto other =
      run_in_process("predict", {"-m", kModels + "hf_single", "--image", "32x48", image}).json();
  EXPECT_EQ(own["top"].size(), other["top"].size());
  EXPECT_NE(own["top"].dump(), other["top"].dump());
}

TEST(Predict, TextAndJsonAgree) {
  const std::string image = kImages + "coffee.png";
  const auto best = run_in_process("predict", {"-m", kModels + "hf_single", image}).json()["top"][0];
  const std::string text = run_in_process("predict", {"-m", kModels + "hf_single", image}, false).out;
  EXPECT_NE(text.find(best["label"].get<std::string>()), std::string::npos) << text;
  EXPECT_NE(text.find(strf("%.2f %%", best["prob"].get<double>() * 100)), std::string::npos) << text;
}

// The path, then a line a class: its share, a bar, its number and its name.
TEST(Predict, AsTextAClassIsALine) {
  const std::string image = kImages + "coffee.png";
  const std::vector<std::string> arguments = {"-m", kModels + "hf_single", image, "-k", "3"};
  std::string expected = image + "\n";
  const auto json = run_in_process("predict", arguments).json();
  for (const auto& one : json["top"])
    expected += strf("  %6.2f %%  %s  %5d  %s\n", 100 * one["prob"].get<double>(),
                     format_bar(one["prob"].get<double>(), 20).c_str(), one["class"].get<int>(),
                     one["label"].get<std::string>().c_str());
  EXPECT_EQ(run_in_process("predict", arguments, false).out, expected);
}

TEST(Explain, OverlaysOfModelsWithAndWithoutClassToken) {
  for (const char* name : {"hf_single", "timm_hub_reg_gap"}) {
    SCOPED_TRACE(name);
    const TempFolder folder;
    const auto answer = run_in_process("explain", {"-m", kModels + name, kImages + "rocket.jpg", "--out",
                                                   folder.path().string(), "--method", "all", "--layer", "0"})
                            .json();
    ASSERT_GE(answer["maps"].size(), 3u);
    const Image sheet = load_image(answer["sheet"].get<std::string>());
    const Image tile = load_image(answer["maps"][0]["file"].get<std::string>());
    EXPECT_GE(std::min(tile.height, tile.width), 448);
    EXPECT_GT(sheet.width, 2 * tile.width);
  }
}

TEST(Explain, SeveralImagesGetAFolderEach) {
  const TempFolder folder;
  run_in_process("explain", {"-m", kModels + "hf_single", kImages + "rocket.jpg", kImages + "coffee.png",
                             "-o", folder.path().string(), "--method", "mean"});
  for (const char* file : {"rocket/mean.png", "coffee/mean.png", "coffee/sheet.png", "coffee/explain.json"})
    EXPECT_TRUE(std::filesystem::exists(folder.path() / file)) << file;
}

// As text: the path, then what was found in the image, then where the images are.
TEST(Explain, TellsWhatItFoundAfterThePath) {
  const TempFolder folder;
  const std::string image = kImages + "coffee.png";
  const Answer answer = run_in_process(
      "explain", {"-m", kModels + "hf_single", image, "-o", folder.path().string(), "--method", "mean"},
      false);
  EXPECT_TRUE(answer.out.starts_with(image + "\n")) << answer.out;
  EXPECT_TRUE(answer.out.ends_with("/sheet.png\n")) << answer.out;
  EXPECT_NE(answer.out.find('%'), std::string::npos) << "classes with their shares: " << answer.out;
}

TEST(Explain, SameNamesDoNotOverwriteAndABadImageDoesNotStop) {
  const TempFolder folder, out;
  std::filesystem::create_directory(folder.path() / "b");
  for (const char* name : {"cat.png", "b/cat.png"})
    std::filesystem::copy_file(kImages + "coffee.png", folder.path() / name);
  const std::string bad = folder.file("bad.png", "no image");
  const std::string one = (folder.path() / "cat.png").string(), two = (folder.path() / "b/cat.png").string();
  try {
    run_in_process("explain", {"-m", kModels + "hf_single", bad, one, two, "-o", out.path().string(),
                               "--method", "rollout"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
  }
  for (const auto& [name, path] : {std::pair{"cat", one}, {"cat-2", two}}) {
    const auto json =
        nlohmann::json::parse(read_file((out.path() / name / "explain.json").string(), 1 << 20));
    EXPECT_EQ(json["image"], path);
    EXPECT_EQ(json["settings"]["method"], "rollout");
    EXPECT_FALSE(json["settings"].contains("layer"));
    EXPECT_TRUE(json["settings"]["preprocess"].contains("interpolation"));
  }
}

TEST(Explain, OneBlockIsWhatAllBlocksGive) {
  const TempFolder folder;
  const auto spread = [&](const char* method) {
    const auto json = run_in_process("explain", {"-m", kModels + "hf_single", kImages + "rocket.jpg", "-o",
                                                 folder.path().string(), "--layer", "0", "--method", method})
                          .json();
    return json["maps"][0]["spread"].get<double>();
  };
  EXPECT_EQ(spread("mean"), spread("all"));
}

// What the cards say differently stands before what was computed.
TEST(Verify, WhatTheCardsSayDifferentlyIsToldFirst) {
  const TempFolder folder;
  const std::string other = (folder.path() / "other").string();
  std::filesystem::copy(kModels + "hf_single", other);
  auto config = nlohmann::json::parse(read_file(other + "/config.json", 1 << 20));
  config["layer_norm_eps"] = 0.5;
  std::filesystem::remove(other + "/config.json");  // it may be one that cannot be written
  std::ofstream(other + "/config.json") << config.dump();
  const Ended ended = run_words({"verify", kModels + "hf_single", other});
  EXPECT_EQ(ended.code, 2);
  const std::string first =
                        "A and B differ in norm_eps: 1e-12 and 0.5\nlayer     largest difference  relative\n",
                    verdict = "A and B differ from blocks.0 on, by more than 0.0001 of its values\n";
  EXPECT_EQ(ended.out.substr(0, first.size()), first);
  EXPECT_TRUE(ended.out.ends_with("  differs\n" + verdict)) << ended.out;
  EXPECT_EQ(ended.err, "error: " + verdict);
  const Ended same = run_words({"verify", other, other});
  EXPECT_EQ(same.code, 0);
  EXPECT_TRUE(same.out.starts_with("layer ")) << same.out;
}

TEST(Verify, OtherShapesAreNamed) {
  try {
    run_in_process("verify", {kModels + "hf_single", kModels + "timm_hub_reg_gap"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCheck);
    EXPECT_NE(error.message().find("A has"), std::string::npos) << error.message();
  }
}

TEST(Peak, EveryInstructionSetComputes) {
  ThreadPool pool(1);
  for (const IsaLevel level : available_isa_levels())
    EXPECT_GT(measure_peak_gflops(pool, level), 0.01) << to_string(level);
}

TEST(Outputs, TwoToOnePathAreRefusedBeforeAnyWork) {
  const std::pair<const char*, std::vector<std::string>> commands[] = {
      {"profile", {"--html", "p.html", "--trace", "p.html"}},
      {"profile", {"--html", "a/../p.html", "--trace", "./p.html"}},
      {"plan", {"--cluster", "dgx-a100", "--trace", "a", "--points", "a"}},
      {"data show", {"mnist", "--out", "a", "--files", "a"}}};
  for (const auto& [name, words] : commands) {
    try {
      run_in_process(name, words);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
      const size_t last = words.size() - 2;
      EXPECT_TRUE(error.message().starts_with(words[last - 2] + " and " + words[last] + " both write to "))
          << error.what();
    }
  }
}

}  // namespace
}  // namespace vitrail::cli
