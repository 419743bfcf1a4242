#include "io/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process_mark.h"
#include "base/write_error.h"
#include "faults/small_run.h"
#include "io/checkpoint/durable.h"
#include "io/checkpoint/facts.h"
#include "io/dialect_files.h"
#include "io/samples.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

template <typename Body>
void expect_error(ErrorKind kind, const std::string& part, Body&& body) {
  try {
    body();
    ADD_FAILURE() << "no error; expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Checkpoint, WhatIsSavedIsWhatOpens) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  EXPECT_FALSE(store.newest_good());
  store.save(small_content(12));
  EXPECT_EQ(names_in(store.folder()), (std::vector<std::string>{"latest", "step-00000012"}));
  EXPECT_EQ(fs::read_symlink(store.folder() + "/latest"), "step-00000012");
  EXPECT_EQ(names_in(store.folder_of(12)),
            (std::vector<std::string>{"config.json", "manifest.json", "model.safetensors",
                                      "state-00000-of-00001.safetensors"}));
  std::vector<std::string> problems;
  const auto opened = CheckpointStore(run.path().string()).newest_good(&problems);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->step, 12);
  EXPECT_TRUE(holds_its_step(*opened));
  EXPECT_TRUE(problems.empty());
}

// The checksums of a large model's blocks take megabytes.
TEST(Checkpoint, AManifestMayBeLarge) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  CheckpointContent content = small_content(3);
  content.facts["text"] = std::string(2 << 20, 'x');
  store.save(content);
  EXPECT_EQ(store.open(3).facts.at("text"), content.facts["text"]);
}

TEST(Checkpoint, StateAloneIsEnough) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  CheckpointContent content = small_content(0);
  content.write_model = nullptr;
  store.save(content);
  EXPECT_TRUE(holds_its_step(*store.newest_good()));
}

TEST_F(DialectTest, ACheckpointIsAModelFolder) {
  CheckpointStore store(home_.string());
  CheckpointContent content = small_content(3);
  content.write_model = [](const std::string& folder) { write_model(folder, tiny(), {}, by_rule); };
  store.save(content);
  for (const char* name : {"/step-00000003", "/latest"})
    expect_rule_weights(*open_model(store.folder() + name));
  fs::resize_file(store.folder_of(3) + "/preprocessor_config.json", 3);
  EXPECT_FALSE(store.newest_good());
}

TEST(Checkpoint, KeepsTheNewestAndMilestones) {
  const TempFolder run;
  CheckpointStore store(run.path().string(), {.keep_last = 2, .keep_every = 4});
  for (int64_t step = 1; step <= 9; ++step) store.save(small_content(step));
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{4, 8, 9}));
  EXPECT_EQ(fs::read_symlink(store.folder() + "/latest"), "step-00000009");
}

TEST(Checkpoint, DamagedOnesDoNotCountAsKept) {
  const TempFolder run;
  for (int64_t step : {1, 2, 3}) CheckpointStore(run.path().string()).save(small_content(step));
  CheckpointStore store(run.path().string(), {.keep_last = 2});
  fs::resize_file(store.folder_of(3) + "/model.safetensors", 100);
  store.save(small_content(4));
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{2, 3, 4}));
  store.save(small_content(5));
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{4, 5}));
}

// Its own version can read it: it is no reason to keep an older one, however often it is asked about.
TEST(Checkpoint, OneOfALaterFormatCountsAsKept) {
  const TempFolder run;
  for (int64_t step : {1, 2, 3}) CheckpointStore(run.path().string()).save(small_content(step));
  CheckpointStore store(run.path().string(), {.keep_last = 2});
  write_file(store.folder_of(3) + "/manifest.json", R"({"format": 9, "entirely": "different"})");
  store.save(small_content(4));
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{3, 4}));
}

TEST(Checkpoint, GoingBackDoesNotLoseWhatIsSavedNext) {
  const TempFolder run;
  CheckpointStore store(run.path().string(), {.keep_last = 2});
  for (int64_t step : {100, 200}) store.save(small_content(step));
  store.save(small_content(50));
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{50, 100, 200}));
}

TEST(Checkpoint, SavingAStepAgainReplacesIt) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  store.save(small_content(1));
  fs::resize_file(store.folder_of(1) + "/config.json", 0);
  EXPECT_FALSE(store.newest_good());
  store.save(small_content(1));
  EXPECT_TRUE(holds_its_step(store.open(1)));
  EXPECT_EQ(names_in(store.folder()), (std::vector<std::string>{"latest", "step-00000001"}));
}

TEST(Checkpoint, AFailedModelWriterLeavesNothing) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  store.save(small_content(1));
  const auto before = names_in(store.folder());
  CheckpointContent content = small_content(2);
  content.write_model = [](const std::string& folder) {
    write_file(folder + "/config.json", "{}");
    throw Error(ErrorKind::kWrite, "pulled the plug");
  };
  expect_error(ErrorKind::kWrite, "pulled the plug", [&] { store.save(content); });
  content.write_model = [](const std::string& folder) { fs::create_directory(folder + "/inner"); };
  expect_error(ErrorKind::kInternal, "inner is not a plain file", [&] { store.save(content); });
  EXPECT_EQ(names_in(store.folder()), before);
  EXPECT_EQ(store.newest_good()->step, 1);
}

// A save whose first writes fail.
CheckpointContent failing(int64_t step, int failures, const std::function<void()>& fail) {
  CheckpointContent content = small_content(step);
  content.write_model = [=, left = std::make_shared<int>(failures)](const std::string&) {
    if ((*left)-- > 0) fail();
  };
  return content;
}

TEST(Checkpoint, OnlyLackOfRoomCostsOlderOnes) {
  const TempFolder run;
  CheckpointStore store(run.path().string(), {.keep_last = 5});
  std::vector<int64_t> told;
  store.on_made_room([&](int64_t step) { told.push_back(step); });
  for (int64_t step = 1; step <= 5; ++step) store.save(small_content(step));
  const auto by_the_disk = [] { throw Error(ErrorKind::kWrite, "Input/output error"); };
  expect_error(ErrorKind::kWrite, "Input/output", [&] { store.save(failing(6, 1, by_the_disk)); });
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{1, 2, 3, 4, 5}));
  EXPECT_TRUE(told.empty());

  const auto by_a_quota = [] { throw NoRoom(ErrorKind::kWrite, "Disk quota exceeded"); };
  store.save(failing(6, 2, by_a_quota));
  EXPECT_EQ(told, (std::vector<int64_t>{1, 2})) << "no more than needed";
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{3, 4, 5, 6}));
  expect_error(ErrorKind::kWrite, "quota", [&] { store.save(failing(7, 9, by_a_quota)); });
  EXPECT_EQ(told, (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{5, 6}));
}

TEST(Checkpoint, NotEnoughSpaceSaysHowMuch) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  CheckpointContent content = small_content(1);
  content.state.clear();
  content.model_bytes = uint64_t{1} << 60;
  expect_error(ErrorKind::kWrite, "checkpoints: 1383505805528216371 bytes needed, ",
               [&] { store.save(content); });
  EXPECT_TRUE(store.steps().empty());
}

TEST(Checkpoint, PlacesThatCannotBeWrittenAreFoundAtTheStart) {
  const TempFolder run;
  const std::string file = put(run, "file", "x");
  expect_error(ErrorKind::kWrite, "file", [&] { CheckpointStore(file).prepare(); });
  CheckpointStore fresh(run / "a/b/c");
  EXPECT_TRUE(fresh.prepare().empty());
  EXPECT_TRUE(names_in(run / "a/b/c/checkpoints").empty());
}

TEST(Checkpoint, LeftoversOfTheDeadGoAndOthersStay) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  store.prepare();
  const ProcessMark self = ProcessMark::current();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const std::string dead = ProcessMark{self.host, child, 1}.text();
  const std::string reused = ProcessMark{self.host, self.pid, self.start + 1}.text();
  const std::string foreign = ProcessMark{"elsewhere", child, 1}.text();
  const std::vector<std::string> stay = {".tmp-mine", ".tmp-step-00000001-" + foreign,
                                         ".tmp-step-00000002-" + self.text(), "notes"};
  const std::vector<std::string> go = {".tmp-step-00000003-" + dead, ".tmp-step-00000004-" + reused};
  for (const auto& names : {stay, go})
    for (const std::string& name : names) {
      fs::create_directory(store.folder() + "/" + name);
      write_file(store.folder() + "/" + name + "/x", "x");
    }
  fs::create_symlink("nowhere", store.folder() + "/.tmp-latest-0-" + dead);
  EXPECT_EQ(store.prepare().size(), 3u);
  EXPECT_EQ(names_in(store.folder()), stay);
}

// A job that moves from host to host crashes on each of them.
TEST(Checkpoint, TheSoleUserRemovesTheLeftoversOfOtherHosts) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  store.prepare();
  const std::vector<std::string> stay = {".tmp-2026-11-16",
                                         ".tmp-gone-away",
                                         ".tmp-mine",
                                         ".tmp-mine-elsewhere-7-1",
                                         ".tmp-old-mine",
                                         ".tmp-step-00000002-" + ProcessMark::current().text(),
                                         "notes"};
  const std::vector<std::string> go = {".tmp-step-00000001-" + ProcessMark{"elsewhere", 7, 1}.text(),
                                       ".tmp-gone-3-" + ProcessMark{"elsewhere", 8, 1}.text(),
                                       ".tmp-gone-15-step-00000001"};
  for (const auto& names : {stay, go})
    for (const std::string& name : names) fs::create_directories(store.folder() + "/" + name + "/inner");
  EXPECT_EQ(store.prepare(true).size(), go.size());
  EXPECT_EQ(names_in(store.folder()), stay);
}

// Where folders cannot be swapped, a crash between two renames leaves the old one under another name.
TEST(Checkpoint, OneThatMadeWayForNothingComesBack) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  store.save(small_content(0));
  fs::rename(store.folder_of(0), store.folder() + "/.tmp-old-step-00000000");
  EXPECT_FALSE(store.newest_good());
  store.prepare(true);
  EXPECT_TRUE(holds_its_step(store.newest_good().value()));
}

TEST(Checkpoint, TheFirstStepIsNoMilestone) {
  const TempFolder run;
  CheckpointStore store(run.path().string(), {.keep_last = 2, .keep_every = 4});
  for (int64_t step = 0; step <= 6; ++step) store.save(small_content(step));
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{4, 5, 6}));
}

TEST(Checkpoint, OpeningNamesWhatIsMissing) {
  const TempFolder run;
  CheckpointStore store(run.path().string());
  expect_error(ErrorKind::kData, "step-00000005/manifest.json", [&] { store.open(5); });
  for (const char* name : {"step-5", "step-00000005x", "step--0000005", "step-", "best"})
    fs::create_directories(store.folder() + "/" + name);
  EXPECT_TRUE(store.steps().empty());
}

TEST(Checkpoint, PolicyIsChecked) {
  expect_error(ErrorKind::kConfig, "keep_last is 1", [] { CheckpointStore("x", {.keep_last = 1}); });
  expect_error(ErrorKind::kConfig, "keep_every is -1", [] { CheckpointStore("x", {.keep_every = -1}); });
}

TEST(CheckpointFacts, DifferencesByDottedKey) {
  const Json saved = {{"seed", 7}, {"config", {{"hash", "abc"}, {"batch", 512}}}, {"old", 1}};
  const Json now = {{"seed", 7}, {"config", {{"hash", "xyz"}, {"batch", 512}}}, {"new", 2}};
  std::string text;
  for (const FactDifference& difference : compare_facts(saved, now)) text += to_string(difference) + "\n";
  EXPECT_EQ(text,
            "config.hash: the checkpoint has \"abc\", this run has \"xyz\"\n"
            "new: the checkpoint has nothing, this run has 2\n"
            "old: the checkpoint has 1, this run has nothing\n");
  EXPECT_TRUE(compare_facts(saved, saved).empty());
  EXPECT_TRUE(compare_facts(Json::object(), Json::object()).empty());
  EXPECT_EQ(compare_facts(Json::object(), saved).size(), 4u);
}

}  // namespace
}  // namespace vitrail::testing
