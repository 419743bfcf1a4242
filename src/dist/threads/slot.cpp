#include "dist/threads/slot.h"

#include <thread>

namespace vitrail::threads {

bool Slot::publish(int party, const Collective& collective) {
  entries_[static_cast<size_t>(party)] = collective;
  order_.push_back(party);
  return published_.fetch_add(1) + 1 == parties();
}

// Either this party sees the failure, or whoever waits for shares after the failure sees this party busy.
bool Slot::begin_share(const std::atomic<bool>& aborted) {
  busy_.fetch_add(1);
  if (!aborted.load() && !failed_.load()) return true;
  busy_.fetch_sub(1);
  return false;
}

bool Slot::end_share() {
  const bool last = done_.fetch_add(1) + 1 == parties();
  busy_.fetch_sub(1);
  return last;
}

void Slot::fail(ErrorKind kind, const std::string& why) {
  if (failed_.load()) return;
  kind_ = kind;
  why_ = why;
  failed_.store(true);
}

void Slot::throw_if_failed() const {
  if (failed_.load()) throw Error(kind_, why_);
}

void Slot::wait_for_shares() const {
  while (busy_.load() != 0) std::this_thread::yield();
}

}  // namespace vitrail::threads
