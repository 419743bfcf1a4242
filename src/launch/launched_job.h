// One start of a job by `vitrail launch`, from its first process to its last: the watch that its ranks report
// to, the signals that are passed on to them, and the end of all when one of them fails.
#pragma once

#include <functional>

#include "base/stop.h"
#include "dist/liveness/watch.h"
#include "launch/launch_plan.h"

namespace vitrail {

struct JobEnd {
  int code = 0;
  std::string reason;   // one line; empty when the ranks have said it all
  int64_t updates = 0;  // made by the job
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
  std::string name_;  // of the program that was started
  bool mpi_;          // its ranks are processes of their own
  ChildProcess child_;
  int pressed_ = 0;
};

struct JobSettings {
  liveness::WatchSettings watch;
  int64_t most_restarts = 0;
  bool resumed = false;                           // the command says so itself
  std::function<void(const std::string&)> say;    // one line
  std::function<void(const std::string&)> error;  // why a job is started again
};

// Runs a job to its end. While a rank is lost, and restarts make steps, it is started again from its newest
// checkpoint.
JobEnd run_job(LaunchRequest request, const JobSettings& settings);

}  // namespace vitrail
