#include "telemetry/run_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "run_folder.h"
#include "telemetry/run_curves.h"

namespace vitrail {
namespace {

TrainStatus train_at(int64_t step) {
  return {.step = step,
          .epoch = (step - 1) / 4,
          .loss = 10.0 / static_cast<double>(step),
          .lr = 1e-3,
          .grad_norm = 2,
          .images_per_second = 100,
          .interval_s = 2,
          .data_wait_s = 0.5,
          .memory_bytes = 1 << 20,
          .time = 1.7e9};
}

// Steps first..last of four-step epochs, an evaluation and a row at the end of each.
void log_steps(RunLog& log, int64_t first, int64_t last) {
  for (int64_t step = first; step <= last; ++step) {
    log.train(train_at(step));
    if (step % 4 != 0) continue;
    const int64_t epoch = step / 4 - 1;
    log.eval(
        {.step = step, .epoch = epoch, .top1 = 0.5, .top5 = 0.875, .loss = 1.5, .count = 40, .time = 1.7e9});
    log.finish_epoch(epoch, step, 1e-3);
  }
}

std::vector<Json> lines_of(const RunFolder& folder) {
  std::vector<Json> lines;
  for_each_metrics_line(folder.file("metrics.jsonl"), [&](const Json& line) { lines.push_back(line); });
  return lines;
}

TEST(RunLog, LinesHaveTheirKeysAndTheSummaryIsTimms) {
  const RunFolder folder;
  {
    RunLog log(folder.path(), {});
    log_steps(log, 1, 4);
    log.event({"finished", "all done", 4, 1.7e9});
  }
  const auto lines = lines_of(folder);
  ASSERT_EQ(lines.size(), 7u);
  for (const char* key : {"step", "epoch", "loss", "lr", "img_per_s", "grad_norm", "interval_s",
                          "data_wait_s", "memory_bytes", "skipped", "time"})
    EXPECT_TRUE(lines[0].contains(key) && lines[0][key].is_number()) << key;
  EXPECT_EQ(lines[4]["kind"], "eval");
  EXPECT_EQ(lines[4]["top5"], 0.875);
  EXPECT_EQ(lines[4]["weights"], "model");
  EXPECT_EQ(lines[6]["what"], "finished");
  // The mean of 10, 5, 10/3 and 2.5.
  EXPECT_EQ(folder.content("summary.csv"),
            "epoch,train_loss,eval_loss,eval_top1,eval_top5,lr\n0,5.208333333,1.5,50,87.5,0.001\n");
}

TEST(RunLog, NumbersThatAreNoneBecomeNull) {
  const RunFolder folder;
  RunLog log(folder.path(), {.tensorboard = false});
  log.train({.step = 1, .loss = INFINITY, .time = 1});
  log.finish_epoch(0, 1, 0.5);
  const auto lines = lines_of(folder);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0]["loss"].is_null());
  EXPECT_TRUE(std::isnan(metrics_number(lines[0], "loss")));
  EXPECT_TRUE(std::isnan(metrics_number(lines[0], "no such key")));
  EXPECT_NE(folder.content("summary.csv").find("\n0,,,,,0.5\n"), std::string::npos);
}

// A run interrupted anywhere, cut anywhere in its last line, and resumed at any step before leaves the files
// of an uninterrupted run.
TEST(RunLog, AResumedRunLeavesTheFilesOfAnUndisturbedOne) {
  const RunFolder whole;
  {
    RunLog log(whole.path(), {.tensorboard = false});
    log_steps(log, 1, 12);
  }
  for (const int64_t resume : {0, 2, 4, 5, 8, 11}) {
    for (const int64_t torn : {0, 1, 30}) {
      const RunFolder folder;
      {
        RunLog log(folder.path(), {.tensorboard = false});
        log_steps(log, 1, 11);
      }
      const std::string path = folder.file("metrics.jsonl");
      // The last line may only be lost where the run does not resume from it.
      if (resume < 11)
        std::filesystem::resize_file(path, std::filesystem::file_size(path) - static_cast<uint64_t>(torn));
      RunLog log(folder.path(), {.resume_step = resume, .tensorboard = false});
      EXPECT_EQ(log.trimmed().broken, torn > 0 && resume < 11 ? 1 : 0);
      log_steps(log, resume + 1, 12);
      EXPECT_EQ(folder.content("metrics.jsonl"), whole.content("metrics.jsonl")) << resume << " " << torn;
      EXPECT_EQ(folder.content("summary.csv"), whole.content("summary.csv")) << resume << " " << torn;
    }
  }
}

// A life evaluated first, and died before it saved: the next one evaluates again.
TEST(RunLog, AnEvaluationThatIsStillDueHasNoLine) {
  const std::string before =
      "{\"kind\":\"eval\",\"step\":2}\n{\"kind\":\"train\",\"step\":4}\n{\"kind\":\"event\",\"step\":4}\n";
  const std::string due = "{\"kind\":\"eval\",\"step\":4}\n{\"kind\":\"epoch\",\"step\":4,\"epoch\":0}\n";
  for (const bool eval_due : {false, true}) {
    const RunFolder folder;
    std::ofstream(folder.file("metrics.jsonl")) << before << due << "{\"kind\":\"train\",\"step\":5}\n";
    const RunLog log(folder.path(), {.resume_step = 4, .eval_due = eval_due, .tensorboard = false});
    EXPECT_EQ(log.trimmed().undone, eval_due ? 3 : 1);
    EXPECT_EQ(folder.content("metrics.jsonl"), eval_due ? before : before + due);
    EXPECT_EQ(folder.content("summary.csv").find("\n0,") == std::string::npos, eval_due);
  }
}

TEST(RunLog, LinesThatAreNoneArePassedOver) {
  const RunFolder folder;
  const std::string path = folder.file("metrics.jsonl");
  std::ofstream(path) << "{\"kind\":\"train\",\"step\":1}\nnonsense\n[1]\n{\"step\":\"2\"}\n"
                      << std::string(100000, '[')
                      << "\n{\"kind\":5,\"step\":2,\"epoch\":\"x\"}\n{\"step\":3}";
  const TrimResult result = trim_metrics(path, 10, false, nullptr);
  EXPECT_EQ(result.kept, 2);
  EXPECT_EQ(result.broken, 5);
  EXPECT_EQ(folder.content("metrics.jsonl"),
            "{\"kind\":\"train\",\"step\":1}\n{\"kind\":5,\"step\":2,\"epoch\":\"x\"}\n");
  EXPECT_NO_THROW(RunLog(folder.path(), {.resume_step = 2, .tensorboard = false}));
  EXPECT_NO_THROW(read_run_history(path));
}

TEST(RunLog, AFolderThatHoldsALogOrCannotBeWrittenIsRefused) {
  const RunFolder folder;
  {
    RunLog log(folder.path(), {});
    log.train(train_at(1));
  }
  EXPECT_THROW(RunLog(folder.path(), {}), Error);
  EXPECT_THROW(RunLog(folder.file("none"), {}), Error);
  RunLog again(folder.path(), {.resume_step = 0});
  EXPECT_EQ(lines_of(folder).size(), 0u);
  const RunFolder begun;
  std::ofstream(begun.file("metrics.jsonl")) << "";
  RunLog log(begun.path(), {.tensorboard = false});  // an empty file is no log
  log.train(train_at(1));
  log.finish_epoch(0, 1, 0.5);
  EXPECT_NE(begun.content("summary.csv").find("\n0,10,,,,0.5\n"), std::string::npos) << "the mean of one";
}

// Files of this process may not grow past `bytes`, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(RunLog, AFullDiskIsToldOnceAndLeavesWholeLines) {
  const RunFolder folder;
  std::vector<std::string> told;
  RunLog log(folder.path(), {.trouble = [&](const Error& error) {
               EXPECT_EQ(error.kind(), ErrorKind::kWrite);
               told.push_back(error.message());
             }});
  log.train(train_at(1));
  {
    const FileSizeLimit full(folder.content("metrics.jsonl").size() + 20);
    for (int64_t step = 2; step < 6; ++step) log.train(train_at(step));
  }
  log.train(train_at(6));
  const auto lines = lines_of(folder);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["step"], 6);
  EXPECT_EQ(std::count_if(told.begin(), told.end(),
                          [](const std::string& t) { return t.find("metrics.jsonl") != std::string::npos; }),
            1);
  EXPECT_LE(told.size(), 2u);  // the events' file may complain once too
}

TEST(AppendFile, TroubleWithADeviceIsToldOnce) {
  int told = 0;
  AppendFile file("/dev/full", [&](const Error& error) {
    ++told;
    EXPECT_EQ(error.hint(), "free some space");
  });
  EXPECT_FALSE(file.append("a line\n"));
  EXPECT_FALSE(file.append("a line\n"));
  EXPECT_EQ(told, 1);
}

TEST(AppendFile, APipeThatCannotBeFlushedIsNoTrouble) {
  const RunFolder folder;
  const std::string path = folder.file("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  AppendFile file(path, [](const Error& error) { ADD_FAILURE() << error.message(); });
  EXPECT_TRUE(file.append("a line\n"));
  file.sync();
  ::close(reader);
}

// A run that opens its files again and again, as after each rollback, must not run out of descriptors.
TEST(AppendFile, ItsDescriptorIsFreeAgainWhenItGoes) {
  const RunFolder folder;
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = open_files();
  {
    AppendFile file(folder.file("lines"), [](const Error&) {});
    EXPECT_TRUE(file.append("a line\n"));
    EXPECT_EQ(open_files(), before + 1);
  }
  EXPECT_EQ(open_files(), before);
}

TEST(RunHistory, GivesTheReportItsCurvesAndEvents) {
  const RunFolder folder;
  {
    RunLog log(folder.path(), {.tensorboard = false});
    log_steps(log, 1, 8);
    log.eval({.step = 8, .epoch = 1, .top1 = 0.9, .loss = 1, .count = 40, .weights = "ema"});
    log.event({"resume", "at step 8", 8, 5});
  }
  const RunHistory history = read_run_history(folder.file("metrics.jsonl"));
  ASSERT_EQ(history.curves.size(), 6u);
  EXPECT_EQ(history.curves[0].title, "Loss");
  std::vector<std::string> names;
  for (const Series& series : history.curves[1].series) names.push_back(series.name);
  EXPECT_EQ(names, (std::vector<std::string>{"top-1", "top-1 (ema)", "top-5"}));
  EXPECT_DOUBLE_EQ(history.curves[1].series[1].points[0].y, 90);
  EXPECT_DOUBLE_EQ(history.curves[4].series[0].points[0].y, 25);  // 0.5 s of 2 s
  ASSERT_EQ(history.events.size(), 1u);
  EXPECT_EQ(history.events[0].text, "at step 8");
  EXPECT_TRUE(read_run_history(folder.file("none")).curves.empty());
}

}  // namespace
}  // namespace vitrail
