// Every published form kept in tests/golden/models goes into every dialect through `convert` and computes the
// same afterwards.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <map>
#include <tuple>

#include "base/process_mark.h"
#include "in_process.h"
#include "io/model_files.h"
#include "run_words.h"
#include "source_root.h"
#include "thrown.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

struct Golden {
  std::string name, path;
};

std::vector<Golden> golden_models() {
  const fs::path folder = fs::path(VT_SOURCE_DIR) / "tests/golden/models";
  std::vector<Golden> models;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const auto card = nlohmann::json::parse(read_file(entry.path().string(), 1 << 20));
    if (card.contains("logits"))
      models.push_back({card["name"], (folder / card["model"].get<std::string>()).string()});
  }
  std::sort(models.begin(), models.end(), [](auto& a, auto& b) { return a.name < b.name; });
  return models;
}

// The arguments that open a golden model: some bare files need an architecture's name.
bool opens_by_itself(const std::string& path) {
  try {
    open_model(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

class Conversion : public testing::TestWithParam<const char*> {};

TEST_P(Conversion, KeepsEveryNumberAndEveryFact) {
  const std::string to = GetParam();
  size_t converted = 0;
  std::map<std::string, std::string> refused;
  for (const Golden& golden : golden_models()) {
    if (!opens_by_itself(golden.path)) continue;
    SCOPED_TRACE(golden.name + " to " + to);
    const TempFolder folder;
    const std::string target = (folder.path() / (to == "google" ? "m.npz"
                                                 : to == "hf"   ? "m"
                                                                : "m.safetensors"))
                                   .string();
    try {
      const auto answer =
          run_in_process("convert", {golden.path, target, "--to", to, "--dtype", "f32"}).json();
      EXPECT_EQ(answer["max_difference"], 0);
      EXPECT_EQ(answer["to"], to);
      EXPECT_TRUE(answer["changed"].empty()) << answer["changed"].dump();
    } catch (const Error& error) {
      // A dialect may be unable to express an architecture; that is reported before anything is written.
      EXPECT_EQ(exit_code(error.kind()), 64) << error.what();
      EXPECT_FALSE(fs::exists(target));
      refused[golden.name] = error.message();
      continue;
    }
    const auto same = run_in_process("verify", {golden.path, target, "--tolerance", "1e-6"}).json();
    EXPECT_TRUE(same["same"].get<bool>());
    ++converted;
  }
  EXPECT_GE(converted, 8u);
  for (const auto& [name, why] : refused) RecordProperty(name, why);
}

INSTANTIATE_TEST_SUITE_P(To, Conversion, testing::Values("hf", "timm", "torchvision", "google"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(Inspect, OpensEveryGoldenModel) {
  for (const Golden& golden : golden_models()) {
    SCOPED_TRACE(golden.name);
    const auto answer = run_in_process("inspect", {golden.path, "--stats"}).json();
    EXPECT_GT(answer["tensors"].size(), 10u);
    EXPECT_EQ(answer["model"].is_null(), !opens_by_itself(golden.path));
    EXPECT_EQ(answer["model"].is_null(), answer.contains("not_a_model"));
    for (const auto& tensor : answer["tensors"]) EXPECT_EQ(tensor["nan"], 0);
    EXPECT_FALSE(run_in_process("inspect", {golden.path}, false).out.empty());
  }
}

TEST(Convert, RefusesToOverwriteOrToEatItself) {
  const std::string source = std::string(VT_SOURCE_DIR) + "/tests/golden/models/hf_single";
  const TempFolder folder;
  const std::string taken = folder.file("taken.safetensors", "precious");
  try {
    run_in_process("convert", {source, taken, "--to", "timm"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kWrite);
    EXPECT_EQ(read_file(taken, 100), "precious");
  }
  EXPECT_THROW(run_in_process("convert", {source, source, "--force"}), Error);
  run_in_process("convert", {source, taken, "--to", "timm", "--force"});
  EXPECT_EQ(open_model(taken)->card().dialect, Dialect::kTimm);
}

// A `convert` that was killed leaves files under names of its own, in a new folder nothing else.
TEST(Convert, WhatAKilledOneLeftIsInNobodysWay) {
  const std::string source = std::string(VT_SOURCE_DIR) + "/tests/golden/models/hf_single";
  const TempFolder folder;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const std::string by = ".tmp-1-" + ProcessMark{ProcessMark::current().host, child, 1}.text();
  const std::vector<std::string> left = {folder.file(".m.npz" + by), folder.file(".m.npz.json" + by),
                                         folder.file(".m.safetensors" + by),
                                         folder.file("m/.model.safetensors" + by)};
  for (const char* name : {"m.npz", "m.safetensors", "m"})
    run_in_process("convert", {source, (folder.path() / name).string()});
  for (const std::string& path : left) EXPECT_FALSE(fs::exists(path)) << path;
  EXPECT_EQ(open_model((folder.path() / "m").string())->card().dialect, Dialect::kHf);
}

TEST(Convert, TheEndingOfOutGivesTheDialect) {
  const std::string source = std::string(VT_SOURCE_DIR) + "/tests/golden/models/hf_single";
  const TempFolder folder;
  const auto at = [&](const char* name) { return (folder.path() / name).string(); };
  const std::pair<const char*, const char*> taken[] = {
      {"m.npz", "google"}, {"m.safetensors", "timm"}, {"m", "hf"}, {"m.v2", "hf"}};
  for (const auto& [name, dialect] : taken)
    EXPECT_EQ(run_in_process("convert", {source, at(name)}).json()["to"], dialect) << name;
  const std::tuple<const char*, const char*, const char*> refused[] = {
      {"x.npz", "timm", "x.safetensors"},
      {"x", "torchvision", "x.safetensors"},
      {"x.safetensors", "google", "x.npz"},
      {"x.safetensors", "hf", "folder"},
      {"x.pth", "timm", ".pth files are not written"}};
  for (const auto& [name, to, advice] : refused) {
    try {
      run_in_process("convert", {source, at(name), "--to", to});
      ADD_FAILURE() << name << " --to " << to;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE((error.message() + error.hint()).find(advice), std::string::npos) << error.what();
    }
    EXPECT_FALSE(std::filesystem::exists(at(name)));
  }
}

TEST(Convert, Bf16WhereReadersKnowIt) {
  const std::string source = std::string(VT_SOURCE_DIR) + "/tests/golden/models/hf_single";
  const TempFolder folder;
  const auto at = [&](const char* name) { return (folder.path() / name).string(); };
  for (const auto& [to, name] :
       {std::pair{"hf", "hf"}, std::pair{"timm", "timm"}, std::pair{"timm", "t.safetensors"},
        std::pair{"torchvision", "tv.safetensors"}}) {
    const Answer answer = run_in_process("convert", {source, at(name), "--to", to, "--dtype", "bf16"}, false);
    EXPECT_NE(answer.out.find("as storing in bf16 explains"), std::string::npos) << answer.out;
  }
  // numpy has no bf16: a request for it is refused, a file's own bf16 becomes f32.
  try {
    run_in_process("convert", {source, at("m.npz"), "--dtype", "bf16"});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(error.message().find("numpy has no bf16"), std::string::npos) << error.message();
    EXPECT_FALSE(fs::exists(at("m.npz")));
  }
  const auto answer = run_in_process("convert", {at("hf"), at("m.npz")}).json();
  EXPECT_EQ(answer["dtype"], "f32");
  EXPECT_EQ(answer["max_difference"], 0);
  EXPECT_NE(answer["notes"].dump().find("stored as f32"), std::string::npos) << answer["notes"];
  const std::unique_ptr<TensorSource> stored = open_tensors(at("m.npz"));
  for (const TensorInfo& info : stored->tensors()) EXPECT_EQ(info.dtype, DType::kF32);
}

TEST(Convert, WhatTheCardIsMadeOfIsADetail) {
  const std::string source = std::string(VT_SOURCE_DIR) + "/tests/golden/models/timm_hub";
  const TempFolder folder;
  const auto told = [&](const char* name, std::vector<std::string> more) {
    more.insert(more.begin(), {"convert", source, (folder.path() / name).string()});
    const Ended ended = run_words(more);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.err;
  };
  std::string notes;
  const std::unique_ptr<OpenedModel> model = open_model(source);
  for (const std::string& note : model->card().notes) notes += note + "\n";
  ASSERT_NE(notes, "");
  const std::string plain = told("a", {});
  EXPECT_EQ(told("b", {"-v"}), notes + plain);
}

// The number that f16 does not hold is found by reading the new file back.
TEST(Convert, NumbersBeyondTheTypeAreRefused) {
  const TempFolder folder;
  const auto at = [&](const char* name) { return (folder.path() / name).string(); };
  run_in_process("convert", {std::string(VT_SOURCE_DIR) + "/tests/golden/models/hf_single",
                             at("m.safetensors"), "--dtype", "f32"});
  const float large = 1e6F;
  {
    std::fstream file(at("m.safetensors"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-static_cast<int>(sizeof large), std::ios::end);
    file.write(reinterpret_cast<const char*>(&large), sizeof large);
  }
  EXPECT_EQ(
      thrown_by([&] {
        run_in_process("convert", {at("m.safetensors"), at("half.safetensors"), "--dtype", "f16"});
      }),
      "check: 1 numbers of " + at("half.safetensors") +
          " differ from the source by more than storing in f16 explains | f16 holds nothing beyond 65504: "
          "use --dtype bf16 or f32");
  EXPECT_EQ(thrown_by([&] {
              run_in_process("convert", {at("m.safetensors"), at("brain.safetensors"), "--dtype", "bf16"});
            }),
            "nothing");
}

TEST(Convert, SmallerStorageIsExplainedByRounding) {
  const std::string source = std::string(VT_SOURCE_DIR) + "/tests/golden/models/hf_single";
  for (const auto& [dtype, bound] : {std::pair<std::string, double>{"f16", 0.002}, {"bf16", 0.02}}) {
    const TempFolder folder;
    const std::string target = (folder.path() / "m").string();
    const auto answer = run_in_process("convert", {source, target, "--dtype", dtype}).json();
    EXPECT_EQ(answer["dtype"], dtype);
    EXPECT_GT(answer["max_difference"].get<double>(), 0);
    EXPECT_LT(answer["max_difference"].get<double>(), bound);
    // A narrow storage type is kept unless another is requested.
    const std::string again = (folder.path() / "again").string();
    EXPECT_EQ(run_in_process("convert", {target, again}).json()["dtype"], dtype);
  }
}

}  // namespace
}  // namespace vitrail::cli
