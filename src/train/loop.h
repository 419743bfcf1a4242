// The updates of a run, one after the other, each followed by its line of the log, an evaluation and a
// checkpoint. Knows the order of these; the parts know how each is done and when it is due.
#pragma once

#include "telemetry/rate_meter.h"
#include "train/bad_samples.h"
#include "train/evaluator.h"
#include "train/micro_feed.h"
#include "train/replica_policy.h"
#include "train/skip_policy.h"
#include "train/slow_ranks.h"
#include "train/step_times.h"

namespace vitrail {

// Says what ends a run early: a request of its owner, or a time limit.
struct StopRule {
  const TrainPlace& place;
  const TrainHooks& hooks;
  double max_minutes;

  bool asked() const { return hooks.stop && hooks.stop(); }
  bool out_of_time() const;
  const char* reason() const { return out_of_time() ? "the time limit was reached" : "stopped on request"; }
};

class Loop {
 public:
  // The parts of a run, made and owned by the trainer.
  struct Parts {
    const RunSetup& setup;
    const StopRule& stop;
    const Team& team;
    TrainStep& step;
    MicroFeed& feed;
    Evaluator* evaluator;  // null: no data to evaluate on
    SavePolicy& saves;
    SkipPolicy& skips;
    ReplicaPolicy* replicas;  // null: they are not compared
    RunJournal& journal;
    BadSamples& bad;
    StartTimes& start;
    size_t memory_bytes;  // held by the run, for the log
    UpdateSeconds& seconds;
    // Hears how long an update of each rank's own work takes, once it is known, and of a rank that has become
    // slow; on every rank.
    std::function<void(const std::vector<double>& seconds)> known = {};
    std::function<void()> slowed = {};
  };
  Loop(const Parts& parts, Progress& progress);

  // Runs until all steps are done or the run is ended early. Throws Error(kStopped) when that was during an
  // evaluation.
  void run();
  bool done() const { return last_step() || patience_exhausted(); }
  bool patience_exhausted() const;
  // Returns whether an update of this process has learned from an image.
  bool has_learned() const { return images_ > 0; }
  // Returns whether the time limit may interrupt what goes on: not before an update of this process.
  bool time_is_over() const { return started_ && parts_.stop.out_of_time(); }
  // The updates of this process, those since the last line of the log left out.
  const TimingStatus& timing() const { return times_.total(); }

 private:
  const RunConfig& config() const { return parts_.setup.config.train; }
  bool last_step() const { return progress_.step >= parts_.setup.total_steps; }
  bool epoch_ends() const { return progress_.step % parts_.setup.steps_per_epoch == 0; }
  bool log_due() const { return progress_.step % config().log_every == 0 || last_step(); }
  double rate_at(int64_t step) const;
  void one_update();
  void begin_update();
  void conclude_update(double& loss, bool skipped, double data_wait_s);
  void agree(double& loss, bool skipped, const StepTimes::Numbers* mine);
  void require_learned(bool ends) const;
  bool eval_due() const { return parts_.evaluator && (parts_.evaluator->due(progress_.step) || last_step()); }
  bool compare_due() const;
  bool rolled_back(const StepValues& values);
  void log(const TrainStatus& line);
  void log_start(double first_update_s);
  // Returns whether the log holds where the time went.
  bool times_count() const { return config().breakdown || !parts_.team.alone(); }
  bool is_stopped() const;
  TrainStatus status_of(const StepValues& values, double loss, double lr, double data_wait_s);
  void conclude_step();
  void log_events(Pulse& pulse);
  void watch_speed(std::span<const double> times_of_all);

  Parts parts_;
  Progress& progress_;
  RateMeter meter_;
  StepTimes times_;
  SlowRanks speeds_;
  bool started_ = false;              // the first update is done
  int64_t updates_ = 0, images_ = 0;  // of this process; images that could be read, on all ranks
  // Holds what ranks have agreed on after the last update.
  struct Votes {
    bool asked = false, out_of_time = false, save_time = false, skipped = false;
  } votes_;
};

}  // namespace vitrail
