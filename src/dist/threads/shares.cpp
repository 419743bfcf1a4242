#include <algorithm>
#include <cstring>
#include <numeric>

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

// Sums elements [first, first + count) of everybody's input.
void sum(const Slot& slot, size_t first, size_t count, std::vector<void*> outs) {
  const DType dtype = slot.entry(0).dtype;
  std::vector<const void*> ins;
  for (const Collective& c : slot.entries()) ins.push_back(bytes_at(c.in, first, dtype));
  sum_ranges(dtype, ins, outs, count);
}

// Piece r of every input is read by rank r alone, which is why outputs may be inputs.
void all_reduce(const Slot& slot, int party) {
  const Collective& own = slot.entry(party);
  if (slot.detached()) return sum(slot, 0, own.counts[0], {own.out});
  const size_t first = cut_of(own.counts[0], party, slot.parties(), own.dtype);
  const size_t end = cut_of(own.counts[0], party + 1, slot.parties(), own.dtype);
  std::vector<void*> outs;
  for (const Collective& c : slot.entries()) outs.push_back(bytes_at(c.out, first, own.dtype));
  sum(slot, first, end - first, std::move(outs));
}

void reduce_scatter(const Slot& slot, int party) {
  const Collective& own = slot.entry(party);
  const auto piece = static_cast<size_t>(party);
  sum(slot, sum_of(own.counts, 0, piece), own.counts[piece], {own.out});
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
