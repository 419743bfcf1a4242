#include "dist/threads/slot.h"

#include <cstring>
#include <numeric>
#include <thread>

namespace vitrail::threads {

namespace {
using Kind = Collective::Kind;
constexpr size_t kSmallBytes = 4096;  // below this a second meeting of all would cost more than the copies

// Returns whether every rank may read everything; the counts of these kinds are the same on all ranks.
bool is_small(const Collective& c) {
  if (c.kind == Kind::kAllToAll || c.kind == Kind::kSend || c.kind == Kind::kReceive) return false;
  const size_t count = std::accumulate(c.counts.begin(), c.counts.end(), size_t{0});
  return c.kind == Kind::kBarrier || count * size_of(c.dtype) <= kSmallBytes;
}

// Returns how many bytes of the input a party brings; a broadcast's is the root's output.
size_t brought_bytes(const Collective& c, int party) {
  if (c.kind == Kind::kBarrier || (c.kind == Kind::kBroadcast && c.peer != party)) return 0;
  const size_t count = c.kind == Kind::kAllGather
                           ? c.counts[static_cast<size_t>(party)]
                           : std::accumulate(c.counts.begin(), c.counts.end(), size_t{0});
  return count * size_of(c.dtype);
}
}  // namespace

bool Slot::publish(int party, const Collective& collective) {
  Collective& entry = entries_[static_cast<size_t>(party)];
  entry = collective;
  if (order_.empty() && is_small(collective)) {  // the others agree, or it has failed
    detached_ = true;
    kept_.resize(entries_.size());
  }
  if (detached_ && !failed()) {
    std::vector<char>& kept = kept_[static_cast<size_t>(party)];
    kept.resize(brought_bytes(collective, party));
    if (!kept.empty())
      std::memcpy(kept.data(), collective.kind == Kind::kBroadcast ? collective.out : collective.in,
                  kept.size());
    entry.in = kept.data();
  }
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
