// This process as one of a job's: it reports to the watch of `vitrail launch`, or to that of rank 0 under
// plain mpirun and srun; and its end is told as the job's, by one process alone. A process that is alone does
// none of this.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/stop.h"
#include "dist/liveness/heartbeat.h"
#include "dist/liveness/watch.h"
#include "launch/arrival.h"
#include "train/world.h"

namespace vitrail {

class TrainStep;

// Thrown to end the process with a code and one line or none: another process of the job has told the rest.
struct EndProcess {
  int code = 1;
  std::string last_line = {};
};

struct RankSettings {
  double deadline = 15;  // seconds within which a rank that is lost ends the job
  int ranks = 1;         // threads of this process, where no launcher made it one of several
};

// Returns whether mpirun or srun started this process.
bool started_as_rank();

// Returns what the environment asks to be done to a rank after its updates; empty: nothing. Tests use it.
std::function<void(TrainStep&, int64_t made)> bit_fault(int rank);

class RankSession {
 public:
  // Returns whether this process is one of a job's, or has several ranks itself.
  static bool needed(int64_t ranks);

  // Reports to `vitrail launch` from here on, if that has started this process; if mpirun or srun has, the
  // others have from here on as long to come, until open().
  explicit RankSession(const RankSettings& settings);
  ~RankSession();
  RankSession(const RankSession&) = delete;
  RankSession& operator=(const RankSession&) = delete;

  // Opens the side channel of a job that mpirun or srun has started: rank 0 has the watch.
  void open(World& world);
  const SignalGuard& signals() const { return signals_; }
  liveness::Heartbeat* heartbeat() { return heartbeat_.get(); }

  // Calls `body` and says good-bye. An error of it is told to the other ranks; where theirs was first,
  // EndProcess is thrown in its place.
  void run(const std::function<void()>& body);

 private:
  void open_channel(World& world);
  void start(liveness::HeartbeatSettings settings);
  void set_fault(int rank);
  void told(int code, bool by_others, const std::string& text);
  void leave(double seconds);
  bool speaks(const liveness::Verdict& verdict) const;
  bool is_mine(int rank) const { return rank >= first_ && rank < first_ + count_; }

  SignalGuard signals_;  // before anybody can ask for a stop
  liveness::Limits limits_;
  int first_ = 0, count_ = 1;
  bool launched_ = false;
  std::unique_ptr<Arrival> arrival_;  // under plain mpirun and srun
  std::unique_ptr<liveness::Watch> watch_;
  std::unique_ptr<liveness::Heartbeat> heartbeat_;
  std::atomic<bool> over_{false}, all_left_{false};
  std::thread turns_;  // of the watch
};

}  // namespace vitrail
