// Holds what all groups of one set of rank threads share: the event count that wakes each rank, and the abort
// that ends every wait. Knows no collectives.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

#include "dist/group_failure.h"

namespace vitrail::threads {

// A rank sleeps on this; whoever has changed something that it waits for notifies it.
class EventCount {
 public:
  uint32_t value() const { return count_.load(); }
  void notify();
  // Returns when its value is no longer `seen`: spins for a while, then sleeps.
  void wait(uint32_t seen, std::chrono::microseconds spin) const;

 private:
  alignas(64) std::atomic<uint32_t> count_{0};  // 32 bits can be waited on directly
};

// Returns how long a rank that waits spins before it sleeps, of so many ranks on so many cores.
std::chrono::microseconds spin_of(int ranks, unsigned cores);

class World {
 public:
  explicit World(int size);

  EventCount& event_count(int rank) { return event_counts_[static_cast<size_t>(rank)]; }
  // Returns when the rank was notified since its value was `seen`.
  void wait(int rank, uint32_t seen) { event_count(rank).wait(seen, spin_); }
  // The first text stays. May be called from any thread.
  void abort(const std::string& why);
  const std::atomic<bool>& aborted_flag() const { return failure_.is_set(); }
  std::string failure() const { return failure_.text(); }  // that text; empty: nobody has
  // Throws Error(kComm) with the text given to abort().
  void throw_if_aborted() const { failure_.throw_if_set(); }

 private:
  std::deque<EventCount> event_counts_;  // by rank
  std::chrono::microseconds spin_;       // before a rank that waits sleeps
  GroupFailure failure_;
};

}  // namespace vitrail::threads
