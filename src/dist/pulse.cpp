#include "dist/pulse.h"

#include <utility>

#include "base/timing.h"

namespace vitrail {

const char* to_string(RankPhase phase) {
  constexpr const char* kNames[] = {"init", "forward", "reduction", "update", "evaluation", "save"};
  return kNames[static_cast<size_t>(phase)];
}

void Pulse::record(const std::string& text) {
  events_.push_back({unix_seconds(), phase_.load(), step_.load(), node_.load(), text});
  if (events_.size() > kEvents) events_.pop_front();
  ++recorded_;
}

void Pulse::enter(RankPhase phase) {
  {
    const std::lock_guard lock(mutex_);
    if (phase != RankPhase::kReduction) node_.store("");  // of the phase before
    phase_.store(phase);
    posts_.fetch_add(1);
    record({});
  }
  if (on_enter) on_enter(phase, step_.load());
}

void Pulse::begin_step(int64_t step) {
  step_.store(step);
  enter(RankPhase::kForward);
}

const char* Pulse::keep(std::string_view name) {
  const std::lock_guard lock(mutex_);
  return names_.emplace(name).first->c_str();
}

std::vector<std::string> Pulse::take_log_events() {
  if (!has_log_events_.load(std::memory_order_relaxed)) return {};
  const std::lock_guard lock(mutex_);
  has_log_events_.store(false);
  return std::exchange(log_events_, {});
}

Pulse::State Pulse::state() const {
  return {phase_.load(), step_.load(), made_.load(), node_.load(), posts_.load()};
}

std::vector<Pulse::Event> Pulse::events(uint64_t& since) const {
  const std::lock_guard lock(mutex_);
  const uint64_t first = recorded_ - events_.size();
  const auto skipped = static_cast<std::ptrdiff_t>(since > first ? since - first : 0);
  since = recorded_;
  return {events_.begin() + skipped, events_.end()};
}

void Pulse::note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  record(text);
}

void Pulse::add_log_event(const std::string& text) {
  const std::lock_guard lock(mutex_);
  record(text);
  log_events_.push_back(text);
  has_log_events_.store(true);
}

}  // namespace vitrail
