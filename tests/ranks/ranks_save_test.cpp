// Saves that fail on one of several ranks: nobody commits, the run goes on as its policy says, and the log
// names the rank. A rank that may not write is one whose thread has another user's rights.
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "io/checkpoint/durable.h"
#include "ranks/shared_run.h"
#include "train/helpers/answers.h"

namespace vitrail::testing {
namespace {

using Steps = std::vector<int64_t>;
constexpr int kRanks = 3;
constexpr uid_t kNobody = 65534;

// From a step on, one rank may not write, until another step.
struct Bar {
  int rank;
  int64_t from, until;
};

// Runs with one rank barred for a while; what the first rank reports is collected.
void train_barred(Ran& ran, const TrainConfig& config, const std::string& folder, const Bar& bar,
                  ResumeMode resume = ResumeMode::kFresh) {
  run_ranks({.worlds = thread_communicators(kRanks),
             .mesh = resolved(config.mesh, kRanks),
             .device = [](int) { return cpu_device(1); },
             .sharing = kRanks},
            [&](RankContext& rank) {
              TrainHooks hooks;
              const bool leads = Team(rank.ranks).leads();
              if (leads) {
                hooks.step = [&](const TrainStatus& status) { ran.steps.push_back(status); };
                hooks.event = [&](const RunEvent& event) { ran.events.push_back(event); };
              }
              int64_t updates = 0;  // asked before the first update and after each
              hooks.stop = [&, barred = rank.ranks->mesh().rank == bar.rank]() mutable {
                if (barred) ::setfsuid(updates >= bar.from && updates < bar.until ? kNobody : 0);
                ++updates;
                return false;
              };
              if (bar.from < 0 && rank.ranks->mesh().rank == bar.rank) ::setfsuid(kNobody);
              Trainer trainer(config, {folder, resume, "test"}, cpu_backend(), rank, hooks);
              const TrainOutcome outcome = trainer.run();
              if (leads) ran.outcome = outcome;
            });
}

class RanksSave : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "rights can only be given up by root";
    config_ = shared_config(8);
    config_.train.save_every = 2;
    config_.train.eval_every = 1000000;
    config_.mesh.zero = GetParam();
  }
  std::vector<std::string> unfinished() const {
    std::vector<std::string> names = names_in(CheckpointStore(run_).folder());
    std::erase_if(names, [](const std::string& name) { return !name.starts_with(".tmp-"); });
    return names;
  }
  WorkFolder work_;
  std::string run_ = work_ / "run";
  TrainConfig config_;
};

TEST_P(RanksSave, TheRunGoesOnAndTheRankIsNamed) {
  Ran ran;
  train_barred(ran, config_, run_, {2, 3, 5});
  EXPECT_TRUE(ran.outcome.finished);
  EXPECT_EQ(ran.events_of("write_failed"), 1);
  EXPECT_TRUE(ran.told("write_failed", "checkpoint not written: rank 2: cannot ")) << ran.events[0].text;
  EXPECT_EQ(CheckpointStore(run_).steps(), (Steps{2, 6, 8}));
  EXPECT_TRUE(unfinished().empty());
  const Ran whole = train(config_, work_ / "whole", {.ranks = kRanks});
  EXPECT_EQ(ran.losses(), whole.losses());
  EXPECT_EQ(differing(state_of(run_), state_of(work_ / "whole")), std::vector<std::string>());
}

// The first save must succeed: the run ends with the error of the rank that failed.
TEST_P(RanksSave, AFirstSaveThatFailsEndsTheRun) {
  Ran ran;
  try {
    train_barred(ran, config_, run_, {1, -1, 100});
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kWrite) << error.what();
    EXPECT_TRUE(std::string(error.what()).starts_with("rank 1: cannot ")) << error.what();
  }
  EXPECT_TRUE(ran.steps.empty());
  EXPECT_TRUE(CheckpointStore(run_).steps().empty());
  EXPECT_TRUE(unfinished().empty());
}

// The last is tried twice; then the model alone is kept, and the run can be resumed from the checkpoint
// before.
TEST_P(RanksSave, ALastSaveThatFailsLeavesTheModel) {
  Ran ran;
  try {
    train_barred(ran, config_, run_, {1, 7, 100});
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kWrite) << error.what();
    EXPECT_TRUE(std::string(error.what()).starts_with("rank 1: the last checkpoint was not written"))
        << error.what();
    EXPECT_NE(error.hint().find("the model alone is in"), std::string::npos) << error.hint();
  }
  EXPECT_TRUE(std::filesystem::exists(run_ + "/last/model.safetensors"));
  train(config_, work_ / "whole", {.ranks = kRanks});
  const Tensors whole = state_of(work_ / "whole");
  const std::vector<float> kept = params_of(run_ + "/last").at("head.weight");
  EXPECT_EQ(kept, floats_of(whole, "ema/head.weight")) << "what was evaluated";
  EXPECT_NE(kept, floats_of(whole, "head.weight"));
  EXPECT_EQ(CheckpointStore(run_).steps().back(), 6);
  EXPECT_TRUE(unfinished().empty());
  const Ran rest = train(config_, run_, {.resume = ResumeMode::kNewest, .ranks = 2});
  EXPECT_TRUE(rest.outcome.finished);
  EXPECT_FALSE(std::filesystem::exists(run_ + "/last"));
}

INSTANTIATE_TEST_SUITE_P(Stages, RanksSave, ::testing::Values(0, 3),
                         [](const auto& stage) { return "Zero" + std::to_string(stage.param); });

}  // namespace
}  // namespace vitrail::testing
