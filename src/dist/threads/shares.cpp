// The share of one rank in a collective among threads: what it copies or sums, and where to.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/thread_pool.h"
#include "dist/threads/slot.h"
#include "dist/transport.h"

namespace vitrail::threads {

namespace {
using Kind = Collective::Kind;
using Counts = std::vector<size_t>;

const char* bytes_at(const void* base, size_t elements, DType dtype) {
  return static_cast<const char*>(base) + elements * size_of(dtype);
}
char* bytes_at(void* base, size_t elements, DType dtype) {
  return static_cast<char*>(base) + elements * size_of(dtype);
}

void copy(void* to, const void* from, size_t count, DType dtype) {
  if (count > 0 && to != from) std::memcpy(to, from, count * size_of(dtype));
}

size_t sum_of(const Counts& counts, size_t first, size_t n) {
  return std::accumulate(counts.begin() + static_cast<ptrdiff_t>(first),
                         counts.begin() + static_cast<ptrdiff_t>(first + n), size_t{0});
}

// Sums elements [first, first + count) of everybody's input into the same elements of `outs`.
void sum_part(const Slot& slot, size_t first, size_t count, std::vector<void*> outs) {
  const DType dtype = slot.entry(0).dtype;
  std::vector<const void*> ins;
  for (const Collective& c : slot.entries()) ins.push_back(bytes_at(c.in, first, dtype));
  sum_ranges(dtype, ins, outs, count);
}

// The same, with the rank's other threads where that is worth waking them; `outs` begin with element `first`.
void sum(const Slot& slot, int party, size_t first, size_t count, const std::vector<void*>& outs) {
  constexpr size_t kWorthATask = 16384;  // elements
  const Collective& own = slot.entry(party);
  const size_t tasks =
      own.pool ? std::min<size_t>(static_cast<size_t>(own.pool->threads()), count / kWorthATask) : 1;
  if (tasks <= 1) return sum_part(slot, first, count, outs);
  own.pool->run(static_cast<int64_t>(tasks), [&](int64_t task, int) {
    const size_t from = count * static_cast<size_t>(task) / tasks,
                 to = count * static_cast<size_t>(task + 1) / tasks;
    std::vector<void*> parts;
    parts.reserve(outs.size());
    for (void* out : outs) parts.push_back(bytes_at(out, from, own.dtype));
    sum_part(slot, first + from, to - from, std::move(parts));
  });
}

// Piece r of every input is read by rank r alone, which is why outputs may be inputs.
void all_reduce(const Slot& slot, int party) {
  const Collective& own = slot.entry(party);
  if (slot.detached()) return sum(slot, party, 0, own.counts[0], {own.out});
  const size_t first = cut_of(own.counts[0], party, slot.parties(), own.dtype);
  const size_t end = cut_of(own.counts[0], party + 1, slot.parties(), own.dtype);
  std::vector<void*> outs;
  for (const Collective& c : slot.entries()) outs.push_back(bytes_at(c.out, first, own.dtype));
  sum(slot, party, first, end - first, outs);
}

void reduce_scatter(const Slot& slot, int party) {
  const Collective& own = slot.entry(party);
  const auto piece = static_cast<size_t>(party);
  sum(slot, party, sum_of(own.counts, 0, piece), own.counts[piece], {own.out});
}

void all_gather(const Slot& slot, int party) {
  const Collective& own = slot.entry(party);
  size_t first = 0;
  for (int r = 0; r < slot.parties(); ++r) {
    const size_t count = own.counts[static_cast<size_t>(r)];
    copy(bytes_at(own.out, first, own.dtype), slot.entry(r).in, count, own.dtype);
    first += count;
  }
}

void all_to_all(const Slot& slot, int party) {
  const Collective& own = slot.entry(party);
  const auto size = static_cast<size_t>(slot.parties()), me = static_cast<size_t>(party);
  size_t first = 0;
  for (size_t r = 0; r < size; ++r) {
    const Collective& from = slot.entry(static_cast<int>(r));
    const size_t count = own.counts[size + r];
    copy(bytes_at(own.out, first, own.dtype), bytes_at(from.in, sum_of(from.counts, 0, me), own.dtype), count,
         own.dtype);
    first += count;
  }
}

void broadcast(const Slot& slot, int party) {
  const Collective &own = slot.entry(party), &root = slot.entry(own.peer);
  if (party != own.peer) copy(own.out, slot.detached() ? root.in : root.out, own.counts[0], own.dtype);
}
}  // namespace

void do_share(const Slot& slot, int party) {
  const Collective& own = slot.entry(party);
  switch (own.kind) {
    case Kind::kAllReduce:
      return all_reduce(slot, party);
    case Kind::kReduceScatter:
      return reduce_scatter(slot, party);
    case Kind::kAllGather:
      return all_gather(slot, party);
    case Kind::kAllToAll:
      return all_to_all(slot, party);
    case Kind::kBroadcast:
      return broadcast(slot, party);
    case Kind::kReceive:  // the sender is party 0
      return copy(own.out, slot.entry(0).in, own.counts[0], own.dtype);
    case Kind::kSend:
    case Kind::kBarrier:
      return;
  }
}

}  // namespace vitrail::threads
