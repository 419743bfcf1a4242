// The log of a run: metrics.jsonl, summary.csv and TensorBoard events, all three written by one call each. A
// step must be logged before its checkpoint is saved: then a resumed run has every line exactly once. A write
// that fails is reported once and never stops the run.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "telemetry/event_file.h"
#include "telemetry/metrics_file.h"
#include "telemetry/rank_times.h"
#include "telemetry/run_status.h"

namespace vitrail {

struct RunLogOptions {
  // The step whose state was loaded: lines of later steps are dropped. 0 starts a run in a folder that may
  // hold the log of one without any checkpoint; nothing given: the folder must hold no log yet.
  std::optional<int64_t> resume_step;
  // The evaluation of that step comes first; a line of it is of a life that died after it.
  bool eval_due = false;
  bool tensorboard = true;
  WriteTrouble trouble;  // called at each file's first failure
};

class RunLog {
 public:
  // Throws Error(kWrite) when the folder cannot be written to or already holds a log.
  RunLog(const std::string& folder, const RunLogOptions& options);

  void train(const TrainStatus& status);
  void eval(const EvalStatus& status);
  void timing(const TimingStatus& status);
  void start(const StartStatus& status);
  // Writes a row of summary.csv: the mean of the epoch's logged losses and its last evaluation.
  void finish_epoch(int64_t epoch, int64_t step, double lr);
  void event(const RunEvent& event);
  // Flushes to the disk before a checkpoint is saved: then a power failure loses no lines before the
  // checkpoint.
  void sync();
  // Writes to TensorBoard alone.
  void text(const std::string& tag, const std::string& markdown, int64_t step);
  void image(const std::string& tag, const EncodedPng& image, int64_t step);

  const TrimResult& trimmed() const { return trimmed_; }
  static constexpr const char* kSummaryHeader = "epoch,train_loss,eval_loss,eval_top1,eval_top5,lr\n";

 private:
  struct Epoch {
    double loss_sum = 0;
    int64_t losses = 0;
    double eval_loss = kUnknown;
    std::optional<double> top1, top5;
  };

  std::string restore(const std::string& folder, const RunLogOptions& options);
  void remember(const Json& line);
  void write(const nlohmann::ordered_json& line);

  TrimResult trimmed_;
  std::map<int64_t, Epoch> epochs_;  // those not finished yet
  std::unique_ptr<AppendFile> metrics_, summary_;
  std::unique_ptr<EventWriter> events_;
};

}  // namespace vitrail
