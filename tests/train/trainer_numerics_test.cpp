// Numbers that stop being finite: the update is skipped and counted, the run goes back and lowers its
// learning rate, and at last ends with an error; an impossible label is named.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "train/helpers/exploding_run.h"

namespace vitrail::testing {
namespace {

TEST(Numerics, GoesBackTwiceThenGivesUp) {
  const WorkFolder work;
  const TrainConfig config = exploding_config(40, work / "run");
  Ran ran;
  const Error error = train_error(ran, config, work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_EQ(error.kind(), ErrorKind::kNumerics) << error.what();
  EXPECT_NE(error.message().find("3 updates in a row"), std::string::npos) << error.what();
  EXPECT_NE(error.hint().find("optim.lr"), std::string::npos);
  EXPECT_EQ(ran.events_of("rollback"), 2);
  EXPECT_TRUE(ran.told("rollback", "step 6 at 0.5 times"));
  EXPECT_TRUE(ran.told("rollback", "step 6 at 0.25 times"));
  EXPECT_EQ(ran.steps.back().lr, 0.25 * 1e30) << "what was told is what was done";
  EXPECT_EQ(ran.events_of("skipped_update"), 9);
  EXPECT_EQ(CheckpointStore(work / "run").steps(), (std::vector<int64_t>{2, 4, kGood}))
      << "nothing is saved among skipped updates";
  expect_finite(work / "run");
}

// A run that is stopped among skipped updates counts on when it is resumed; once it has gone back, which it
// does as if it had not been stopped, it begins to count anew.
TEST(Numerics, GoingBackBeginsToCountAnew) {
  const WorkFolder work;
  const TrainConfig config = exploding_config(40, work / "run");
  const Ran stopped = train(config, work / "run", {.resume = ResumeMode::kNewest, .stop_after = kGood + 3});
  EXPECT_EQ(stopped.events_of("skipped_update"), 2);
  Ran ran;
  const Error error = train_error(ran, config, work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_EQ(error.kind(), ErrorKind::kNumerics) << error.what();
  std::vector<std::string> told;
  for (const RunEvent& event : ran.events)
    if (event.what == "skipped_update")
      told.push_back(event.text.substr(event.text.find('(')));
    else if (event.what == "rollback")
      told.emplace_back("back");
  EXPECT_EQ(told,
            (std::vector<std::string>{"(3 in a row)", "back", "(1 in a row)", "(2 in a row)", "(3 in a row)",
                                      "back", "(1 in a row)", "(2 in a row)", "(3 in a row)"}));
  EXPECT_TRUE(ran.told("rollback",
                       "3 updates in a row had NaN or Inf: back to step 6 at 0.5 times the "
                       "learning rate"));
}

TEST(Numerics, SkippedUpdatesAreCountedAndLeaveTheWeights) {
  const WorkFolder work;
  TrainConfig config = exploding_config(10, work / "run");
  config.train.skip_limit = 50;
  const Ran ran = train(config, work / "run", {.resume = ResumeMode::kNewest});
  ASSERT_TRUE(ran.outcome.finished);
  EXPECT_EQ(ran.steps.front().skipped, 0);
  EXPECT_EQ(ran.steps.back().skipped, 3);
  int64_t logged = 0;
  for_each_metrics_line(RunFiles(work / "run").metrics(), [&](const Json& line) {
    if (metrics_text(line, "kind") == "train") logged = line["skipped"].get<int64_t>();
  });
  EXPECT_EQ(logged, 3);
  expect_finite(work / "run");

  config = exploding_config(kGood + 1, work / "short");
  train(config, work / "short", {.resume = ResumeMode::kNewest});
  Tensors early = state_of(work / "short"), late = state_of(work / "run");
  early.erase(kUpdateCounterState), late.erase(kUpdateCounterState);
  EXPECT_EQ(differing(early, late), std::vector<std::string>());
}

TEST(Numerics, WithoutALaterCheckpointItGoesBackToTheBeginning) {
  const WorkFolder work;
  TrainConfig config = tiny_config(40);
  config.optim.lr = 1e30;
  config.train.skip_limit = 3;
  Ran ran;
  const Error error = train_error(ran, config, work / "run");
  EXPECT_EQ(error.kind(), ErrorKind::kNumerics);
  EXPECT_NE(error.message().find("going back did not help"), std::string::npos) << error.what();
  EXPECT_EQ(ran.events_of("rollback"), 2);
  EXPECT_TRUE(ran.told("rollback", "step 0 at 0.25 times"));
}

// A decay of three times the weights doubles them every update, with changing sign; half of it shrinks them.
TrainConfig doubling_config() {
  TrainConfig config = tiny_config(140);
  config.optim.name = "sgd";
  config.optim.momentum = 0;
  config.optim.lr = 0.01;
  config.optim.weight_decay = 300;
  config.optim.clip_norm = 1;
  config.schedule.kind = ScheduleKind::kConstant;
  config.train.save_every = 12;  // the last before the overflow still fades at half the rate
  config.train.skip_limit = 3;
  config.train.eval_every = 10;
  config.train.log_every = 10;
  return config;
}

TEST(Numerics, HalfTheLearningRateHelps) {
  const WorkFolder work;
  const Ran ran = train(doubling_config(), work / "run");
  EXPECT_TRUE(ran.outcome.finished);
  EXPECT_EQ(ran.events_of("rollback"), 1);
  EXPECT_EQ(ran.steps.back().lr, 0.005);
  EXPECT_TRUE(std::isfinite(ran.steps.back().loss));
  expect_finite(work / "run");
  // The log holds no step twice.
  std::map<std::pair<std::string, int64_t>, int> lines;
  for_each_metrics_line(RunFiles(work / "run").metrics(), [&](const Json& line) {
    const std::string kind = metrics_text(line, "kind");
    if (kind != "event") ++lines[{kind, line["step"].get<int64_t>()}];
  });
  for (const auto& [line, count] : lines) EXPECT_EQ(count, 1) << line.first << " at " << line.second;
}

// best/ holds the best weights of all that were evaluated, undone or not.
TEST(Numerics, GoingBackDoesNotForgetTheBestResult) {
  const WorkFolder work;
  TrainConfig config = doubling_config();
  config.train.save_every = 1000;  // back to the beginning, where nothing was evaluated
  const Ran ran = train(config, work / "run");
  ASSERT_TRUE(ran.told("rollback", "back to step 0"));
  double best = -1;
  int64_t last = 0, undone = 0, best_step = 0;
  for (const EvalStatus& eval : ran.evals) {
    EXPECT_EQ(eval.best, *eval.top1 > best) << eval.step;
    if (eval.best) best_step = eval.step;
    best = std::max(best, *eval.top1);
    if (eval.step <= last) {
      ++undone;
      EXPECT_FALSE(eval.best) << "or this test shows nothing";
    }
    last = eval.step;
  }
  EXPECT_EQ(undone, 1);
  EXPECT_EQ(ran.outcome.best, best);
  const Json progress = CheckpointStore(work / "run").newest_good().value().facts["progress"];
  EXPECT_EQ(progress["best_step"], best_step) << "best/ is of that step";
}

// A result whose best/ could not be written was seen all the same: patience counts from it.
TEST(Numerics, GoingBackDoesNotForgetAResultThatWasNotWritten) {
  const WorkFolder work;
  TrainConfig config = doubling_config();
  config.train.save_every = 1000;
  config.train.patience = 2;
  const Ran ran = train(config, work / "run", {.step = [&](const TrainStatus& status) {
                          if (status.step == 1) write_file(work / "run/best", "in the way");
                        }});
  ASSERT_TRUE(ran.told("rollback", "back to step 0"));
  ASSERT_TRUE(ran.told("write_failed", "best/ not written"));
  EXPECT_LT(ran.outcome.best, 0);
  double seen = -1;
  int64_t last = 0, in_a_row = 0;
  for (const EvalStatus& eval : ran.evals) {
    if (eval.step <= last) in_a_row = 0;  // the run went back
    in_a_row = *eval.top1 > seen ? 0 : in_a_row + 1;
    seen = std::max(seen, *eval.top1);
    last = eval.step;
    EXPECT_EQ(in_a_row == 2, &eval == &ran.evals.back()) << eval.step;
  }
  EXPECT_LT(last, 140) << "or this test shows nothing";
  const Json progress = CheckpointStore(work / "run").newest_good().value().facts["progress"];
  EXPECT_EQ(progress["best_seen"], seen);
}

// The run goes back, is stopped and resumed: the rate stays halved and the run ends as the one that was not
// stopped.
TEST(Numerics, AResumedRunKeepsTheRateItWentBackTo) {
  const WorkFolder work;
  const TrainConfig config = doubling_config();
  train(config, work / "whole");
  for (const int64_t later : {0, 2}) {
    SCOPED_TRACE(later);
    const std::string folder = work / std::to_string(later);
    Ran first;
    const auto gone_back = [&] {
      return first.events_of("rollback") == 1 && first.steps.back().lr == 0.005 &&
             std::count_if(first.steps.begin(), first.steps.end(),
                           [](const TrainStatus& s) { return s.lr == 0.005; }) > later;
    };
    train_into(first, config, folder, {.stop = gone_back});
    ASSERT_FALSE(first.outcome.finished);
    ASSERT_EQ(first.events_of("rollback"), 1);
    const Ran second = train(config, folder, {.resume = ResumeMode::kNewest});
    EXPECT_TRUE(second.outcome.finished);
    EXPECT_EQ(second.events_of("rollback"), 0);
    for (const TrainStatus& status : second.steps) ASSERT_EQ(status.lr, 0.005) << status.step;
    EXPECT_EQ(differing(state_of(folder), state_of(work / "whole")), std::vector<std::string>());
    EXPECT_EQ(metrics_of(folder), metrics_of(work / "whole"));
  }
}

// The number of restarts is stored too: of two, one is left.
TEST(Numerics, AResumedRunRemembersHowOftenItWentBack) {
  const WorkFolder work;
  const TrainConfig config = exploding_config(40, work / "run");
  Ran first, second;
  train_into(first, config, work / "run",
             {.resume = ResumeMode::kNewest, .stop = [&] { return first.events_of("rollback") == 1; }});
  ASSERT_FALSE(first.outcome.finished);
  const Error error = train_error(second, config, work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_EQ(error.kind(), ErrorKind::kNumerics) << error.what();
  EXPECT_EQ(second.events_of("rollback"), 1);
  EXPECT_TRUE(second.told("rollback", "at 0.25 times")) << "the first halving is lost";
}

TEST(Numerics, ALossScaleThatIsTooLargeIsFound) {
  const WorkFolder work;
  TrainConfig config = tiny_config(30);
  config.train.dtype = ComputeType::kF16;
  config.loss_scale.initial = config.loss_scale.max = 1e9;
  config.train.skip_limit = 2;
  const Ran ran = train(config, work / "run");
  EXPECT_TRUE(ran.outcome.finished);
  EXPECT_GT(ran.steps.back().skipped, 3);
  EXPECT_EQ(ran.events_of("rollback"), 0);
  EXPECT_LT(ran.steps.back().loss_scale, 1e9);
  EXPECT_LT(ran.steps.back().loss, ran.steps.front().loss);
}

// CIFAR's records: a label, then 3 x 32 x 32 pixels.
TEST(Numerics, AWrongLabelIsNamed) {
  const WorkFolder work;
  std::filesystem::create_directory(work / "cifar");
  for (const char* file : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                           "data_batch_5.bin", "test_batch.bin"}) {
    std::string records(10 * 3073, '\x40');
    for (size_t i = 0; i < 10; ++i) records[i * 3073] = static_cast<char>(i);
    if (std::string(file) == "data_batch_3.bin") records[7 * 3073] = 10;
    write_file(work / "cifar/" + file, records);
  }
  TrainConfig config = tiny_config(4);
  config.data.train = "cifar10:" + (work / "cifar");
  Ran ran;
  const Error error = train_error(ran, config, work / "run");
  EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
  EXPECT_NE(std::string(error.what()).find("data_batch_3.bin: sample 7 has the label 10"), std::string::npos)
      << error.what();
}

}  // namespace
}  // namespace vitrail::testing
