// What all groups of one set of rank threads share: the bell that wakes each rank, and the abort that ends
// every wait. Knows no collectives.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

namespace vitrail::threads {

// A rank sleeps on its own bell; whoever brings news for it rings.
class Bell {
 public:
  uint32_t heard() const { return rings_.load(); }
  void ring();
  // Returns when it has rung since `heard`: spins for a while, then sleeps.
  void wait(uint32_t heard, std::chrono::microseconds spin) const;

 private:
  alignas(64) std::atomic<uint32_t> rings_{0};  // 32 bits can be waited on directly
};

// How long a rank that waits spins before it sleeps, of so many ranks on so many cores.
std::chrono::microseconds spin_of(int ranks, unsigned cores);

class World {
 public:
  explicit World(int size);

  Bell& bell(int rank) { return bells_[static_cast<size_t>(rank)]; }
  // Returns when the rank's bell has rung since `heard`.
  void wait(int rank, uint32_t heard) { bell(rank).wait(heard, spin_); }
  // The first text stays. May be called from any thread.
  void abort(const std::string& why);
  const std::atomic<bool>& aborted_flag() const { return aborted_; }
  std::string failure() const;  // that text; empty: nobody has
  // Throws Error(kComm) with the text given to abort().
  void throw_if_aborted() const;

 private:
  std::deque<Bell> bells_;          // by rank
  std::chrono::microseconds spin_;  // before a rank that waits sleeps
  mutable std::mutex mutex_;
  std::string why_;
  std::atomic<bool> aborted_{false};
};

}  // namespace vitrail::threads
