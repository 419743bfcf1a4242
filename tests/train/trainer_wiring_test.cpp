// What the config says is what the step does: accumulation, masks, averages and the schedule, seen from
// outside.
#include <gtest/gtest.h>

#include <cmath>

#include "optim/schedule.h"
#include "train/helpers/tiny_run.h"

namespace vitrail::testing {
namespace {

std::vector<double> losses_of(const TrainConfig& config) {
  const WorkFolder work;
  return train(config, work / "run").losses();
}

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted, double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], tolerance) << "step " << i;
}

// Masks follow the sample, not the micro-batch it is in.
TEST(Wiring, AccumulationIsOneLargeBatch) {
  for (double masks : {0.0, 0.3}) {
    TrainConfig config = tiny_config(6);
    config.optim.name = "sgd";
    config.optim.lr = 0.1;
    config.train.dropout = config.train.drop_path = masks;
    const std::vector<double> whole = losses_of(config);
    for (int64_t micro : {4, 2, 1}) {
      config.train.micro_batch = micro;
      SCOPED_TRACE(micro);
      expect_near(losses_of(config), whole, 1e-5);
    }
  }
}

// All pictures in every step, and nothing learnt: only masks can change the loss.
TEST(Wiring, EveryStepDrawsItsOwnMasks) {
  struct Case {
    double dropout, drop_path;
  };
  for (const Case& c : {Case{0, 0}, {0.2, 0}, {0, 0.5}}) {
    TrainConfig config = tiny_config(5);
    config.train.batch = 40;
    config.optim.lr = 1e-30;
    config.train.dropout = c.dropout;
    config.train.drop_path = c.drop_path;
    const std::vector<double> losses = losses_of(config);
    const bool masks = c.dropout > 0 || c.drop_path > 0;
    for (size_t i = 1; i < losses.size(); ++i)
      EXPECT_EQ(std::abs(losses[i] - losses[0]) > 1e-5, masks) << c.dropout << " " << c.drop_path;
  }
}

TEST(Wiring, TheAverageFollowsAtItsRate) {
  const WorkFolder work;
  TrainConfig config = tiny_config(1);
  config.optim.ema_decay = 0.75;
  train(config, work / "moved");
  config.optim.lr = 1e-30;
  train(config, work / "start");
  const Tensors start = state_of(work / "start"), moved = state_of(work / "moved");
  int64_t compared = 0;
  for (const auto& [name, bytes] : start) {
    if (!moved.contains(ema_name(name))) continue;
    const std::vector<float> from = floats_of(start, name), to = floats_of(moved, name),
                             average = floats_of(moved, ema_name(name));
    for (size_t i = 0; i < from.size(); ++i)
      ASSERT_NEAR(average[i], 0.75f * from[i] + 0.25f * to[i], 1e-6f) << name;
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

TEST(Wiring, TheScheduleIsFollowed) {
  const WorkFolder work;
  TrainConfig config = tiny_config(12);
  config.schedule.warmup = 4;
  config.schedule.min_lr = 1e-4;
  const Ran ran = train(config, work / "run");
  for (size_t i = 0; i < ran.steps.size(); ++i)
    EXPECT_EQ(ran.steps[i].lr, lr_at(config.schedule, config.optim.lr, static_cast<int64_t>(i), 12)) << i;
}

// A line tells of the time since the one before; the clock itself is not judged.
TEST(Wiring, LinesCoverTheirInterval) {
  const WorkFolder work;
  TrainConfig config = tiny_config(9);
  config.train.log_every = 4;
  const Ran ran = train(config, work / "run");
  std::vector<double> logged;
  for_each_metrics_line(RunLog::metrics_path(work / "run"), [&](const Json& line) {
    if (metrics_text(line, "kind") == "train") logged.push_back(metrics_number(line, "interval_s"));
  });
  ASSERT_EQ(logged.size(), 3u);
  size_t at = 0;
  for (size_t line = 0; line < 3; ++line) {
    double seconds = 0;
    for (; at < std::min<size_t>(4 * (line + 1), 9); ++at) seconds += ran.steps[at].interval_s;
    EXPECT_NEAR(logged[line], seconds, 1e-9) << line;
  }
}

}  // namespace
}  // namespace vitrail::testing
