// One start of a job by `vitrail launch`, from its first process to its last: the watch that its ranks report
// to, the signals that are passed on to them, and the end of all when one of them fails.
#pragma once

#include <functional>

#include "base/stop.h"
#include "dist/liveness/watch.h"
#include "launch/launch_plan.h"
#include "launch/session_folder.h"
#include "train/train_config.h"

namespace vitrail {

struct JobEnd {
  int code = 0;
  std::string reason;                   // one line; empty when the ranks have said it all
  int64_t made = 0;                     // the furthest step that it made; 0: none
  int lost = -1;                        // the rank that ended it; -1: none in particular
  std::vector<std::string> hosts = {};  // of the ranks, as each has named its own; empty: it never came
  liveness::Loss loss = liveness::Loss::kTold;  // of that rank, or of its host
  bool unstarted = false;                       // it ended before its ranks could report
};

class LaunchedJob {
 public:
  LaunchedJob(const LaunchPlan& plan, liveness::WatchSettings settings, const SignalGuard& signals);

  // Returns when nothing of the job is left on this host.
  JobEnd run();

 private:
  JobEnd judged();
  std::string signalled();
  void press(double seconds);
  void sweep();

  const SignalGuard& signals_;
  liveness::Limits limits_;
  liveness::Watch watch_;
  std::string name_;       // of the program that was started
  bool mpi_;               // its ranks are processes of their own
  SessionFolder session_;  // goes after the child
  ChildProcess child_;
  int pressed_ = 0;
};

struct JobSettings {
  liveness::WatchSettings watch;
  int64_t most_restarts = 0;
  bool resumed = false;  // the command says so itself
  double pause_s = 0.5;  // before a restart; 16 times as long after one that made no new step
  // Returns options with which the command goes on with these of its ranks, which may become fewer still;
  // none left: it cannot. Absent: a job goes on with all ranks or not at all.
  std::function<std::vector<std::string>(std::vector<int>& left)> fewer = {};
  std::function<void(const std::string&)> say;    // one line
  std::function<void(const std::string&)> error;  // why a job is started again
};

// Says what is left of a job when a rank, or the host it was on, does not come back.
struct RanksLeft {
  std::vector<int> ranks;  // by their numbers so far, ascending; empty: none
  Hosts hosts;             // as a list, without the one that is gone
};
// `seen` holds the host of each rank as
// the rank itself named it, empty where it never came. With hosts, the whole host of `lost` goes.
RanksLeft ranks_without(int lost, const Hosts& hosts, const std::vector<std::string>& seen);

// Returns the options with which a training run of `was` ranks goes on with those that are `left`, of which
// it may need some fewer still: settings that keep its batch, and the threads of each (`threads`, where it is
// a list).
std::vector<std::string> options_for_fewer(const TrainConfig& config, int was, std::string& threads,
                                           std::vector<int>& left);

// Runs a job to its end. While a rank is lost, and restarts make steps that no start before has made, it is
// started again from its newest checkpoint; where that is allowed, without the host that is gone, or the rank
// that was lost twice.
JobEnd run_job(LaunchRequest request, const JobSettings& settings);

}  // namespace vitrail
