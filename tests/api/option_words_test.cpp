// Errors of the public API name its options, not those of the command line.
#include "api/option_words.h"

#include <gtest/gtest.h>
#include <vitrail/vitrail.h>

#include <filesystem>

#include "error_of.h"
#include "source_root.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

const std::string kSmallRun = VT_SOURCE_DIR "/tests/faults/kill_run.json";

std::string in_words(const std::string& hint, const char* owner = "ModelOptions") {
  return in_words_of(owner, Error(ErrorKind::kUsage, "no", hint)).hint();
}

TEST(OptionWords, OfBothStructsAndOfOne) {
  EXPECT_EQ(in_words("fewer threads (--threads)"), "fewer threads (ModelOptions::threads)");
  EXPECT_EQ(in_words("--device cpu", "TrainOptions"), "TrainOptions::device cpu");
  EXPECT_EQ(in_words("--resume goes on with it; --out names another folder"),
            "Resume::kNewest goes on with it; TrainOptions::folder names another folder");
  EXPECT_EQ(in_words("--resume without =strict falls back to an older one"),
            "Resume::kNewest falls back to an older one");
  EXPECT_EQ(in_words("--set data.train=FORMAT:PLACE"), "in the config, data.train=FORMAT:PLACE");
  EXPECT_EQ(in_words("--architecture and --out-of"), "--architecture and --out-of");
}

TEST(OptionWords, CommandsKeepTheirs) {
  const std::string command = "one of a, b, or a file of vitrail bench calibrate --out FILE";
  EXPECT_EQ(in_words(command), command);
  EXPECT_EQ(in_words("vitrail doctor shows it; --device cpu"),
            "vitrail doctor shows it; ModelOptions::device cpu");
}

TEST(OptionWords, KindMessageAndPlacesStay) {
  Error error(ErrorKind::kData, "--arch a says b", "");
  error.at("inner").at("outer of --threads");
  const Error found = in_words_of("ModelOptions", error);
  EXPECT_EQ(found.kind(), ErrorKind::kData);
  EXPECT_EQ(found.message(), "ModelOptions::arch a says b");
  EXPECT_EQ(found.context(), (std::vector<std::string>{"outer of ModelOptions::threads", "inner"}));
}

TEST(OptionWords, WhatACallbackThrowsPassesAsItIs) {
  const TempFolder root;
  TrainCallbacks callbacks;
  callbacks.on_step = [](const StepReport&) { throw Error(ErrorKind::kUsage, "mine: --out"); };
  const Error found = error_of(
      [&] { train(kSmallRun, {.folder = (root.path() / "run").string(), .threads = 1}, callbacks); });
  EXPECT_EQ(found.message(), "mine: --out");
}

struct OfACaller : Error {
  using Error::Error;
};

TEST(OptionWords, ErrorsOfCallersPass) {
  const auto call = [] {
    in_words_of_options("TrainOptions", []() -> int { throw OfACaller(ErrorKind::kUsage, "--out"); });
  };
  EXPECT_THROW(call(), OfACaller);
}

// What train() and Model::load() refuse, with what a program can do about it.
TEST(OptionWords, OfRefusals) {
  const TempFolder root;
  const std::string foreign = (root.path() / "foreign").string();
  fs::create_directories(foreign + "/of_somebody");
  const auto hint = [](const auto& body) { return error_of(body).hint(); };
  EXPECT_EQ(hint([&] { train(kSmallRun, {.folder = foreign}); }),
            "name a folder that is empty or does not exist, with TrainOptions::folder");
  EXPECT_EQ(hint([&] { train(kSmallRun, {.folder = foreign, .device = "cpu:7"}); }).find("--"),
            std::string::npos);
  const Error unknown = error_of([] { (void)Model::load("vit_base_patch16_224"); });
  EXPECT_EQ(std::string(unknown.what()).find("--"), std::string::npos) << unknown.what();
  EXPECT_NE(unknown.hint().find("ModelOptions::arch vit_base_patch16_224"), std::string::npos)
      << unknown.what();
}

}  // namespace
}  // namespace vitrail
