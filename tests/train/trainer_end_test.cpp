// When a run ends by itself: its patience is exhausted, or its time is over; and what it says of its report.
#include <gtest/gtest.h>

#include "train/helpers/tiny_run.h"

namespace vitrail::testing {
namespace {

using Steps = std::vector<int64_t>;

TEST(End, EndsWhenNothingGetsBetter) {
  const WorkFolder work;
  TrainConfig config = tiny_config(60);
  config.optim.lr = 1e-12;
  config.train.eval_every = 2;
  config.train.patience = 3;
  const Ran ran = train(config, work / "run");
  EXPECT_TRUE(ran.outcome.finished);
  EXPECT_EQ(ran.outcome.reason, "no better result in 3 evaluations");
  EXPECT_EQ(ran.outcome.step, 8);
  EXPECT_EQ(CheckpointStore(work / "run").steps().back(), 8);
  const Ran again = train(config, work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_TRUE(again.steps.empty()) << "it had ended";
  config.train.patience = 5;
  EXPECT_EQ(train(config, work / "run", {.resume = ResumeMode::kNewest}).outcome.step, 12);
}

// A better result begins the count anew: what counts is how many in a row were no better.
TEST(End, PatienceBeginsAnewWithABetterResult) {
  const WorkFolder work;
  TrainConfig config = learnable_config(400);
  config.train.eval_every = 2;
  config.train.patience = 6;
  const Ran ran = train(config, work / "run");
  EXPECT_EQ(ran.outcome.reason, "no better result in 6 evaluations");
  int64_t in_a_row = 0, worse = 0;
  for (size_t i = 0; i < ran.evals.size(); ++i) {
    in_a_row = ran.evals[i].best ? 0 : in_a_row + 1;
    worse += !ran.evals[i].best;
    EXPECT_EQ(in_a_row == config.train.patience, i + 1 == ran.evals.size()) << ran.evals[i].step;
  }
  EXPECT_GT(worse, config.train.patience) << "or this test shows nothing";
}

// A disk that takes no best/ neither keeps a run alive that gets no better nor ends one that does.
TEST(End, PatienceGoesByResultsWhetherOrNotTheyCouldBeKept) {
  for (const bool learns : {false, true}) {
    const WorkFolder work;
    TrainConfig config = learns ? learnable_config(400) : tiny_config(60);
    if (!learns) config.optim.lr = 1e-12;
    config.train.eval_every = 2;
    config.train.patience = learns ? 6 : 3;
    const Ran kept = train(config, work / "kept");
    const Ran lost = train(config, work / "lost", {.step = [&](const TrainStatus& status) {
                             if (status.step == 1) write_file(work / "lost/best", "in the way");
                           }});
    EXPECT_EQ(lost.outcome.step, kept.outcome.step) << learns;
    EXPECT_EQ(lost.outcome.reason, kept.outcome.reason) << learns;
    EXPECT_LT(lost.outcome.best, 0);
    for (const EvalStatus& eval : lost.evals) EXPECT_FALSE(eval.best) << "best/ does not hold it";
  }
}

TEST(End, StopsInTime) {
  const WorkFolder work;
  TrainConfig config = tiny_config(100000);
  config.train.max_minutes = 0.1 / 60;
  const Ran ran = train(config, work / "run");
  EXPECT_FALSE(ran.outcome.finished);
  EXPECT_EQ(ran.outcome.reason, "the time limit was reached");
  EXPECT_EQ(CheckpointStore(work / "run").steps(), (Steps{0, ran.outcome.step}));
  EXPECT_EQ(ran.events.back().what, "stopped");
}

// However short its time, a job makes an update: a chain of such jobs gets on.
TEST(End, ATimeLimitLeavesRoomForOneUpdate) {
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    const WorkFolder work;
    TrainConfig config = tiny_config(9);
    config.train.max_minutes = 1e-9;
    EXPECT_EQ(train(config, work / "run", {.ranks = ranks}).outcome.step, 1);
    EXPECT_EQ(train(config, work / "run", {.resume = ResumeMode::kNewest, .ranks = ranks}).outcome.step, 2);
  }
}

// An evaluation that was left for later is no update: it comes in full, whatever the time, and then an
// update.
TEST(End, ATimeLimitShorterThanADueEvaluationLetsTheRunGetOn) {
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    const WorkFolder work;
    TrainConfig config = tiny_config(4);
    config.train.eval_every = 1;
    train(config, work / "whole", {.ranks = ranks});
    config.train.max_minutes = 1e-9;
    EXPECT_EQ(train(config, work / "run", {.ranks = ranks}).outcome.step, 1);
    for (int64_t step = 2; step <= 4; ++step) {
      const Ran life = train(config, work / "run", {.resume = ResumeMode::kNewest, .ranks = ranks});
      EXPECT_EQ(life.outcome.step, step);
      EXPECT_EQ(life.evals.size(), 1u) << "that of the life before";
      EXPECT_FALSE(life.outcome.finished);
    }
    EXPECT_TRUE(
        train(config, work / "run", {.resume = ResumeMode::kNewest, .ranks = ranks}).outcome.finished);
    EXPECT_EQ(differing(state_of(work / "run"), state_of(work / "whole")), std::vector<std::string>());
    if (ranks == 1) {
      EXPECT_EQ(metrics_of(work / "run"), metrics_of(work / "whole"));
    }
  }
}

// The first evaluation of a life can be interrupted by a signal all the same; the checkpoint is then written
// anew, with the settings of that life.
TEST(End, AStopInterruptsADueEvaluation) {
  const WorkFolder work;
  TrainConfig config = tiny_config(4);
  config.train.eval_every = 1;
  EXPECT_EQ(train(config, work / "run", {.stop_after = 1}).evals.size(), 0u);
  config.optim.lr *= 2;
  for (const bool changed : {true, false}) {
    const Ran life =
        train(config, work / "run", {.resume = ResumeMode::kNewest, .stop = [] { return true; }});
    EXPECT_EQ(life.outcome.step, 1);
    EXPECT_EQ(life.evals.size(), 0u);
    EXPECT_EQ(life.noted("changed since the checkpoint: config.optim.lr"), changed);
  }
}

TEST(End, ARunSaysWhetherItsReportWasWritten) {
  const WorkFolder work;
  EXPECT_TRUE(train(tiny_config(2), work / "run").outcome.reported);
  std::filesystem::remove(work / "run/report.html");
  std::filesystem::create_directories(work / "run/report.html/in the way");
  const Ran ran = train(tiny_config(2), work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_TRUE(ran.outcome.finished);
  EXPECT_FALSE(ran.outcome.reported);
  EXPECT_TRUE(ran.noted("report.html was not written"));
}

}  // namespace
}  // namespace vitrail::testing
