// A training run from config to report: opens data and model, plans, makes the parts of the run and hands
// them to its loop, then closes what they leave. Prints nothing: hooks report to the caller.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plan/kernel_choice.h"
#include "runtime/rank_context.h"
#include "telemetry/rank_times.h"
#include "telemetry/run_status.h"
#include "train/evaluate.h"
#include "train/train_config.h"

namespace vitrail {

class TrainStep;
struct StepPlan;

struct TrainHooks {
  std::function<void(const TrainStatus&)> step;    // after every update
  std::function<void(const TrainStatus&)> logged;  // when it is also written to the log
  std::function<void(const EvalStatus&)> eval;
  // It is told where the time of updates and of the start went, with several ranks, or where train.breakdown
  // asks for it.
  std::function<void(const TimingStatus&)> timing;
  std::function<void(const StartStatus&)> start;
  std::function<void(const RunEvent&)> event;
  std::function<void(int64_t step)> saved;       // a checkpoint is on the disk
  std::function<void(const std::string&)> note;  // decisions made during set-up
  std::function<bool()> stop;                    // called before every update; true saves and ends
  // Predicts the seconds of an update of so many micro-batches before the first one; 0: not known.
  std::function<double(const StepPlan& plan, int64_t accumulation)> predict;
  std::function<void(TrainStep& step, int64_t made)> disturb;  // after every update, on any rank; for tests
};

enum class ResumeMode {
  kFresh,   // the folder must hold no run
  kNewest,  // from the newest good checkpoint, or from the start when there is none
  kStrict   // from the newest checkpoint, which must be good
};

// The fact of a checkpoint that names TrainPlace::started_in.
inline constexpr const char* kStartedIn = "started_in";

struct TrainPlace {
  std::string folder;
  ResumeMode resume = ResumeMode::kFresh;
  std::string generator;  // "Vitrail 0.2.0", for the report
  // The start of the time that train.max_minutes limits: opening the data counts, too.
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  std::string started_in = {};  // base of relative paths in the config; empty: not recorded
  // The phases of the start that were over before the trainer was made, with their seconds.
  std::vector<std::pair<std::string, double>> phases_before = {};
  bool check_whole = false;  // the first micro-batch is compared with a whole one, node by node
};

struct TrainOutcome {
  bool finished = false;
  std::string reason;  // "all steps done", "no better result in 5 evaluations", "stopped on request"
  int64_t step = 0;
  double best = -1;
  std::optional<EvalResult> last_eval;
  bool reported = false;  // the run's report was written
};

class Trainer {
 public:
  // Runs on the given rank, which must outlive the trainer.
  Trainer(const TrainConfig& config, const TrainPlace& place, const Backend& backend, RankContext& rank,
          TrainHooks hooks);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  TrainOutcome run();

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace vitrail
