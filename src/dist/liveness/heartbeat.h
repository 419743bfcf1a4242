// A process of a job as its watch sees it: one thread reports what each of its ranks is doing, about twenty
// times a second while something changes and once a second otherwise, and is told when the job is to end.
// Then the ranks' exchanges with others fail, and a process that does not end by itself is ended.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dist/communicator.h"
#include "dist/liveness/line_socket.h"
#include "dist/liveness/rank_table.h"
#include "dist/pulse.h"

namespace vitrail::liveness {

struct HeartbeatSettings {
  std::string address;       // of the watch
  int first = 0, count = 1;  // the ranks of this process,
  int ranks = 1;             // of so many in the job
  Limits limits = {};
  int watched_by = -1;                             // the rank whose process has the watch; -1: vitrail launch
  std::function<void(const Verdict&)> force = {};  // ends the process at once; does not return
  std::function<void()> stop = {};                 // the job is asked to save and stop
};

class Heartbeat {
 public:
  explicit Heartbeat(HeartbeatSettings settings);  // throws Error(kComm) when the watch does not answer
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  Pulse& pulse(int rank) { return pulses_.at(static_cast<size_t>(rank - settings_.first)); }
  // The exchanges to fail when the job is to end. Detached before it is destroyed.
  void attach(Communicator* world);
  void detach(Communicator* world);
  void in_folder(const std::string& folder);  // of the run

  // Tells the watch how a rank failed; returns when it knows, or after a second.
  void failed(int rank, int code, bool by_others, const std::string& text);
  // Tells it that the ranks of this process are done.
  void leave();
  // Returns why the job is to end, once that is known; waits for it at most so many seconds.
  std::optional<Verdict> verdict(double seconds = 0);

 private:
  void run();
  void beat();
  Json report_of(size_t local, bool& news);
  void take(const Json& message);
  void lose_watch(bool silent);
  void end(Verdict verdict);
  void say_and_wait(const std::string& line);

  HeartbeatSettings settings_;
  std::deque<Pulse> pulses_;
  struct Seen {
    uint64_t posts = 0, events = 0;
    double since = 0;  // when posts last changed
  };
  std::vector<Seen> seen_;  // by rank of this process
  std::unique_ptr<LineSocket> socket_;
  double last_received_ = 0, last_sent_ = 0;  // when a line came from the watch, and when a report went to it
  std::string host_;

  std::mutex mutex_;  // of what follows, and of sending
  std::condition_variable changed_;
  std::vector<Communicator*> worlds_;
  std::string folder_;
  std::optional<Verdict> verdict_;
  double decided_ = 0;
  int answers_ = 0;
  bool left_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace vitrail::liveness
