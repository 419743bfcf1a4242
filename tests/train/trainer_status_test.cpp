// What a run reports while it goes on: epochs, the best step, saves by the clock; and what it refuses or
// mentions before it begins.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "train/helpers/tiny_run.h"
#include "train/run_setup.h"

namespace vitrail::testing {
namespace {

TEST(Status, EpochsAreCountedWhereTheRunIsMeasuredInThem) {
  const WorkFolder work;
  TrainConfig config = tiny_config(0);
  config.train.epochs = 2;
  const Ran ran = train(config, work / "epochs");  // 40 images, less those for validation, in batches of 8
  const int64_t each = set_up(config).steps_per_epoch;
  ASSERT_EQ(static_cast<int64_t>(ran.steps.size()), 2 * each);
  for (size_t i = 0; i < ran.steps.size(); ++i) {
    EXPECT_EQ(ran.steps[i].step, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(ran.steps[i].total_steps, 2 * each);
    EXPECT_EQ(ran.steps[i].epoch, static_cast<int64_t>(i) / each);
    EXPECT_EQ(ran.steps[i].total_epochs, 2);
  }
  for (const TrainStatus& status : train(tiny_config(2), work / "steps").steps)
    EXPECT_EQ(status.total_epochs, 0) << "measured in steps";
}

TEST(Status, TheCheckpointKnowsTheBestStepAndHowLongAgoItWas) {
  const WorkFolder work;
  TrainConfig config = tiny_config(6);
  config.train.eval_every = 1;
  const Ran ran = train(config, work / "run");
  ASSERT_EQ(ran.evals.size(), 6u);
  double best = -1;
  int64_t best_step = 0, since = 0;
  for (const EvalStatus& eval : ran.evals) {
    EXPECT_EQ(eval.best, *eval.top1 > best) << eval.step;
    since = eval.best ? 0 : since + 1;
    if (eval.best) best = *eval.top1, best_step = eval.step;
  }
  const auto newest = CheckpointStore(work / "run").newest_good();
  ASSERT_TRUE(newest);
  const Json& progress = newest->facts.at("progress");
  EXPECT_EQ(progress.at("best").get<double>(), best);
  EXPECT_EQ(progress.at("best_step").get<int64_t>(), best_step);
  EXPECT_EQ(progress.at("evals_since_best").get<int64_t>(), since);
  EXPECT_EQ(ran.outcome.best, best);
}

// An evaluation at the end of an epoch belongs to that epoch.
TEST(Status, WhereThereIsAnAverageItsResultsDecide) {
  const WorkFolder work;
  TrainConfig config = tiny_config(0);
  config.train.epochs = 4;
  config.train.eval_every = 0;
  config.optim.ema_decay = 0.5;
  const Ran ran = train(config, work / "run");
  ASSERT_EQ(ran.evals.size(), 8u);
  double best = -1;
  for (size_t i = 0; i < ran.evals.size(); ++i) {
    const EvalStatus& eval = ran.evals[i];
    EXPECT_EQ(eval.weights, i % 2 ? "ema" : "model");
    EXPECT_EQ(eval.epoch, static_cast<int64_t>(i / 2));
    EXPECT_EQ(eval.best, i % 2 && *eval.top1 > best) << eval.step;
    if (eval.best) best = *eval.top1;
  }
  EXPECT_EQ(ran.outcome.best, best);
}

TEST(Status, TheClockAloneMakesASaveDue) {
  const WorkFolder work;
  TrainConfig config = tiny_config(3);
  for (const double minutes : {0.0, 1e-9, 2.0, 1e6}) {
    config.train.save_minutes = minutes;
    config.train.save_every = minutes > 0 ? 0 : 1000;  // one of the two is needed
    bool saved = false;
    const std::string folder = work / strf("%g", minutes);
    train(config, folder, {.step = [&](const TrainStatus& status) {
            // Two minutes are not over after a twentieth of a second.
            if (status.step == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
            const std::vector<int64_t> steps = CheckpointStore(folder).steps();
            if (status.step == 3) saved = std::find(steps.begin(), steps.end(), 2) != steps.end();
          }});
    EXPECT_EQ(saved, minutes == 1e-9) << minutes;
  }
}

// What a watch sees of a rank: each phase as it begins, with the step that is being made.
TEST(Status, AWatchSeesEveryPhase) {
  const WorkFolder work;
  Pulse pulse;
  std::vector<std::string> entered;
  pulse.on_enter = [&](RankPhase phase, int64_t step) {
    entered.push_back(strf("%s %d", to_string(phase), static_cast<int>(step)));
  };
  std::vector<RunEvent> events;
  TrainHooks hooks;
  hooks.step = [&](const TrainStatus& status) {
    EXPECT_EQ(pulse.state().made, status.step);
    if (status.step == 1) pulse.add_log_event("rank 1 was silent");
  };
  hooks.event = [&](const RunEvent& event) { events.push_back(event); };
  RankContext rank(cpu_device(1));
  rank.pulse = &pulse;
  Trainer(tiny_config(2), {work / "run", ResumeMode::kFresh, ""}, cpu_backend(), rank, hooks).run();
  EXPECT_EQ(entered, (std::vector<std::string>{"save 0", "init 0", "forward 1", "update 1", "forward 2",
                                               "update 2", "evaluation 2", "save 2", "evaluation 2",
                                               "update 2", "save 2", "update 2"}));
  EXPECT_EQ(pulse.state().step, 2);
  std::vector<std::string> news;
  for (const RunEvent& event : events)
    if (event.what == "slow_rank")
      news.push_back(strf("%s, step %d", event.text.c_str(), static_cast<int>(event.step)));
  EXPECT_EQ(news, std::vector<std::string>{"rank 1 was silent, step 2"})
      << "the log has it with the next update";
}

bool notes(const TrainConfig& config, const std::string& part) {
  const std::vector<std::string> all = set_up(config).notes;
  return std::any_of(all.begin(), all.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

TEST(Setup, ABatchLargerThanTheDataIsMentioned) {
  TrainConfig config = tiny_config(1);
  const int64_t size = set_up(config).data.train->size();
  for (const int64_t more : {-1, 0, 1}) {
    config.train.batch = size + more;
    EXPECT_EQ(notes(config, "sees some of the"), more > 0) << more;
  }
}

TEST(Setup, SettingsOfRanksThatHaveNoEffectAreNamedOnce) {
  TrainConfig config = tiny_config(1);
  EXPECT_FALSE(notes(config, "no effect here"));
  config.mesh.verify_every = 2;
  EXPECT_TRUE(notes(config, "no effect here: mesh.verify_every compares several ranks"));
  config.mesh.tokens_on_tp = true, config.mesh.accumulate = KeptSums::kWhole;
  EXPECT_TRUE(notes(config, "ranks, mesh.tokens_on_tp needs mesh.tp above 1, mesh.accumulate=whole needs"));
  MeshConfig several{
      .dp = 2, .tp = 2, .tokens_on_tp = true, .zero = 2, .accumulate = KeptSums::kWhole, .verify_every = 2};
  EXPECT_EQ(needless_text(several), "");
  several.zero = 1;
  EXPECT_NE(needless_text(several).find("mesh.zero 2 or 3"), std::string::npos);
}

TEST(Setup, TrainingAndEvaluationLoadBatchesOfTheirOwn) {
  TrainConfig config = tiny_config(1);
  config.train.micro_batch = 2;
  config.train.eval_batch = 5;
  config.train.smoothing = 0.1;
  config.train.seed = 7;
  const RunSetup setup = set_up(config);
  const LoaderSettings train = setup.loader_settings(Purpose::kTrain),
                       eval = setup.loader_settings(Purpose::kEval);
  EXPECT_EQ(train.micro_batch, 2);
  EXPECT_EQ(train.accumulation, 4);
  EXPECT_EQ(train.smoothing, 0.1);
  EXPECT_EQ(train.seed, 7u);
  EXPECT_EQ(eval.micro_batch, 5);
  EXPECT_EQ(eval.accumulation, 1);
  EXPECT_EQ(eval.smoothing, 0);
  EXPECT_EQ(eval.classes, 4);
}

TEST(Setup, TheModelRemembersHowItsScoresAreMeant) {
  for (const auto& [loss, scores] : {std::pair{TrainLoss::kSoftmax, ScoreKind::kSoftmax},
                                     {TrainLoss::kBceMean, ScoreKind::kSigmoid},
                                     {TrainLoss::kBceSum, ScoreKind::kSigmoid}}) {
    TrainConfig config = tiny_config(1);
    config.train.loss = loss;
    EXPECT_EQ(set_up(config).model->card.scores, scores) << enum_name(loss);
  }
}

// The share of a crop is that of the shorter side.
TEST(Setup, AShareOfTheCropBecomesASideToResizeTo) {
  TrainConfig config = tiny_config(1);
  set_model(config, "image_width", [](VitConfig& m) { m.image_width = 16; });
  config.model.preprocess.crop_pct = 0.5;
  config.model.preprocess_given = {"crop_pct"};
  EXPECT_EQ(set_up(config).model->card.preprocess.resize, 16) << "8 of 8 x 16, taken twice";
}

TEST(Setup, AdaptersLeaveEveryHeadLearning) {
  for (const bool distilled : {false, true}) {
    TrainConfig config = tiny_config(1);
    set_model(config, "distilled", [&](VitConfig& m) { m.distilled = distilled; });
    config.lora.rank = 2;
    std::vector<std::string> heads;
    for (const TrainedParam& param : set_up(config).step.trained)
      if (param.name.starts_with("head")) heads.push_back(param.name);
    std::vector<std::string> wanted = {"head.weight", "head.bias"};
    if (distilled) wanted.insert(wanted.end(), {"head_dist.weight", "head_dist.bias"});
    EXPECT_EQ(heads, wanted);
  }
}

TEST(Setup, AsManyClassesAsTheDataHasOrNoneMayBeSaid) {
  for (const int64_t classes : {3, 4, 5}) {
    TrainConfig config = tiny_config(1);
    set_model(config, "classes", [&](VitConfig& m) { m.classes = classes; });
    if (classes == 4)
      EXPECT_NO_THROW(set_up(config));
    else
      EXPECT_THROW(set_up(config), Error) << classes;
  }
}

TEST(Setup, ATeacherOfOtherClassesOrColoursIsRefused) {
  const WorkFolder work;
  train(tiny_config(1), work / "teacher");
  const struct {
    const char* said;
    void (*change)(TrainConfig&);
  } rows[] = {
      {"", [](TrainConfig&) {}},
      {"other names or another order",
       [](TrainConfig& c) {
         c.data.class_names = {"1", "0", "2", "3"};
       }},
      {"knows 4 classes, the data has 5", [](TrainConfig& c) { c.data.train = "synthetic:3x8x8x5x40"; }},
      {"normalises",
       [](TrainConfig& c) { c.model.preprocess.std = {0.25}, c.model.preprocess_given = {"std"}; }},
      {"normalises",
       [](TrainConfig& c) { c.model.preprocess.mean = {0.4}, c.model.preprocess_given = {"mean"}; }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.said);
    TrainConfig config = tiny_config(1);
    config.distill = {DistillKind::kSoft, work / "teacher/best", 0.5, 2};
    row.change(config);
    Ran ran;
    const WorkFolder own;
    const Error error = train_error(ran, config, own / "run");
    EXPECT_EQ(error.kind(), *row.said ? ErrorKind::kConfig : ErrorKind::kInternal) << error.what();
    EXPECT_NE(error.message().find(*row.said ? row.said : "did not fail"), std::string::npos) << error.what();
  }
}

// The caller knows how long an update should take; the run says how long it took.
TEST(Status, PredictedUpdatesStandBesideMeasuredOnes) {
  const WorkFolder work;
  const auto run = [&](const std::string& name, double seconds) {
    TrainConfig config = tiny_config(5);
    config.train.micro_batch = 4;
    int64_t asked = 0, before = -1;
    std::vector<RunEvent> events;
    TrainHooks hooks;
    hooks.step = [&](const TrainStatus&) { before = std::max<int64_t>(before, asked); };
    hooks.event = [&](const RunEvent& event) { events.push_back(event); };
    hooks.predict = [&](const StepPlan& plan, int64_t micros) {
      ++asked;
      EXPECT_EQ(micros, 2);
      EXPECT_GT(plan.peak_bytes(), 0u);
      return seconds;
    };
    RankContext rank(cpu_device(1));
    Trainer(config, {work / name, ResumeMode::kFresh, ""}, cpu_backend(), rank, hooks).run();
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(before, 1) << "before the first update";
    std::string told;
    for (const RunEvent& event : events)
      if (event.what == "predicted") told = event.text;
    return told;
  };
  const std::string told = run("known", 0.25);
  EXPECT_NE(told.find("250 ms predicted, "), std::string::npos) << told;
  EXPECT_NE(told.find("measured (median of 4): "), std::string::npos) << told;
  EXPECT_NE(told.find("% shorter"), std::string::npos) << told;
  EXPECT_NE(read_file(work / "known/report.html", 1 << 24).find("250 ms predicted"), std::string::npos);
  EXPECT_NE(read_file(work / "known/metrics.jsonl", 1 << 24).find("250 ms predicted"), std::string::npos);
  EXPECT_EQ(run("unknown", 0), "");
  EXPECT_EQ(read_file(work / "unknown/report.html", 1 << 24).find("predicted,"), std::string::npos);
}

}  // namespace
}  // namespace vitrail::testing
