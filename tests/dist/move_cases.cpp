// Collectives that move elements of any type without changing them.
#include <numeric>

#include "ranks.h"
#include "values.h"

namespace vitrail {

namespace {
using Kind = Collective::Kind;

std::vector<size_t> uneven(int size, size_t base) {
  std::vector<size_t> counts;
  counts.reserve(static_cast<size_t>(size));
  for (int r = 0; r < size; ++r) counts.push_back(r % 3 == 2 ? 0 : base + static_cast<size_t>(r) * 5);
  return counts;
}

void all_gather(Communicator& comm) {
  for (DType dtype : kMoved)
    for (size_t base : kCounts) {
      const std::vector<size_t> counts = uneven(comm.size(), base);
      const size_t all = std::accumulate(counts.begin(), counts.end(), size_t{0});
      Values want(dtype, all), out(dtype, all), placed(dtype, all);
      size_t at = 0, own_first = 0;
      for (int r = 0; r < comm.size(); ++r) {
        if (r == comm.rank()) own_first = at;
        for (size_t i = 0; i < counts[static_cast<size_t>(r)]; ++i) want.set(at++, mixed(i, r));
      }
      const size_t n = counts[static_cast<size_t>(comm.rank())];
      Values in(dtype, n);
      for (size_t i = 0; i < n; ++i)
        in.set(i, mixed(i, comm.rank())), placed.set(own_first + i, mixed(i, comm.rank()));
      comm.run(
          {.kind = Kind::kAllGather, .dtype = dtype, .in = in.data(), .out = out.data(), .counts = counts});
      expect_equal(out, want, "all-gather");
      comm.run({.kind = Kind::kAllGather,
                .dtype = dtype,
                .in = placed.at(own_first),
                .out = placed.data(),
                .counts = counts});
      expect_equal(placed, want, "all-gather in place");
    }
}

// How many elements go from one rank to another: another number for each pair, nothing for some.
size_t pair_count(int from, int to, size_t base) {
  return (from + 2 * to) % 4 == 3 ? 0 : base + static_cast<size_t>(3 * from + to);
}

void all_to_all(Communicator& comm) {
  const int size = comm.size(), me = comm.rank();
  for (DType dtype : kMoved)
    for (size_t base : kCounts) {
      std::vector<size_t> counts;
      counts.reserve(2 * static_cast<size_t>(size));
      for (int r = 0; r < size; ++r) counts.push_back(pair_count(me, r, base));
      for (int r = 0; r < size; ++r) counts.push_back(pair_count(r, me, base));
      Values in(dtype, std::accumulate(counts.begin(), counts.begin() + size, size_t{0}));
      Values out(dtype, std::accumulate(counts.begin() + size, counts.end(), size_t{0})), want = out;
      size_t sent = 0, got = 0;
      for (int r = 0; r < size; ++r) {
        for (size_t i = 0; i < pair_count(me, r, base); ++i) in.set(sent++, mixed(i, me, r));
        for (size_t i = 0; i < pair_count(r, me, base); ++i) want.set(got++, mixed(i, r, me));
      }
      comm.run(
          {.kind = Kind::kAllToAll, .dtype = dtype, .in = in.data(), .out = out.data(), .counts = counts});
      expect_equal(out, want, "all-to-all");
    }
}

void broadcast(Communicator& comm) {
  for (DType dtype : kMoved)
    for (size_t n : kCounts)
      for (int root : {0, comm.size() - 1}) {
        Values want(dtype, n), out(dtype, n);
        for (size_t i = 0; i < n; ++i) want.set(i, mixed(i, root));
        if (comm.rank() == root) out = want;
        comm.run({.kind = Kind::kBroadcast, .dtype = dtype, .out = out.data(), .counts = {n}, .peer = root});
        expect_equal(out, want, "broadcast");
      }
}

// Everyone sends to the next rank and the one before; several between the same two keep their order.
void send_receive(Communicator& comm) {
  const int size = comm.size(), me = comm.rank(), next = (me + 1) % size, last = (me + size - 1) % size;
  if (size == 1) return;
  for (DType dtype : kMoved)
    for (size_t n : kCounts) {
      Values first(dtype, n, me % 8), second(dtype, n, (me + 1) % 8), got_first(dtype, n),
          got_second(dtype, n);
      std::vector<std::unique_ptr<Pending>> pending;
      const auto start = [&](Kind kind, Values& values, int peer) {
        pending.push_back(comm.start({.kind = kind,
                                      .dtype = dtype,
                                      .in = kind == Kind::kSend ? values.data() : nullptr,
                                      .out = kind == Kind::kSend ? nullptr : values.data(),
                                      .counts = {n},
                                      .peer = peer}));
      };
      start(Kind::kSend, first, next), start(Kind::kSend, second, next);
      start(Kind::kReceive, got_first, last), start(Kind::kReceive, got_second, last);
      for (auto& one : pending) one->wait();
      Values want_first(dtype, n, last % 8), want_second(dtype, n, (last + 1) % 8);
      expect_equal(got_first, want_first, "first receive");
      expect_equal(got_second, want_second, "second receive");
    }
}
}  // namespace

std::vector<Case> move_cases() {
  return {{"AllGather", all_gather},
          {"AllToAll", all_to_all},
          {"Broadcast", broadcast},
          {"SendReceive", send_receive}};
}

}  // namespace vitrail
