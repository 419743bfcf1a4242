// The lines that a run writes and shows: progress, evaluations, the keys of metrics.jsonl and their curves.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/timing.h"
#include "run_folder.h"
#include "telemetry/format.h"
#include "telemetry/metrics_file.h"
#include "telemetry/progress_text.h"
#include "telemetry/run_curves.h"
#include "telemetry/run_log.h"

namespace vitrail {
namespace {

using nlohmann::ordered_json;

TEST(ProgressLine, CountsRatesAndTimeLeft) {
  ProgressState s{
      .title = "predict", .unit = "images", .done = 250, .total = 1000, .seconds = 5, .note = "ok"};
  EXPECT_EQ(format_progress_line(s), "predict: 250/1,000 images (25 %)  50.0 images/s  ETA 15.0 s  ok");
  EXPECT_EQ(format_progress_bar(s, 200),
            "predict ▕██████                  ▏  25 %  250/1,000 images  50.0 images/s  ETA 15.0 s  ok");
  const std::string bare = "predict  25 %  250/1,000 images  50.0 images/s  ETA 15.0 s  ok";
  EXPECT_EQ(format_progress_bar(s, 62), bare);
  EXPECT_EQ(display_width(bare), 62u);
  EXPECT_EQ(format_progress_bar(s, 61), " 25 %  250/1,000 images");
  EXPECT_EQ(format_progress_bar(s, 23), " 25 %  250/1,000 images");
  EXPECT_EQ(format_progress_bar(s, 22), " 25 %  ");
  EXPECT_EQ(format_progress_bar(s, 0), " ");
  s.done = 1000;
  EXPECT_EQ(format_progress_line(s), "predict: 1,000/1,000 images (100 %)  200 images/s  ok");
  s.done = 1200;
  EXPECT_EQ(format_progress_line(s).substr(0, 41), "predict: 1,200/1,000 images (100 %)  240 ");
  s.done = 0, s.note.clear();
  EXPECT_EQ(format_progress_line(s), "predict: 0/1,000 images (0 %)");
  s = {.title = "count", .unit = "files", .done = 3, .total = 0, .seconds = 2, .note = ""};
  EXPECT_EQ(format_progress_line(s), "count: 3 files  1.50 files/s");
  EXPECT_EQ(format_progress_bar(s, 99), "count 3 files  1.50 files/s");
}

TEST(ProgressLine, ClockOnEitherSideOfEachUnit) {
  const std::pair<double, const char*> rows[] = {{0, "0:00"},
                                                 {7.4, "0:07"},
                                                 {59.5, "1:00"},
                                                 {723, "12:03"},
                                                 {3599, "59:59"},
                                                 {3600, "1:00:00"},
                                                 {11110, "3:05:10"},
                                                 {86399, "23:59:59"},
                                                 {86400, "1 d 00:00:00"},
                                                 {184200, "2 d 03:10:00"},
                                                 {-1, "?"},
                                                 {NAN, "?"},
                                                 {1e10, "?"}};
  for (const auto& [seconds, text] : rows) EXPECT_EQ(format_clock(seconds), text) << seconds;
}

TrainStatus status_of_step() {
  return {.step = 120,
          .total_steps = 5000,
          .epoch = 1,
          .total_epochs = 3,
          .loss = 1.8234,
          .lr = 3e-4,
          .grad_norm = 2,
          .images_per_second = 812,
          .interval_s = 4,
          .data_wait_s = 1,
          .loss_scale = 1024,
          .eta_s = 723,
          .memory_bytes = 1 << 20,
          .skipped = 2,
          .time = 5};
}

TEST(TrainLine, HasWhatIsKnown) {
  const TrainStatus s = status_of_step();
  EXPECT_EQ(
      format_train_line(s),
      "step 120/5,000 2.4 % | loss 1.823 | epoch 2/3 | lr 3.0e-04 | 812 img/s | wait 25 % | mem 1.00 MiB | 2 "
      "skipped | ETA 12:03");
  EXPECT_EQ(format_train_line({.step = 7, .loss = NAN}), "step 7 | loss nan");
  EXPECT_EQ(format_train_line({.step = 9, .total_steps = 9, .epoch = 3, .total_epochs = 3, .loss = 1}),
            "step 9/9 100.0 % | loss 1 | epoch 3/3");
  EXPECT_EQ(format_train_line({.step = 1, .total_epochs = 1, .loss = 1}), "step 1 | loss 1");
  EXPECT_EQ(format_train_line({.step = 12, .total_steps = 9, .loss = 1}), "step 12/9 100.0 % | loss 1");
  // The time left moves forward, then the last parts go, then the bar.
  EXPECT_EQ(format_train_bar(s, 200).substr(0, 25), "▕▍               ▏ ");
  const std::string short_line = "step 120/5,000 2.4 % | loss 1.823 | ETA 12:03";
  EXPECT_EQ(format_train_bar(s, 64), "▕▍               ▏ " + short_line);
  const TrainStatus four{.step = 120, .total_steps = 5000, .loss = 1.8234, .lr = 3e-4, .eta_s = 723};
  EXPECT_EQ(format_train_bar(four, 64), "▕▍               ▏ " + short_line) << "of four parts, too";
  EXPECT_EQ(format_train_bar(s, 63), "▕▍               ▏ step 120/5,000 2.4 % | loss 1.823");
  EXPECT_EQ(format_train_bar(s, 51), "step 120/5,000 2.4 % | loss 1.823");
  EXPECT_EQ(format_train_bar(s, 20), "step 120/5,000 2.4 %");
  EXPECT_EQ(format_train_bar(s, 4), "step");
}

TEST(EvalLine, HasWhatWasMeasured) {
  EvalStatus s{.step = 500,
               .epoch = 1,
               .top1 = 0.8123,
               .top5 = 0.981,
               .loss = 0.6124,
               .count = 10000,
               .seconds = 12.3,
               .best = true};
  EXPECT_EQ(format_eval_line(s),
            "eval at step 500, epoch 2: top-1 81.23 %, top-5 98.10 %, loss 0.6124 | 10,000 images in 12.3 s "
            "| best so far");
  s = {.step = 1, .mean_ap = 0.5, .macro_f1 = 0.25, .loss = 2, .count = 1, .weights = "ema"};
  EXPECT_EQ(format_eval_line(s),
            "eval at step 1, epoch 1: mAP 50.00 %, F1 25.00 %, loss 2 | 1 image | ema weights");
}

TEST(MetricsLine, HasItsKeys) {
  EXPECT_EQ(to_json(status_of_step()),
            ordered_json::parse(R"({"kind": "train", "step": 120, "epoch": 1, "loss": 1.8234, "lr": 3e-4,
                "img_per_s": 812.0, "grad_norm": 2.0, "interval_s": 4.0, "data_wait_s": 1.0, "memory_bytes": 1048576,
                "skipped": 2, "loss_scale": 1024.0, "time": 5.0})"));
  EXPECT_FALSE(to_json(TrainStatus()).contains("loss_scale"));
  EXPECT_TRUE(std::isnan(TrainStatus{.interval_s = 0, .data_wait_s = 0}.data_wait_share()));
  EXPECT_EQ(to_json(EvalStatus{.step = 1,
                               .epoch = 2,
                               .top1 = 0.5,
                               .top5 = 0.6,
                               .mean_ap = 0.7,
                               .macro_f1 = 0.8,
                               .loss = 0.9,
                               .count = 3,
                               .weights = "ema",
                               .seconds = 4,
                               .best = true,
                               .time = 5}),
            ordered_json::parse(
                R"({"kind": "eval", "step": 1, "epoch": 2, "top1": 0.5, "top5": 0.6, "map": 0.7, "f1": 0.8,
                "loss": 0.9, "count": 3, "weights": "ema", "seconds": 4.0, "best": true, "time": 5.0})"));
  EXPECT_EQ(to_json(EvalStatus{.step = 1}).size(), 9u);
  EXPECT_EQ(
      to_json(EpochSummary{.step = 1,
                           .epoch = 2,
                           .train_loss = 3,
                           .eval_loss = 4,
                           .lr = 5,
                           .eval_top1 = 0.6,
                           .eval_top5 = 0.7}),
      ordered_json::parse(R"({"kind": "epoch", "step": 1, "epoch": 2, "train_loss": 3.0, "eval_loss": 4.0,
                "eval_top1": 0.6, "eval_top5": 0.7, "lr": 5.0})"));
  EXPECT_EQ(
      to_json(RunEvent{"resume", "at", 3, 4}),
      ordered_json::parse(R"({"kind": "event", "step": 3, "what": "resume", "text": "at", "time": 4.0})"));
  EXPECT_GT(unix_seconds(), 1.7e9);
}

TEST(RunHistory, CurvesHaveTheirScalesAndACalmLine) {
  const RunFolder folder;
  {
    RunLog log(folder.path(), {.tensorboard = false});
    for (int64_t step = 1; step <= 100; ++step)
      log.train({.step = step,
                 .loss = step % 2 ? 1.0 : 3.0,
                 .lr = 0.5,
                 .grad_norm = 3,
                 .images_per_second = 40,
                 .interval_s = 4,
                 .data_wait_s = 1});
    log.eval({.step = 100, .top1 = 0.25, .mean_ap = 0.5, .macro_f1 = 0.75, .loss = 1, .count = 4});
  }
  const RunHistory history = read_run_history(folder.file("metrics.jsonl"));
  ASSERT_EQ(history.curves.size(), 6u);
  struct Row {
    const char *title, *note;
    size_t series;
    double last;
    bool from_zero;
  };
  const Row rows[] = {{"Loss", "", 3, 1, false},
                      {"Accuracy", "% of the evaluation set", 3, 75, false},
                      {"Learning rate", "", 1, 0.5, false},
                      {"Throughput", "images/s", 1, 40, true},
                      {"Waiting for data", "% of the time", 1, 25, true},
                      {"Gradient norm", "", 2, 3, false}};
  for (size_t i = 0; i < 6; ++i) {
    const LineChart& chart = history.curves[i];
    EXPECT_EQ(chart.title, rows[i].title);
    EXPECT_EQ(chart.y_label, rows[i].note);
    EXPECT_EQ(chart.x_label, "step");
    ASSERT_EQ(chart.series.size(), rows[i].series) << chart.title;
    EXPECT_NEAR(chart.series.back().points.back().y, rows[i].last, 1e-9) << chart.title;
    EXPECT_EQ(chart.series.back().points.back().x, 100) << chart.title;
    EXPECT_EQ(chart.from_zero, rows[i].from_zero) << chart.title;
    EXPECT_EQ(chart.log_y, i == 5) << chart.title;
  }
  EXPECT_TRUE(history.curves[0].series[0].faint && !history.curves[0].series[1].faint);
  EXPECT_EQ(history.curves[0].series[1].name, "train");
  const std::vector<Point>&noisy = history.curves[0].series[0].points,
        &calm = history.curves[0].series[1].points;
  EXPECT_EQ(calm.back().y, smooth(noisy, 2).back().y) << "over a fiftieth of the points";
  EXPECT_EQ(noisy.back().y, 3);
  EXPECT_EQ(history.curves[1].series[2].name, "F1");
}

TEST(MetricsLine, DeepAndLongLinesAreBroken) {
  const RunFolder folder;
  const auto broken = [&](const std::string& line) {
    std::ofstream(folder.file("m.jsonl")) << line << "\n";
    return for_each_metrics_line(folder.file("m.jsonl"), [](const Json&) {});
  };
  const auto nested = [](int depth) {
    return R"({"step": 1, "x": )" + std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']') + "}";
  };
  EXPECT_EQ(broken(nested(7)), 0);
  EXPECT_EQ(broken(nested(8)), 1);
  const std::string start = R"({"step": 1, "x": ")", end = "\"}";
  const size_t room = (1 << 20) - start.size() - end.size();
  EXPECT_EQ(broken(start + std::string(room, 'a') + end), 0);
  EXPECT_EQ(broken(start + std::string(room + 1, 'a') + end), 1);
  EXPECT_EQ(metrics_text(Json{{"a", 1}}, "a", "else"), "else");
  EXPECT_EQ(metrics_text(Json{{"a", "b"}}, "a", "else"), "b");
}

}  // namespace
}  // namespace vitrail
