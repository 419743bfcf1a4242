// The step follows the config: accumulation, dropout masks, averages and the schedule, seen from outside.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "base/rng.h"
#include "base/timing.h"
#include "data/decode.h"
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

// One image is repeated and nothing is learnt: only masks can change the loss.
TEST(Wiring, EveryStepDrawsItsOwnMasks) {
  struct Case {
    double dropout, drop_path;
    size_t least, most;  // different losses
  };
  for (const Case& c : {Case{0, 0, 1, 1}, {0.2, 0, 12, 12}, {0, 0.5, 3, 16}}) {
    TrainConfig config = tiny_config(12);
    config.data.train = "synthetic:3x8x8x4x1";
    config.train.batch = 1;
    config.optim.lr = 1e-30;
    config.train.dropout = c.dropout;
    config.train.drop_path = c.drop_path;
    const std::vector<double> losses = losses_of(config);
    const size_t different = std::set<double>(losses.begin(), losses.end()).size();
    EXPECT_GE(different, c.least) << c.dropout << " " << c.drop_path;
    EXPECT_LE(different, c.most) << c.dropout << " " << c.drop_path;
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

// MNIST's format: ten images of 8 x 8 and their labels, for training and for tests.
TEST(Wiring, FlipsOfDigitsAreMentioned) {
  const WorkFolder work;
  std::filesystem::create_directory(work / "digits");
  const auto number = [](uint32_t n) {
    return std::string{static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8),
                       static_cast<char>(n)};
  };
  std::string images = number(0x803) + number(10) + number(8) + number(8),
              labels = number(0x801) + number(10);
  for (int i = 0; i < 10; ++i) {
    images += std::string(64, static_cast<char>(20 * i));
    labels += static_cast<char>(i % 2);
  }
  for (const char* part : {"train", "t10k"}) {
    write_file(work / "digits/" + part + "-images-idx3-ubyte", images);
    write_file(work / "digits/" + part + "-labels-idx1-ubyte", labels);
  }
  TrainConfig config = tiny_config(1);
  config.data.train = "idx:" + (work / "digits");
  EXPECT_FALSE(train(config, work / "still").noted("augment.hflip"));
  config.augment.hflip = 0.5;
  EXPECT_TRUE(train(config, work / "flipped").noted("augment.hflip=0"));
  config.data.train = "synthetic:3x8x8x4x40";
  EXPECT_FALSE(train(config, work / "things").noted("augment.hflip"));
}

// Reddish, bluish, both or neither.
std::string labelled_folder(const WorkFolder& work) {
  std::string sheet = "filename,red,blue\n";
  std::filesystem::create_directory(work / "images");
  for (uint64_t i = 0; i < 64; ++i) {
    const bool red = i & 1, blue = i & 2;
    Image image = Image::blank(8, 8, 3);
    for (size_t at = 0; at < image.pixels.size(); ++at) {
      const bool bright = (at % 3 == 0 && red) || (at % 3 == 2 && blue);
      image.pixels[at] = static_cast<uint8_t>((bright ? 180 : 60) + counter_hash(i, at) % 40);
    }
    write_png(work / ("images/" + std::to_string(i) + ".png"), image);
    sheet += std::to_string(i) + ".png," + (red ? "1," : "0,") + (blue ? "1\n" : "0\n");
  }
  write_file(work / "images/labels.csv", sheet);
  return "folder:" + (work / "images");
}

TEST(Wiring, SeveralLabelsAnImage) {
  const WorkFolder work;
  TrainConfig config = tiny_config(60);
  config.data.train = labelled_folder(work);
  config.data.val_fraction = 0.25;
  config.optim.lr = 0.005;
  Ran refused;
  const Error error = train_error(refused, config, work / "softmax");
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.message().find("bce_mean"), std::string::npos) << error.what();
  config.train.loss = TrainLoss::kBceMean;
  const Ran ran = train(config, work / "run");
  ASSERT_TRUE(ran.outcome.last_eval && ran.outcome.last_eval->multi_label);
  EXPECT_GE(ran.outcome.last_eval->multi_label->mean_ap, 0.95);
  EXPECT_EQ(ran.outcome.best, ran.evals.back().mean_ap);
  EXPECT_TRUE(std::filesystem::exists(work / "run/report.html"));
}

// A line covers the time since the one before; the clock itself is not judged.
TEST(Wiring, LinesCoverTheirInterval) {
  const WorkFolder work;
  TrainConfig config = tiny_config(9);
  config.train.log_every = 4;
  const Ran ran = train(config, work / "run");
  std::vector<double> logged;
  for_each_metrics_line(RunFiles(work / "run").metrics(), [&](const Json& line) {
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

// What a run does between updates lowers no rate, however busy the machine is.
TEST(Wiring, PausesAreNoTimeOfUpdates) {
  const WorkFolder work;
  const Clock::time_point start = Clock::now();
  double paused = 0, least = 0;
  const Ran ran = train(tiny_config(2), work / "run", {.step = [&](const TrainStatus& status) {
                          least = 16 / (seconds_since(start) - paused);
                          if (status.step > 1) return;
                          const Clock::time_point from = Clock::now();
                          std::this_thread::sleep_for(std::chrono::milliseconds(300));
                          paused = seconds_since(from);
                        }});
  ASSERT_EQ(ran.steps.size(), 2u);
  EXPECT_GE(ran.steps[1].images_per_second, least) << "paused for " << paused << " s";
}

TEST(Wiring, ADistilledModelLearnsWithBothHeadsWithoutATeacher) {
  const WorkFolder work;
  TrainConfig config = tiny_config(3);
  set_model(config, "distilled", [](VitConfig& m) { m.distilled = true; });
  train(config, work / "run");
  const Tensors state = state_of(work / "run");
  for (const char* name : {"optim/head.weight/v", "optim/head_dist.weight/v"}) {
    const std::vector<float> values = floats_of(state, name);
    EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](float v) { return v > 0; })) << name;
  }
}

}  // namespace
}  // namespace vitrail::testing
