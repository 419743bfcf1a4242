#include "dist/threads/world.h"

#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace vitrail::threads {

namespace {
// Waking a thread takes some tens of microseconds, a collective between the blocks of a model not many more.
// Where ranks outnumber cores, whoever is waited for may need the core.
constexpr std::chrono::microseconds kSpin{100}, kCrowdedSpin{4};
constexpr int kChecks = 16;  // of the count, for each look at the clock

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}
}  // namespace

void EventCount::notify() {
  count_.fetch_add(1);
  count_.notify_all();
}

void EventCount::wait(uint32_t seen, std::chrono::microseconds spin) const {
  const auto end = std::chrono::steady_clock::now() + spin;
  do {
    for (int i = 0; i < kChecks; ++i) {
      if (count_.load() != seen) return;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < end);
  count_.wait(seen);
}

std::chrono::microseconds spin_of(int ranks, unsigned cores) {
  return static_cast<unsigned>(ranks) <= cores ? kSpin : kCrowdedSpin;
}

World::World(int size)
    : event_counts_(static_cast<size_t>(size)), spin_(spin_of(size, std::thread::hardware_concurrency())) {}

void World::abort(const std::string& why) {
  failure_.set(why);
  for (EventCount& events : event_counts_) events.notify();
}

}  // namespace vitrail::threads
