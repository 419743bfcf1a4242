// What the callbacks of train() hear is what the run's own log holds.
#include <gtest/gtest.h>
#include <vitrail/vitrail.h>

#include <map>

#include "base/run_files.h"
#include "telemetry/metrics_file.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

// Two epochs of four updates, an average beside the weights.
constexpr const char* kRun = R"({
  "model": {"image_height": 16, "image_width": 16, "patch": 8, "width": 32, "depth": 1, "heads": 2, "mlp": 64},
  "data": {"train": "synthetic:3x16x16x6x64", "val": "synthetic:3x16x16x6x96"},
  "optim": {"ema_decay": 0.5},
  "train": {"batch": 16, "epochs": 2, "log_every": 1, "tensorboard": false}
})";

TEST(TrainReports, AreThoseOfTheLog) {
  const TempFolder folder;
  const std::string run = (folder.path() / "run").string();
  std::vector<StepReport> steps;
  std::vector<EvalReport> evals;
  std::vector<TrainEvent> events;
  TrainCallbacks callbacks;
  callbacks.on_step = [&](const StepReport& one) { steps.push_back(one); };
  callbacks.on_eval = [&](const EvalReport& one) { evals.push_back(one); };
  callbacks.on_event = [&](const TrainEvent& one) { events.push_back(one); };
  const TrainResult result = train(kRun, {.folder = run, .threads = 1}, callbacks);
  std::map<std::string, std::vector<Json>> lines;
  for_each_metrics_line(RunFiles(run).metrics(),
                        [&](const Json& line) { lines[metrics_text(line, "kind")].push_back(line); });
  ASSERT_EQ(steps.size(), 8u);
  ASSERT_EQ(lines["train"].size(), 8u);
  for (size_t i = 0; i < 8; ++i) {
    const Json& line = lines["train"][i];
    EXPECT_EQ(steps[i].step, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(steps[i].total_steps, 8);
    EXPECT_EQ(steps[i].epoch, static_cast<int64_t>(i) / 4);
    EXPECT_EQ(steps[i].loss, line.at("loss"));
    EXPECT_EQ(steps[i].learning_rate, line.at("lr"));
    EXPECT_EQ(steps[i].grad_norm, line.at("grad_norm"));
    EXPECT_NEAR(steps[i].images_per_second, line.at("img_per_s").get<double>(),
                1e-6 * steps[i].images_per_second);
    EXPECT_EQ(steps[i].skipped, 0);
  }
  EXPECT_EQ(steps[0].learning_rate, 1e-3) << "the usual one";
  EXPECT_EQ(steps[7].seconds_left, 0) << "none are left";
  EXPECT_GT(steps[3].seconds_left, 0);
  ASSERT_EQ(evals.size(), 4u);
  ASSERT_EQ(lines["eval"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const Json& line = lines["eval"][i];
    EXPECT_EQ(evals[i].step, i < 2 ? 4 : 8);
    EXPECT_EQ(evals[i].epoch, i < 2 ? 0 : 1);
    EXPECT_EQ(evals[i].weights, i % 2 ? "ema" : "model");
    EXPECT_EQ(evals[i].loss, line.at("loss"));
    EXPECT_EQ(evals[i].top1, line.at("top1").get<double>());
    EXPECT_EQ(evals[i].top5, line.at("top5").get<double>());
    EXPECT_EQ(evals[i].count, line.at("count"));
    EXPECT_EQ(evals[i].best, line.at("best"));
    EXPECT_FALSE(evals[i].mean_ap || evals[i].macro_f1);
  }
  EXPECT_TRUE(evals[1].best);
  EXPECT_FALSE(evals[0].best || evals[2].best) << "the average's results decide";
  EXPECT_EQ(result.best, std::max(evals[1].top1, evals[3].top1));
  EXPECT_EQ(result.reason, "all steps done");
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().what, "finished");
  EXPECT_EQ(events.back().text, "all steps done");
  EXPECT_EQ(events.back().step, 8);
}

// In f16 the first updates overflow a scale that begins too high, and are skipped.
TEST(TrainReports, CountSkippedUpdates) {
  const TempFolder folder;
  std::vector<StepReport> steps;
  TrainCallbacks callbacks;
  callbacks.on_step = [&](const StepReport& one) { steps.push_back(one); };
  const std::string config = R"({
    "model": {"image_height": 16, "image_width": 16, "patch": 8, "width": 32, "depth": 1, "heads": 2, "mlp": 64},
    "data": {"train": "synthetic:3x16x16x6x64"}, "loss_scale": {"initial": 1e12, "max": 1e13},
    "train": {"batch": 16, "steps": 3, "log_every": 1, "dtype": "f16", "tensorboard": false}})";
  train(config, {.folder = (folder.path() / "run").string(), .threads = 1}, callbacks);
  ASSERT_EQ(steps.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(steps[i].skipped, static_cast<int64_t>(i) + 1);
}

}  // namespace
}  // namespace vitrail
