// vitrail train from its options to its folder, on a model that trains in milliseconds.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/text.h"
#include "cli/environment.h"
#include "cli/train_settings.h"
#include "io/find_model.h"
#include "io/model_files.h"
#include "io/sealed_folder.h"
#include "source_root.h"
#include "tiny_training.h"
#include "train/config_io.h"
#include "vitrail/version.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> into(const TempFolder& folder) {
  return {"--out", (folder.path() / "run").string()};
}

TEST(TrainCommand, EveryLineIsJsonAndTheFolderIsComplete) {
  const TempFolder folder;
  const auto lines = json_lines(run_in_process("train", tiny_run() + into(folder)).out);
  std::set<std::string> kinds;
  int64_t steps = 0;
  for (const auto& line : lines) {
    kinds.insert(line["kind"]);
    ASSERT_TRUE(line["step"].is_number_integer()) << line.dump();
    if (line["kind"] != "train") continue;
    EXPECT_EQ(line["step"], ++steps);
  }
  EXPECT_EQ(steps, 8);
  EXPECT_EQ(kinds, (std::set<std::string>{"train", "eval", "event"}));
  for (const char* file : {"config.json", "metrics.jsonl", "summary.csv", "report.html", "best/config.json",
                           "best/model.safetensors", "checkpoints/latest/manifest.json"})
    EXPECT_TRUE(fs::exists(folder.path() / "run" / file)) << file;
}

TEST(TrainCommand, TheSavedConfigGivesTheSameRun) {
  const TempFolder folder, again;
  const auto losses = [](const Answer& answer) {
    std::vector<double> values;
    for (const auto& line : json_lines(answer.out))
      if (line["kind"] == "train") values.push_back(line["loss"]);
    return values;
  };
  const auto first = losses(run_in_process("train", tiny_run() + into(folder)));
  const std::string saved = (folder.path() / "run/config.json").string();
  EXPECT_EQ(losses(run_in_process("train", std::vector<std::string>{"--config", saved} + into(again))),
            first);
}

TEST(TrainCommand, UnknownKeysNameTheNearest) {
  for (const auto& [key, nearest] :
       std::vector<std::pair<std::string, std::string>>{{"train.epoch", "train.epochs"},
                                                        {"train.microbatch", "train.micro_batch"},
                                                        {"optim.weight_decy", "optim.weight_decay"},
                                                        {"augment.cut_mix", "augment.cutmix"},
                                                        {"model.widht", "model.width"},
                                                        {"schedule.warm_up", "schedule.warmup"}}) {
    try {
      options_of("train", {"--set", key + "=1"});
      ADD_FAILURE() << key;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig) << key;
      EXPECT_NE(error.hint().find(nearest), std::string::npos) << error.hint();
    }
  }
}

TEST(TrainCommand, BadValuesNameKeyAndRule) {
  struct Row {
    const char *assignment, *key, *rule;
  };
  for (const Row& row : std::vector<Row>{{"train.smoothing=1", "train.smoothing", "below 1"},
                                         {"train.epochs=0", "train.epochs", "at least 1"},
                                         {"train.micro_batch=5", "train.micro_batch", "product"},
                                         {"train.loss=divergence", "train.loss", "softmax"},
                                         {"optim.name=adamx", "optim.name", "adamw"},
                                         {"optim.lr=-1", "optim.lr", "0"},
                                         {"schedule.warmup=-3", "schedule.warmup", "share of the run"},
                                         {"augment.hflip=2", "augment.hflip", "0"},
                                         {"data.fraction=0", "data.fraction", "more than 0"},
                                         {"loader.prefetch=0", "loader.prefetch", "1..64"},
                                         {"params.freeze=nothing*", "params.freeze", "fits none"},
                                         {"params.no_decay=nothing*", "params.no_decay", "fits none"},
                                         {"params.layer_decay=0", "params.layer_decay", "0"},
                                         {"lora.rank=-1", "lora.rank", "0"},
                                         {"checkpoint.keep_last=1", "checkpoint.keep_last", "2"},
                                         {"distill.kind=soft", "distill.teacher", "names no model"},
                                         {"model.heads=3", "heads", "16"}}) {
    const TempFolder folder;
    const Error error = error_of("train", tiny_run() + settings({row.assignment}) + into(folder));
    EXPECT_EQ(error.kind(), ErrorKind::kConfig) << row.assignment << ": " << error.message();
    EXPECT_NE(error.message().find(row.key), std::string::npos) << error.message();
    EXPECT_NE((error.message() + error.hint()).find(row.rule), std::string::npos)
        << error.message() << " / " << error.hint();
  }
}

TEST(TrainCommand, AFolderThatHoldsARunIsRefusedUnlessResumed) {
  const TempFolder folder;
  run_in_process("train", tiny_run() + into(folder));
  const Error error = error_of("train", tiny_run() + into(folder));
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_NE(error.message().find("already holds a run"), std::string::npos) << error.message();
  EXPECT_NE(error.hint().find("--resume"), std::string::npos);
  const auto more =
      json_lines(run_in_process("train", tiny_run() + settings({"train.epochs=3"}) + into(folder) +
                                             std::vector<std::string>{"--resume"})
                     .out);
  std::vector<int64_t> steps;
  for (const auto& line : more)
    if (line["kind"] == "train") steps.push_back(line["step"]);
  EXPECT_EQ(steps, (std::vector<int64_t>{9, 10, 11, 12}));
}

TEST(TrainCommand, AdaptersKeptApartBelongToTheModel) {
  const TempFolder folder;
  const std::string run = (folder.path() / "run").string();
  nlohmann::json measured;
  for (const auto& line :
       json_lines(run_in_process("train",
                                 tiny_run() + into(folder) +
                                     settings({"lora.rank=2", "train.save_adapters=true", "train.epochs=4"}))
                      .out))
    if (line["kind"] == "eval" && line["best"]) measured = line;
  const auto loss = [&] { return run_in_process("eval", {"-m", run}).json()["loss"].get<double>(); };
  EXPECT_NEAR(loss(), measured["loss"].get<double>(), 1e-5);
  const std::string card = run_in_process("inspect", {run + "/best"}).out;
  EXPECT_NE(card.find("adapters of rank 2 merged"), std::string::npos) << card;
  for (const std::string place : {"/best", "/checkpoints/latest"}) {
    EXPECT_TRUE(fs::remove(run + place + "/adapters.safetensors")) << place;
    EXPECT_THROW(open_model(run + place), Error) << "the manifest lists them";
    seal_folder(run + place);
  }
  EXPECT_GT(std::abs(loss() - measured["loss"].get<double>()), 1e-4) << "the weights hold the adapters";
}

TEST(TrainCommand, AnotherConfigIsNotResumed) {
  const TempFolder folder;
  run_in_process("train", tiny_run() + into(folder));
  const Error error = error_of(
      "train", tiny_run() + settings({"model.mlp=48"}) + into(folder) + std::vector<std::string>{"--resume"});
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.message().find("mlp"), std::string::npos) << error.message();
}

TEST(TrainCommand, TheTimeLimitSavesAndStops) {
  const TempFolder folder;
  const std::vector<std::string> run = tiny_run() + settings({"train.log_every=1000"}) + into(folder);
  const Error error = error_of(
      "train", run + settings({"train.epochs=100000"}) + std::vector<std::string>{"--max-time", "0.05s"});
  EXPECT_EQ(error.kind(), ErrorKind::kStopped) << error.message();
  EXPECT_NE(error.message().find("time limit"), std::string::npos) << error.message();
  EXPECT_TRUE(fs::exists(folder.path() / "run/checkpoints/latest/manifest.json"));
  EXPECT_TRUE(fs::exists(folder.path() / "run/report.html"));
  // The folder holds a run by now, which is refused later and by the same kind of error.
  for (const char* wrong : {"0", "0s", "-1m", "soon", "5d", "m", ""})
    EXPECT_EQ(error_of("train", run + std::vector<std::string>{"--max-time", wrong}).message(),
              std::string("--max-time \"") + wrong + "\" is no time");
}

// Sums of epochs are the folder's alone.
TEST(TrainCommand, OfSeveralRanksItPrintsWhatTheFolderKeeps) {
  const TempFolder folder;
  const std::string out =
      run_in_process("train", tiny_run() + into(folder) + std::vector<std::string>{"--ranks", "2"}).out;
  std::multiset<std::string> printed, kept;
  for (const auto& line : json_lines(out)) printed.insert(line["kind"]);
  for (const auto& line : json_lines(read_file((folder.path() / "run/metrics.jsonl").string(), 1 << 20)))
    kept.insert(line["kind"]);
  kept.erase("epoch");
  EXPECT_EQ(printed, kept);
  EXPECT_TRUE(kept.contains("timing") && kept.contains("start"));
}

// Several ranks are told with their places before they begin; one is not.
TEST(TrainCommand, SaysWhereItsRanksAre) {
  const auto said = [](const char* ranks) {
    const TempFolder folder;
    return run_in_process("train", tiny_run() + into(folder) + std::vector<std::string>{"--ranks", ranks})
        .err;
  };
  const std::string two = said("2");
  EXPECT_TRUE(two.starts_with("2 ranks (threads): ")) << two;
  std::vector<std::string_view> lines = split(two, '\n');
  ASSERT_GT(lines.size(), 5u);
  EXPECT_TRUE(lines[0].ends_with(", all on this host")) << two;
  EXPECT_TRUE(lines[1].starts_with("  rank  host")) << two;
  EXPECT_TRUE(lines[3].starts_with("     0  ")) << two;
  EXPECT_TRUE(lines[4].starts_with("     1  ")) << two;
  EXPECT_EQ(said("1").find("rank"), std::string::npos);
}

TEST(TrainCommand, WhatItWritesNamesTheVersion) {
  const TempFolder folder;
  run_in_process("train", tiny_run() + into(folder));
  const std::string name = std::string("Vitrail ") + version(), run = (folder.path() / "run").string();
  EXPECT_NE(read_file(run + "/report.html", 1 << 24).find(name), std::string::npos);
  bool named = false;
  for (const auto& entry : fs::directory_iterator(run + "/checkpoints/latest/"))
    if (entry.path().extension() == ".json")
      named |= read_file(entry.path().string(), 1 << 20).find("\"" + name + "\"") != std::string::npos;
  EXPECT_TRUE(named);
  const std::string page = (folder.path() / "page.html").string();
  run_in_process("eval", {"-m", run, "--report", page});
  EXPECT_NE(read_file(page, 1 << 24).find(name), std::string::npos);
}

TEST(TrainCommand, AFolderThatCannotBeWrittenIsRefusedAtTheStart) {
  const TempFolder folder;
  const std::string blocked = folder.file("file") + "/below";
  // Data that is not there would be found later.
  const Error error = error_of("train", tiny_run() + settings({"data.train=folder:/nowhere"}) +
                                            std::vector<std::string>{"--out", blocked});
  EXPECT_EQ(error.kind(), ErrorKind::kWrite) << error.message();
}

TEST(TrainCommand, DtypeIsTheConfigsOwn) {
  const TempFolder folder;
  run_in_process("train", tiny_run() + into(folder) + std::vector<std::string>{"--dtype", "bf16"});
  const auto config = nlohmann::json::parse(read_file((folder.path() / "run/config.json").string(), 1 << 20));
  EXPECT_EQ(config["train"]["dtype"], "bf16");
}

// Two readers of one file: the options of the command, and train/config_io without any.
TEST(TrainCommand, ReadsAConfigAsTheLibraryDoes) {
  const auto find = [](const std::string& name) { return find_model(name, model_places()); };
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(VT_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".json") continue;
    const std::string path = entry.path().string();
    const TrainConfig by_options = read_train_config(options_of("train", {"--config", path}));
    EXPECT_EQ(to_json(by_options), to_json(vitrail::read_train_config(path, find))) << path;
    ++read;
  }
  EXPECT_GE(read, 10);
}

std::vector<Json> values_for(const FieldSpec& spec) {
  switch (spec.kind) {
    case FieldKind::kBool:
      return {true, false};
    case FieldKind::kChoice:
      return {spec.choices.begin(), spec.choices.end()};
    case FieldKind::kInteger:
      return {7, 0, -3, 123456789012345};
    case FieldKind::kNumber:
      return {0.1, 1e-300, 3, -12345678.9};
    case FieldKind::kText:
      return {"x, \"y\" = z", "12", "", "true"};
    case FieldKind::kNumbers:
      return {{0.1, 2, 1e-7}, 0.5};
    case FieldKind::kTexts:
      return {{"a, b", "", "1"}, "a=b"};
  }
  return {};
}

template <typename Read>
Json read_or_refused(const Read& read) {
  try {
    return to_json(read());
  } catch (const Error& error) {
    return "refused";
  }
}

// The command's reader goes by the texts of options, the library's by the types of JSON.
TEST(TrainCommand, ReadsEveryValueOfEverySettingAsTheLibraryDoes) {
  const TempFolder folder;
  const std::set<std::string> names_of_models = {"model.init", "distill.teacher"};
  for (const FieldSpec& spec : train_fields()) {
    if (names_of_models.contains(spec.key)) continue;
    const size_t dot = spec.key.find('.');
    for (const Json& value : values_for(spec)) {
      const Json config = {{spec.key.substr(0, dot), {{spec.key.substr(dot + 1), value}}}};
      const std::string path = folder.file("config.json", config.dump());
      const Json by_options = read_or_refused([&] {
        return read_train_config(options_of("train", {"--config", path}));
      });
      EXPECT_EQ(by_options, read_or_refused([&] { return vitrail::read_train_config(path); })) << config;
      EXPECT_NE(by_options, "refused") << config;
    }
  }
}

}  // namespace
}  // namespace vitrail::cli
