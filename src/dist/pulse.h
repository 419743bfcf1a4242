// Holds what a rank is doing now: its phase, step and node, and its last events. The rank's own thread posts,
// the thread that reports for it reads; posting a node is one store. Knows neither ranks nor sockets.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail {

enum class RankPhase : uint8_t { kInit, kForward, kReduction, kUpdate, kEvaluation, kSave };
const char* to_string(RankPhase phase);  // "reduction"

class Pulse {
 public:
  static constexpr size_t kEvents = 64;

  struct State {
    RankPhase phase = RankPhase::kInit;
    int64_t step = 0;  // the one being made, counted from 1
    int64_t made = 0;  // the furthest that this process has made; 0: none
    const char* node = "";
    uint64_t posts = 0;  // grows with every post
  };
  struct Event {
    double time;  // unix seconds
    RankPhase phase;
    int64_t step;
    const char* node;
    std::string text;  // empty: the phase began
  };

  // The rank's thread calls these.
  void enter(RankPhase phase);
  void begin_step(int64_t step);
  void end_step() { made_.store(std::max(made_.load(), step_.load()), std::memory_order_relaxed); }
  void at_node(const char* name) {
    node_.store(name, std::memory_order_relaxed);
    posts_.store(posts_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  RankPhase phase() const { return phase_.load(std::memory_order_relaxed); }
  // Returns the same name in memory that lasts as long as this object, for at_node().
  const char* keep(std::string_view name);
  // Returns what others had to say since the last call, for the run's log.
  std::vector<std::string> take_log_events();
  // Tests set it, before use, where a rank is to die in a given phase: enter() and begin_step() call it.
  std::function<void(RankPhase phase, int64_t step)> on_enter;

  // Any thread calls these.
  State state() const;
  // The last events, those with the number `since` and after; sets it to the number of the next.
  std::vector<Event> events(uint64_t& since) const;
  void note(const std::string& text);           // one more event
  void add_log_event(const std::string& text);  // an event that the rank's log is told of, too

 private:
  void record(const std::string& text);

  std::atomic<RankPhase> phase_{RankPhase::kInit};
  std::atomic<int64_t> step_{0}, made_{0};
  std::atomic<const char*> node_{""};
  std::atomic<uint64_t> posts_{0};
  std::atomic<bool> has_log_events_{false};
  mutable std::mutex mutex_;  // of what follows
  std::deque<Event> events_;
  uint64_t recorded_ = 0;  // events ever
  std::vector<std::string> log_events_;
  std::set<std::string, std::less<>> names_;
};

// While it lives, the rank is in a phase. Without a pulse it does nothing.
class PhaseScope {
 public:
  PhaseScope(Pulse* pulse, RankPhase phase) : pulse_(pulse), before_(pulse ? pulse->phase() : phase) {
    if (pulse_ && before_ != phase) pulse_->enter(phase);
  }
  ~PhaseScope() {
    if (pulse_ && pulse_->phase() != before_) pulse_->enter(before_);
  }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Pulse* pulse_;
  RankPhase before_;
};

// The phase of a rank that exchanges values with others in the middle of a step; evaluations and saves keep
// their own.
class ReductionScope : PhaseScope {
 public:
  explicit ReductionScope(Pulse* pulse)
      : PhaseScope(pulse && in_step(*pulse) ? pulse : nullptr, RankPhase::kReduction) {}

 private:
  static bool in_step(const Pulse& pulse) {
    return pulse.phase() == RankPhase::kForward || pulse.phase() == RankPhase::kUpdate;
  }
};

}  // namespace vitrail
