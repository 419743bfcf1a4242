// Sentences of runs and evaluations, with the numbers that they name.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <iostream>

#include "thrown.h"
#include "train/config_io.h"
#include "train/eval_data.h"
#include "train/helpers/stepped.h"
#include "train/helpers/tiny_run.h"
#include "train/run_folder.h"
#include "train/run_plan.h"
#include "train/world.h"

namespace vitrail::testing {
namespace {

constexpr auto kNowhere = std::string::npos;

TEST(ToldRuns, WhereARunBegins) {
  const WorkFolder work;
  const Ran first = train(tiny_config(2), work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_TRUE(first.noted("no checkpoint to resume from: starting from the beginning"));
  EXPECT_EQ(first.events_of("resume"), 0);
  const Ran second = train(tiny_config(3), work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_TRUE(second.told("resume", "resumed at step 2"));
  std::filesystem::remove_all(work / "run/checkpoints");
  Ran ran;
  const Error error = train_error(ran, tiny_config(4), work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.message(), (work / "run") + " holds a run's log and best/ but no checkpoint");
}

// A run that has learned something is not begun anew in its own folder without a word.
TEST(ToldRuns, ALogAndABestModelWithoutACheckpoint) {
  const std::string begun = R"({"kind":"event","step":0,"what":"note"})"
                            "\n",
                    learned = begun + R"({"kind":"train","step":1,"loss":2})"
                                      "\n";
  const struct {
    const char* name;
    const std::string log;
    bool best, refused;
  } rows[] = {{"nothing", "", false, false},      {"best", "", true, false},
              {"begun", begun, false, false},     {"begun and best", begun, true, false},
              {"learned", learned, false, false}, {"learned and best", learned, true, true}};
  const WorkFolder work;
  for (const auto& row : rows) {
    const RunFiles files(work / row.name);
    std::filesystem::create_directories(files.folder());
    if (!row.log.empty()) write_file(files.metrics(), row.log);
    if (row.best) std::filesystem::create_directories(files.best());
    EXPECT_EQ(thrown_by([&] { refuse_without_checkpoint(files); }),
              row.refused ? "data: " + files.folder() +
                                " holds a run's log and best/ but no checkpoint | without one it can only "
                                "begin again: name another folder, or remove this one first"
                          : "nothing")
        << row.name;
  }
  const RunFiles looped(work / "learned");
  std::filesystem::create_symlink(looped.best(), looped.best());
  EXPECT_TRUE(thrown_by([&] { refuse_without_checkpoint(looped); }).starts_with("data: " + looped.folder()));
}

TEST(ToldRuns, WhyACheckpointIsNotTaken) {
  const WorkFolder work;
  train(tiny_config(2), work / "run");
  for (const int64_t step : CheckpointStore(work / "run").steps())
    write_file(CheckpointStore(work / "run").folder_of(step) + "/manifest.json", "{");
  for (const ResumeMode mode : {ResumeMode::kNewest, ResumeMode::kStrict}) {
    Ran ran;
    const Error error = train_error(ran, tiny_config(3), work / "run", {.resume = mode});
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_EQ(error.hint(), "no other is left; to begin again, remove " + (work / "run/checkpoints") +
                                " or name another folder");
  }
}

TEST(ToldRuns, FoldersThatAreNoRunsAreNamed) {
  const WorkFolder work;
  write_file(work / "file", "x");
  EXPECT_EQ(error_of([&] { RunFolder(work / "file"); }).message(),
            (work / "file") + " is a file, and a run needs a folder");
  std::filesystem::create_directories(work / "mine");
  write_file(work / "mine/notes.txt", "x");
  const Error error = error_of([&] { RunFolder(work / "mine"); });
  EXPECT_EQ(error.kind(), ErrorKind::kWrite);
  EXPECT_EQ(
      error.message(),
      (work / "mine") + " holds \"notes.txt\", which no run has made: a run would write over what is there");
  EXPECT_EQ(error.hint(), "name a folder that is empty or does not exist, with --out");
}

// Sanitizers need the address space that is limited here.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
[[noreturn]] void start_too_many_ranks() {
  LocalRanks ranks{.worlds = thread_communicators(2000),
                   .mesh = resolved(MeshConfig{}, 2000),
                   .device = [](int) { return cpu_device(1); },
                   .sharing = 2000};
  const rlimit limit{1 << 30, 1 << 30};
  setrlimit(RLIMIT_AS, &limit);
  const Error error = error_of([&] { run_ranks(std::move(ranks), [](RankContext&) {}); });
  std::cerr << error.what();
  _exit(exit_code(error.kind()));
}

TEST(ToldRunsDeath, RanksThatCannotBeStarted) {
  EXPECT_EXIT(start_too_many_ranks(), ::testing::ExitedWithCode(69),
              "only [0-9]+ of 2000 ranks could be started");
}
#endif

TEST(ToldRuns, WhatCannotBeComparedWithOneRank) {
  const WorkFolder work;
  const auto refused = [&](const TrainConfig& config, int ranks) {
    return error_of([&] {
      run_ranks({.worlds = ranks == 1 ? open_world({.ranks = 1, .variables = {}}).ranks
                                      : thread_communicators(ranks),
                 .mesh = resolved(config.mesh, ranks),
                 .device = [](int) { return cpu_device(1); },
                 .sharing = ranks},
                [&](RankContext& rank) {
                  TrainPlace place{work / "run", ResumeMode::kFresh, "test"};
                  place.check_whole = true;
                  Trainer(config, place, cpu_backend(), rank, {});
                });
    });
  };
  TrainConfig config = tiny_config(1);
  const Error alone = refused(config, 1);
  EXPECT_EQ(alone.kind(), ErrorKind::kUsage);
  EXPECT_NE(alone.message().find("compares the ranks of a run with one; this run has one rank alone"),
            kNowhere);
  config.mesh.pp = 2, config.train.accumulation = 2;
  EXPECT_NE(refused(config, 2).message().find("does not know pipelines; mesh.pp is 2, expected 1"), kNowhere);
  config = tiny_config(1), config.mesh.offload = Offload::kOptimizer;
  EXPECT_NE(refused(config, 2).message().find("which with mesh.offload=optimizer are copies"), kNowhere);
}

TEST(ToldRuns, HowRanksAreStarted) {
  const auto set = [](std::map<std::string, std::string> values) {
    return [values = std::move(values)](const char* name) {
      const auto found = values.find(name);
      return found == values.end() ? nullptr : found->second.c_str();
    };
  };
  const Error srun = error_of([&] {
    open_world(
        {.ranks = 1,
         .variables = set({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}})});
  });
  EXPECT_EQ(srun.kind(), ErrorKind::kUsage);
  EXPECT_EQ(srun.hint(), "srun --mpi=pmix ...");
  const Error both = error_of([&] {
    open_world({.ranks = 3, .variables = set({{"OMPI_COMM_WORLD_RANK", "0"}})});
  });
  EXPECT_EQ(both.message(), "--ranks 3 under mpirun: a process is one rank there; leave --ranks out");
}

TEST(ToldRuns, ConfigsThatAreNone) {
  const Error list = error_of([] { train_config_from_json(Json::array(), "c.json"); });
  EXPECT_EQ(list.message(), "c.json holds array; expected a training config, which is one object");
  const Error key = error_of([] { train_config_from_json({{"train", {{"bacth", 3}}}}, "c.json"); });
  EXPECT_EQ(key.kind(), ErrorKind::kConfig);
  EXPECT_EQ(key.message(), "c.json: a training config has no key 'train.bacth'");
  EXPECT_NE(key.hint().find("train.batch"), kNowhere) << key.hint();
  const Error sizes = error_of([] {
    train_config_from_json({{"model", {{"image", 32}, {"image_width", 48}}}}, "c.json");
  });
  EXPECT_EQ(sizes.message(), "model.image is 32 and model.image_width is 48: which of them?");
  const Error none =
      error_of([] { read_train_config("nowhere.json", [](const std::string& name) { return name; }); });
  EXPECT_EQ(none.kind(), ErrorKind::kConfig);
  EXPECT_EQ(none.hint(), "check the path of the config");
}

TEST(ToldRuns, PlansSayWhatTheyAssume) {
  TrainConfig config = tiny_config(1);
  config.mesh.dp = 2, config.mesh.balance = {"auto"};
  const RunPlan plan(config, {}, cpu_backend(), planned_cpu_device(1, "avx2"));
  EXPECT_EQ(plan.notes().back(), "mesh.balance=auto is measured when a run starts; planned with even shares");
  EXPECT_EQ(plan.needs().size(), 2u);
  EXPECT_EQ(plan.needs()[1].rank, 1);
  EXPECT_EQ(plan.needs()[1].images, 4);
  EXPECT_EQ(
      error_of([&] { RunPlan(tiny_config(1), 0, cpu_backend(), planned_cpu_device(1, "avx2")); }).message(),
      "training needs classes, and the model has no head: model.classes says how many");
}

class ToldEvaluation : public ::testing::Test {
 protected:
  ToldEvaluation() { train(tiny_config(1), run_); }
  EvalData open(const std::string& model, const std::string& data, const std::string& part) {
    said_.clear();
    return open_eval_data({model, data, part, [](const std::string& name) { return name; },
                           [this](const std::string& text) { said_.push_back(text); }});
  }
  WorkFolder work_;
  std::string run_ = work_ / "run", best_ = work_ / "run/best", data_ = tiny_config(1).data.train;
  std::vector<std::string> said_;
};

TEST_F(ToldEvaluation, WhichImagesWereSeen) {
  const EvalData own = open(run_, "", "");
  EXPECT_EQ(own.part, "val");
  EXPECT_EQ(own.name, data_);
  ASSERT_TRUE(own.seen);
  EXPECT_EQ(own.seen->found, 0);
  EXPECT_TRUE(said_.empty());
  const EvalData again = open(best_, data_, "train");
  EXPECT_EQ(again.part, "train");
  EXPECT_EQ(said_, std::vector<std::string>{
                       "warning: the model has learned from 100.00 % of these images: the result "
                       "says little about new ones"});
  EXPECT_EQ(again.seen->share(), 1);
  EXPECT_EQ(open(best_, data_, "all").part, "all");
  EXPECT_EQ(said_.size(), 1u);
  EXPECT_EQ(open(best_, data_, "val").part, "val");
  EXPECT_EQ(open(best_, data_, "").part, "val") << "its own validation part";
}

TEST_F(ToldEvaluation, WhatIsNotKnownIsSaid) {
  const Error missing = error_of([&] { open(best_, "", ""); });
  EXPECT_EQ(missing.kind(), ErrorKind::kUsage);
  EXPECT_EQ(missing.message(), "--data is missing: which images?");
  std::filesystem::copy(best_, work_ / "alone", std::filesystem::copy_options::recursive);
  const EvalData marked = open(work_ / "alone", data_, "train");
  ASSERT_EQ(said_.size(), 1u);
  const int64_t images = marked.set->size();
  EXPECT_EQ(
      said_[0],
      strf("warning: the model has learned from 100.00 %% (%d of %d training images that the model keeps "
           "a mark of) of these images: the result says little about new ones",
           static_cast<int>(images), static_cast<int>(images)));
  std::filesystem::remove(work_ / "alone/manifest.json");
  const EvalData unknown = open(work_ / "alone", data_, "train");
  EXPECT_FALSE(unknown.seen);
  EXPECT_EQ(said_, std::vector<std::string>{
                       "whether the model has learned from these images is not known: nothing beside "
                       "it says what it was trained on"});
}

// The run's own data is what its config names; without one the folder is told, and no other is looked for.
TEST_F(ToldEvaluation, ARunWithoutItsConfigDoesNotKnowItsData) {
  std::filesystem::remove(run_ + "/config.json");
  const Error error = error_of([&] { open(run_, "", ""); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.message().find(run_ + "/config.json"), std::string::npos) << error.message();
  EXPECT_EQ(error.hint(), "check the path of the config");
}

// With a mark of each of its few training images a model alone answers for other images, too.
TEST_F(ToldEvaluation, ImagesThatAreNoneOfTheMarkedOnesWereNotSeen) {
  std::filesystem::copy(best_, work_ / "alone", std::filesystem::copy_options::recursive);
  const EvalData foreign = open(work_ / "alone", "synthetic:3x9x9x4x30", "all");
  ASSERT_TRUE(foreign.seen);
  EXPECT_EQ(foreign.seen->found, 0);
  EXPECT_EQ(foreign.seen->looked_at, foreign.set->size());
  EXPECT_TRUE(said_.empty()) << said_[0];
}

// Of 360 training images it keeps 256 marks, and of 360 images at hand 200 are looked at.
TEST_F(ToldEvaluation, WhatIsKnownOfSomeImagesIsSaidSo) {
  TrainConfig config = tiny_config(1);
  config.data.train = "synthetic:3x8x8x4x400";
  train(config, work_ / "large");
  const EvalData own = open(work_ / "large/best", config.data.train, "train");
  ASSERT_GT(own.set->size(), 256);
  EXPECT_EQ(said_, std::vector<std::string>{
                       "warning: the model has learned from about 100.00 % of these images: the result "
                       "says little about new ones"});
  std::filesystem::copy(work_ / "large/best", work_ / "alone", std::filesystem::copy_options::recursive);
  const EvalData foreign = open(work_ / "alone", "synthetic:3x9x9x4x30", "all");
  EXPECT_FALSE(foreign.seen) << "of most training images nothing is known";
  EXPECT_EQ(
      said_,
      std::vector<std::string>{
          "the training data is not at hand: none of 256 training images that the model keeps a mark of "
          "is among these; of the others nothing is known"});
  open(work_ / "alone", config.data.train, "train");
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_TRUE(said_[0].starts_with("warning: the model has learned from about 100.00 % (256 of 256 "))
      << said_[0];
}

}  // namespace
}  // namespace vitrail::testing
