#include "cli/train_display.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "telemetry/format.h"
#include "temp_folder.h"

namespace vitrail::cli {
namespace {

using Clock = TrainDisplay::Clock;

TrainStatus sample_status() {
  return {.step = 120,
          .total_steps = 5000,
          .loss = 1.8234,
          .lr = 3e-4,
          .images_per_second = 812,
          .interval_s = 2,
          .data_wait_s = 0.02,
          .eta_s = 723,
          .memory_bytes = 1288490189};
}

TEST(TrainLine, TheLinePeopleKnow) {
  EXPECT_EQ(
      format_train_line(sample_status()),
      "step 120/5,000 2.4 % | loss 1.823 | lr 3.0e-04 | 812 img/s | wait 1 % | mem 1.20 GiB | ETA 12:03");
  TrainStatus status = sample_status();
  status.total_epochs = 10;
  status.epoch = 3;
  status.skipped = 2;
  EXPECT_EQ(
      format_train_line(status),
      "step 120/5,000 2.4 % | loss 1.823 | epoch 4/10 | lr 3.0e-04 | 812 img/s | wait 1 % | mem 1.20 GiB | "
      "2 skipped | ETA 12:03");
  EXPECT_EQ(format_train_line({.step = 7}), "step 7 | loss nan");
}

TEST(TrainLine, Clock) {
  const std::pair<double, const char*> rows[] = {
      {0, "0:00"},   {7.4, "0:07"}, {723, "12:03"},           {11110, "3:05:10"},
      {-1, "?"},     {NAN, "?"},    {184200, "2 d 03:10:00"}, {1e300, "?"},
      {59.6, "1:00"}};
  for (const auto& [seconds, text] : rows) EXPECT_EQ(format_clock(seconds), text);
}

TEST(TrainBar, FitsEveryWidthAndKeepsWhatMatters) {
  for (int width = 1; width < 200; ++width)
    EXPECT_LE(display_width(format_train_bar(sample_status(), width)), static_cast<size_t>(width)) << width;
  EXPECT_EQ(format_train_bar(sample_status(), 199).find("▕"), 0u);
  EXPECT_NE(format_train_bar(sample_status(), 80).find("ETA 12:03"), std::string::npos);
  EXPECT_EQ(format_train_bar(sample_status(), 33), "step 120/5,000 2.4 % | loss 1.823");
}

TEST(EvalLine, SaysWhatWasMeasured) {
  EvalStatus status{.step = 500,
                    .epoch = 1,
                    .top1 = 0.8123,
                    .top5 = 0.981,
                    .loss = 0.6118,
                    .count = 10000,
                    .seconds = 12.34,
                    .best = true};
  EXPECT_EQ(
      format_eval_line(status),
      "eval at step 500, epoch 2: top-1 81.23 %, top-5 98.10 %, loss 0.6118 | 10,000 images in 12.3 s | best "
      "so far");
  status = {.step = 5, .mean_ap = 0.5, .macro_f1 = 0.25, .loss = 1, .count = 1, .weights = "ema"};
  EXPECT_EQ(format_eval_line(status),
            "eval at step 5, epoch 1: mAP 50.00 %, F1 25.00 %, loss 1 | 1 image | ema weights");
}

// Both outputs in files; what was said so far.
struct Screen {
  explicit Screen(ConsoleSettings wanted = {}) : settings(wanted) {
    settings.out_fd = ::open(folder.file("out", "").c_str(), O_WRONLY);
    settings.err_fd = ::open(folder.file("err", "").c_str(), O_WRONLY);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() {
    ::close(settings.out_fd);
    ::close(settings.err_fd);
  }
  std::string read(const char* name) const { return read_file((folder.path() / name).string(), 1 << 20); }
  TempFolder folder;
  ConsoleSettings settings;
};

// A thousand steps of a tenth of a second each.
void run_steps(TrainDisplay& display) {
  for (int step = 1; step <= 1000; ++step) {
    TrainStatus status = sample_status();
    status.step = step;
    display.step(status, Clock::time_point() + std::chrono::milliseconds(100 * step));
  }
}

std::vector<std::string> shown_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t from = 0, end; (end = text.find('\n', from)) != std::string::npos; from = end + 1)
    lines.push_back(text.substr(from, end - from));
  return lines;
}

TEST(TrainDisplay, OneLineEveryTenSecondsTheFirstAndTheLast) {
  Screen screen;
  {
    Console console(screen.settings);
    TrainDisplay display(console);
    run_steps(display);
  }
  const auto lines = shown_lines(screen.read("err"));
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_TRUE(lines.front().starts_with("step 1/5,000 "));
  EXPECT_TRUE(lines[1].starts_with("step 101/5,000 "));
  EXPECT_TRUE(lines.back().starts_with("step 1,000/5,000 "));
  EXPECT_EQ(screen.read("out"), "");
}

TEST(TrainDisplay, ABarOnATerminalAndALastLineUnderIt) {
  ConsoleSettings terminal;
  terminal.err_terminal = true;
  Screen screen(terminal);
  Console console(screen.settings);
  TrainDisplay display(console);
  run_steps(display);
  display.eval({.step = 1000, .top1 = 0.5, .loss = 1, .count = 10});
  display.finish();
  display.finish();
  const std::string text = screen.read("err");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_NE(text.find("▕"), std::string::npos);
  EXPECT_NE(text.find("\r\033[Keval at step 1,000"), std::string::npos);
}

TEST(TrainDisplay, QuietSaysNothing) {
  for (const bool terminal : {false, true}) {
    ConsoleSettings settings;
    settings.quiet = true;
    settings.err_terminal = terminal;
    Screen screen(settings);
    Console console(screen.settings);
    TrainDisplay display(console);
    run_steps(display);
    display.eval({.step = 5});
    display.event({"resume", "at step 5", 5});
    display.finish();
    EXPECT_EQ(screen.read("err"), "");
  }
}

TEST(TrainDisplay, JsonGivesTheMetricsLinesAtOnce) {
  ConsoleSettings settings;
  settings.json = true;
  Screen screen(settings);
  Console console(screen.settings);
  TrainDisplay display(console);
  display.logged(to_json(sample_status()));
  const auto line = nlohmann::json::parse(screen.read("out"));
  EXPECT_EQ(line["kind"], "train");
  EXPECT_EQ(line["step"], 120);
  display.event({"resume", "from \033[31mhere", 5});
  EXPECT_EQ(screen.read("err").find('\033'), std::string::npos);
}

TEST(TrainDisplay, AReaderThatLeftDoesNotEndTheRun) {
  std::signal(SIGPIPE, SIG_IGN);
  ConsoleSettings settings;
  settings.json = true;
  Screen screen(settings);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  ConsoleSettings broken = screen.settings;
  broken.out_fd = ends[1];
  Console console(broken);
  TrainDisplay display(console);
  for (int i = 0; i < 3; ++i) display.logged(to_json(sample_status()));
  EXPECT_EQ(screen.read("err"), "nobody reads stdout any more; training goes on without it\n");
  ::close(ends[1]);
}

}  // namespace
}  // namespace vitrail::cli
