// A training run from config to report: opens data and model, plans, makes the parts of the run and hands
// them to its loop, then closes what they leave. Prints nothing: hooks tell the caller.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "plan/kernel_choice.h"
#include "runtime/rank_context.h"
#include "telemetry/run_status.h"
#include "train/evaluate.h"
#include "train/train_config.h"

namespace vitrail {

struct TrainHooks {
  std::function<void(const TrainStatus&)> step;    // after every update
  std::function<void(const TrainStatus&)> logged;  // when it is also written to the log
  std::function<void(const EvalStatus&)> eval;
  std::function<void(const RunEvent&)> event;
  std::function<void(int64_t step)> saved;       // a checkpoint lies on the disk
  std::function<void(const std::string&)> note;  // what was decided while setting up
  std::function<bool()> stop;                    // asked before every update; true saves and ends
};

enum class ResumeMode {
  kFresh,   // the folder must hold no run
  kNewest,  // from the newest good checkpoint, or from the start when there is none
  kStrict   // from the newest checkpoint, which must be good
};

// Its folder among the facts of a checkpoint.
inline constexpr const char* kStartedIn = "started_in";

struct TrainPlace {
  std::string folder;
  ResumeMode resume = ResumeMode::kFresh;
  std::string generator;  // "Vitrail 0.2.0", for the report
  // What train.max_minutes counts from: opening the data takes time too.
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  std::string started_in = {};  // the folder that relative paths of the config start from; empty: not kept
};

struct TrainOutcome {
  bool finished = false;
  std::string reason;  // "all steps done", "no better result in 5 evaluations", "stopped on request"
  int64_t step = 0;
  double best = -1;
  std::optional<EvalResult> last_eval;
};

class Trainer {
 public:
  // Works on the rank it is given, which outlives it.
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
