#include "runtime/collectives.h"

#include <numeric>

#include "runtime/collective_runners.h"

namespace vitrail {

double CollectiveTimes::bytes() const {
  double sum = 0;
  for (const Kind& kind : kinds) sum += kind.bytes;
  return sum;
}

void CollectiveTimes::add(const CollectiveTimes& other) {
  exposed_s += other.exposed_s;
  flight_s += other.flight_s;
  for (size_t i = 0; i < kinds.size(); ++i) {
    kinds[i].count += other.kinds[i].count;
    kinds[i].bytes += other.kinds[i].bytes;
    kinds[i].seconds += other.kinds[i].seconds;
  }
}

Collective collective_of(const PlacedCollective& placed, int rank) {
  using Kind = Collective::Kind;
  constexpr Kind kKinds[] = {Kind::kAllReduce, Kind::kReduceScatter, Kind::kAllGather,
                             Kind::kAllToAll,  Kind::kSend,          Kind::kReceive};
  const CollectiveOp::Form& form = placed.op->form();
  Collective collective{.kind = kKinds[static_cast<size_t>(form.kind)],
                        .dtype = placed.in.dtype(),
                        .in = placed.in.data(),
                        .out = placed.out.data(),
                        .counts = form.counts,
                        .peer = form.peer,
                        .channel = form.channel};
  if (!form.in_place || form.kind == CollectiveKind::kAllReduce) return collective;
  const size_t before = std::accumulate(form.counts.begin(), form.counts.begin() + rank, size_t{0});
  std::byte* const own = static_cast<std::byte*>(placed.in.data()) + before * size_of(placed.in.dtype());
  if (form.kind == CollectiveKind::kReduceScatter) collective.out = own;
  if (form.kind == CollectiveKind::kAllGather) collective.in = own;
  return collective;
}

MovedBytes bytes_of(const Collective& c, int rank) {
  const size_t unit = size_of(c.dtype), half = c.counts.size() / 2;
  const auto sum = [&](size_t first, size_t last) {
    return unit * std::accumulate(c.counts.begin() + static_cast<ptrdiff_t>(first),
                                  c.counts.begin() + static_cast<ptrdiff_t>(last), size_t{0});
  };
  const size_t all = sum(0, c.counts.size());
  switch (c.kind) {
    case Collective::Kind::kReduceScatter:
      return {all, c.counts[static_cast<size_t>(rank)] * unit};
    case Collective::Kind::kAllGather:
      return {c.counts[static_cast<size_t>(rank)] * unit, all};
    case Collective::Kind::kAllToAll:
      return {sum(0, half), sum(half, c.counts.size())};
    case Collective::Kind::kSend:
      return {all, 0};
    case Collective::Kind::kReceive:
      return {0, all};
    default:
      return {all, all};
  }
}

double sent_bytes(const PlacedCollective& placed, int ranks) {
  const TensorDesc desc = placed.in.desc();
  return placed.op->bytes_sent({&desc, 1}, ranks);
}

std::unique_ptr<CollectiveRunner> collective_runner(RankContext& rank) {
  if (rank.ranks && rank.ranks->device_transport()) return device_collectives(rank);
  return !rank.ranks || rank.hardware->shares_host_memory() ? host_collectives(rank)
                                                            : staged_collectives(rank);
}

}  // namespace vitrail
