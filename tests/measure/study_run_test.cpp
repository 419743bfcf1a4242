// How a study's cases are run: what is told of one that fails, which refusals end the study, what is reported
// on the way, and where training runs write.
#include "measure/study/study_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "base/json_text.h"
#include "study_made.h"
#include "temp_folder.h"
#include "thrown.h"

namespace vitrail {
namespace {

StudyConfig run_config() {
  StudyConfig config;
  config.ranks = {"1"}, config.messages = {"0"}, config.repeat = 2;
  check_study(config);
  return config;
}

const char* const kPrinted = R"({"batch": 16, "ms_median": 20, "img_per_s": 800})";

// A program that answers with these exit codes in turn, then with 0, and says `err` meanwhile.
struct ScriptedRun {
  std::vector<int> codes = {};
  std::string err = {};
  bool asks = false;  // whether it may go on, and ends by signal 15 where not
  size_t runs = 0;
  std::vector<std::string> words = {};
  StudyHooks::Variables environment = {};
  std::vector<std::pair<int64_t, bool>> told = {};
  std::function<bool()> stop = {};

  StudyHooks hooks() {
    return {.run =
                [this](auto& given, auto& variables, auto& go_on) {
                  words = given;
                  environment = variables;
                  const int code = runs < codes.size() ? codes[runs] : 0;
                  ++runs;
                  return StudyHooks::End{asks && !go_on() ? 143 : code, kPrinted, err};
                },
            .progress = [this](const StudyProgress& p) { told.emplace_back(p.more, p.last != nullptr); },
            .stop = stop};
  }
};

std::vector<CaseResult> results_of(const StudyConfig& config, const std::string& path, ScriptedRun& script,
                                   const StudyPlaces& places = {.program = "vitrail"}) {
  return run_study(config, StudyFolder(path, config), places, script.hooks(), false);
}

TEST(StudyRun, AFailureIsToldByItsLastLineOfError) {
  const TempFolder temp;
  const std::string many(500, 'x');
  const std::pair<std::string, std::string> rows[] = {
      {"error: first\nnote\nerror: second\nhint", "exit code 69: second"},
      {"Killed\nmore", "exit code 69: Killed"},
      {"", "exit code 69"},
      {"error: " + many, "exit code 69: " + many.substr(0, 400)},
      {"error: a\x1b[2Jb", "exit code 69: a\\x1b[2Jb"}};
  int folder = 0;
  for (const auto& [err, said] : rows) {
    ScriptedRun script{.codes = {0, 69}, .err = err};
    const auto results = results_of(run_config(), (temp.path() / std::to_string(++folder)).string(), script);
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(results[0].error + results[1].error, said);
  }
}

TEST(StudyRun, TooLongIsAFailureOfItsOwn) {
  const TempFolder temp;
  StudyConfig config = run_config();
  ScriptedRun quick{.asks = true}, slow{.asks = true};
  EXPECT_TRUE(results_of(config, (temp.path() / "a").string(), quick)[0].done());
  config.timeout = 1e-12;
  const auto results = results_of(config, (temp.path() / "b").string(), slow);
  EXPECT_EQ(results[0].error, "it took longer than --timeout");
  EXPECT_EQ(slow.runs, 2u) << "the study goes on";
  EXPECT_GE(results[0].took_s, 0);
  EXPECT_LT(results[0].took_s, 60);
  EXPECT_GT(results[0].time, 1.7e9) << "seconds since 1970";
}

TEST(StudyRun, ARefusalOfTheFirstCaseEndsTheStudy) {
  const TempFolder temp;
  ScriptedRun refused{.codes = {64}, .err = "error: no such model"}, later{.codes = {0, 64}};
  const std::string said =
      thrown_by([&] { results_of(run_config(), (temp.path() / "a").string(), refused); });
  EXPECT_TRUE(said.starts_with("config: vit_tiny_patch16_224.cpu.alone.r1.b16.")) << said;
  EXPECT_TRUE(
      said.ends_with(": exit code 64: no such model | mend it and give the same --out again: nothing "
                     "was measured"))
      << said;
  EXPECT_EQ(refused.runs, 1u);
  EXPECT_EQ(results_of(run_config(), (temp.path() / "b").string(), later).size(), 2u);
}

TEST(StudyRun, ProgressCountsWhatWasThere) {
  const TempFolder temp;
  const std::string path = (temp.path() / "s").string();
  ScriptedRun stopped, rest;
  stopped.stop = [&] { return stopped.runs == 2; };
  EXPECT_EQ(thrown_by([&] { results_of(run_config(), path, stopped); }),
            "stopped: stopped after 1 of 2 cases | the same command goes on where it was");
  using Told = std::vector<std::pair<int64_t, bool>>;
  EXPECT_EQ(stopped.told, (Told{{0, false}, {1, true}}));
  results_of(run_config(), path, rest);
  EXPECT_EQ(rest.told, (Told{{1, false}, {1, true}}));
}

TEST(StudyRun, OnlyNodesHaveTheEnvironmentOfPlaces) {
  const TempFolder temp;
  StudyConfig config = run_config();
  config.ranks = {"2"}, config.repeat = 1, config.hosts = "a:2";
  const StudyPlaces places{.program = "vitrail", .hosts = {{"a", 2}}, .environment = {{"KEY", "value"}}};
  for (const char* transport : {"nodes", "mpi"}) {
    config.transports = {transport};
    ScriptedRun script;
    const auto results = results_of(config, (temp.path() / transport).string(), script, places);
    EXPECT_EQ(script.environment,
              transport == std::string("nodes") ? places.environment : StudyHooks::Variables{});
    EXPECT_EQ(script.words[1], "launch");
    EXPECT_NE(results[0].error.find("2 ranks were asked for and 1 measured"), std::string::npos);
  }
}

TEST(StudyRun, ATrainingRunHasAFolderOfItsOwn) {
  const TempFolder temp;
  StudyConfig config = run_config();
  config.kind = StudyKind::kTrain, config.recipe = temp.file("recipe.json", "{}"), config.repeat = 1;
  const StudyFolder folder((temp.path() / "s").string(), config);
  const StudyCase one = list_cases(config)[0];
  const std::string first = folder.new_run_folder(one);
  EXPECT_EQ(first, folder.file("runs/vit_tiny_patch16_224.cpu.alone.r1.b16.1"));
  for (const char* next : {"-2", "-3"}) {
    std::filesystem::create_directories(folder.new_run_folder(one));
    EXPECT_EQ(folder.new_run_folder(one), first + next);
  }
}

// What is drawn beside the points may change; the recipe's content may not.
// What a study leaves that was killed before its first word is none in the way of the next; anything else is.
TEST(StudyFolder, LeftoversOfAStudyThatNeverBeganAreNoneInTheWay) {
  const TempFolder temp;
  for (const char* name : {"run.lock", ".study-config.json.tmp", ".study-config.json"})
    temp.file(std::string("s/") + name, "");
  const std::string path = (temp.path() / "s").string();
  EXPECT_EQ(thrown_by([&] { const StudyFolder begun(path, run_config()); }), "nothing");
  EXPECT_TRUE(std::filesystem::exists(path + "/study-config.json"));
  for (const char* name : {"run.locks", "study-config.json.tmp", "notes.txt"}) {
    const TempFolder other;
    other.file(std::string("s/") + name, "mine");
    const std::string taken = (other.path() / "s").string();
    EXPECT_EQ(thrown_by([&] { const StudyFolder folder(taken, run_config()); }),
              "write: " + taken + " holds \"" + name +
                  "\" and no study | --out names a folder that is missing, empty, or a study's own");
    EXPECT_FALSE(std::filesystem::exists(taken + "/study-config.json"));
  }
  temp.file("a-file");
  const std::string file = (temp.path() / "a-file").string();
  EXPECT_EQ(thrown_by([&] { const StudyFolder folder(file, run_config()); }),
            "write: " + file + " is not a folder");
}

// Only the study's own files: another program may be writing into the folder.
TEST(StudyFolder, WhatAKillLeftHalfWrittenIsRemoved) {
  const TempFolder temp;
  const std::string path = (temp.path() / "s").string();
  StudyConfig config = run_config();
  { const StudyFolder begun(path, config); }
  for (const char* name : {".study-config.json.tmp-1-2", ".study.json.tmp-1-2", ".strong.svg.tmp-1-2",
                           ".report.html.tmp-1-2", "cases/.one.json.tmp-1-2"})
    temp.file(std::string("s/") + name, "{");
  const std::vector<std::string> others = {".points.json.tmp-1-2", ".study.json.tmp-mine", "notes.txt"};
  for (const std::string& name : others) temp.file("s/" + name, "mine");
  config.repeat = 7;  // no case was kept: the study may be another one
  EXPECT_EQ(thrown_by([&] { const StudyFolder again(path, config); }), "nothing");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
    if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(path).string());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{others[0], others[1], others[2], "study-config.json"}));
}

// The first difference is told with its place, whatever stands there.
TEST(StudyFolder, DifferencesAreToldWithTheirPlace) {
  const TempFolder temp;
  const StudyConfig config = run_config();
  const std::string path = (temp.path() / "s").string();
  { const StudyFolder begun(path, config); }
  temp.file("s/cases/one.json", "{}");
  const std::string file = path + "/study-config.json";
  const Json whole = parse_json(read_file(file, 1 << 20), file);
  const auto said = [&](const Json& header) {
    temp.file("s/study-config.json", header.dump());
    std::string text = thrown_by([&] { const StudyFolder again(path, config); });
    const std::string start = "config: " + path + " holds another study: ",
                      end = " | the options it was begun with go on with it; another --out begins anew";
    if (!text.starts_with(start) || !text.ends_with(end)) return text;
    return text.substr(start.size(), text.size() - start.size() - end.size());
  };
  EXPECT_EQ(said(whole), "nothing");
  Json other = whole;
  other["machine"] = 7;
  EXPECT_EQ(said(other), "machine is 7 there and " + json_text(whole["machine"]) + " here");
  other = whole;
  other["format"] = Json::object({{"a", 1}});
  EXPECT_EQ(said(other), R"(format is {"a":1} there and 1 here)");
  other = whole;
  other["machine"].erase("cores");
  EXPECT_EQ(said(other), "machine.cores is nothing there and " + whole["machine"]["cores"].dump() + " here");
  other = whole;
  other["machine"]["sockets"] = 2;
  EXPECT_EQ(said(other), "machine.sockets is 2 there and nothing here");
  other = whole;
  other["more"] = true;
  EXPECT_EQ(said(other), "more is true there and nothing here");
  EXPECT_EQ(said(3), " is 3 there and " + json_text(whole) + " here");
}

// Commits of one version are told apart by the program's file; what one measured, another does not go on
// with.
TEST(StudyFolder, AnotherBuildIsRefused) {
  const TempFolder temp;
  const StudyConfig config = run_config();
  const std::string path = (temp.path() / "s").string(), program = temp.file("bin/vitrail", "123456789");
  const StudyCase one = list_cases(config)[0], two = list_cases(config)[1];
  {
    const StudyFolder begun(path, config, program);
    EXPECT_EQ(Json(begun.header()["vitrail_build"]), (Json{{"program", "e3069283"}}));
    begun.keep(one, {{"kept", 1}});
    temp.file("bin/vitrail", "1234567890");
    EXPECT_EQ(
        thrown_by([&] {
          begun.keep(two, {{"kept", 2}});
        }),
        "config: the program was replaced while the study ran: vitrail_build.program is \"e3069283\" "
        "there and \"f3dbd4fe\" here | the cases before are kept; another --out begins anew with this one");
    EXPECT_FALSE(begun.record(two));
  }
  const std::string header = read_file(path + "/study-config.json", 1 << 20);
  EXPECT_EQ(
      thrown_by([&] { const StudyFolder other(path, config, program); }),
      "config: " + path +
          " holds a study by another build of Vitrail: vitrail_build.program is "
          "\"e3069283\" there and \"f3dbd4fe\" here | the program it was begun with goes on with it; another "
          "--out begins anew with this one");
  EXPECT_EQ(read_file(path + "/study-config.json", 1 << 20), header);
  temp.file("bin/vitrail", "123456789");
  EXPECT_EQ(thrown_by([&] { const StudyFolder again(path, config, program); }), "nothing");
}

TEST(StudyFolder, IsOneStudysOwn) {
  const TempFolder temp;
  StudyConfig config = run_config();
  config.recipe = temp.file("recipe.json", "{}");
  const std::string path = (temp.path() / "s").string();
  {
    const StudyFolder begun(path, config);
    EXPECT_EQ(begun.path(), path);
    EXPECT_EQ(begun.header()["format"], 1);
    EXPECT_GE(begun.cores(), 1);
    EXPECT_FALSE(begun.record(list_cases(config)[0]));
    begun.keep(list_cases(config)[0], {{"kept", 1}});
    EXPECT_EQ(begun.record(list_cases(config)[0])->at("kept"), 1);
  }
  config.predicted = "points.json", config.cluster = "dgx-a100", config.target = "h200";
  EXPECT_EQ(thrown_by([&] { const StudyFolder again(path, config); }), "nothing");
  temp.file("recipe.json", "{ }");
  const std::string said = thrown_by([&] { const StudyFolder again(path, config); });
  EXPECT_TRUE(said.starts_with("config: " + path + " holds another study: recipe_crc32c is ")) << said;
  EXPECT_TRUE(said.ends_with(" | the options it was begun with go on with it; another --out begins anew"));
  config.recipe.clear();
  EXPECT_NE(thrown_by([&] { const StudyFolder again(path, config); }).find("there and \"\" here"),
            std::string::npos);
}

}  // namespace
}  // namespace vitrail
