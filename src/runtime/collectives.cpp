#include "runtime/collectives.h"

#include <numeric>
#include <utility>

#include "base/timing.h"

namespace vitrail {

namespace {

double now_s() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// The memory that each rank reads and writes. In place, the parts of all ranks lie in one value.
Collective collective_of(const CollectiveOp& op, const TensorView& in, const TensorView& out, int rank) {
  using Kind = Collective::Kind;
  constexpr Kind kKinds[] = {Kind::kAllReduce, Kind::kReduceScatter, Kind::kAllGather, Kind::kAllToAll};
  const CollectiveOp::Form& form = op.form();
  Collective collective{.kind = kKinds[static_cast<size_t>(form.kind)],
                        .dtype = in.dtype(),
                        .in = in.data(),
                        .out = out.data(),
                        .counts = form.counts};
  if (!form.in_place || form.kind == CollectiveKind::kAllReduce) return collective;
  const size_t before = std::accumulate(form.counts.begin(), form.counts.begin() + rank, size_t{0});
  std::byte* const own = static_cast<std::byte*>(in.data()) + before * size_of(in.dtype());
  if (form.kind == CollectiveKind::kReduceScatter) collective.out = own;
  if (form.kind == CollectiveKind::kAllGather) collective.in = own;
  return collective;
}

// The bytes that a rank reads and writes.
std::pair<size_t, size_t> bytes_of(const Collective& c, int rank) {
  const size_t unit = size_of(c.dtype);
  const auto sum = [&](size_t first, size_t last) {
    size_t elems = 0;
    for (size_t i = first; i < last; ++i) elems += c.counts[i];
    return elems * unit;
  };
  const size_t all = sum(0, c.counts.size()), own = c.counts[static_cast<size_t>(rank) % c.counts.size()] * unit;
  switch (c.kind) {
    case Collective::Kind::kReduceScatter:
      return {all, own};
    case Collective::Kind::kAllGather:
      return {own, all};
    case Collective::Kind::kAllToAll:
      return {sum(0, c.counts.size() / 2), sum(c.counts.size() / 2, c.counts.size())};
    default:
      return {all, all};
  }
}

}  // namespace

double CollectiveTimes::bytes() const {
  double sum = 0;
  for (const Kind& kind : kinds) sum += kind.bytes;
  return sum;
}

void CollectiveTimes::add(const CollectiveTimes& other) {
  exposed_s += other.exposed_s, flight_s += other.flight_s;
  for (size_t i = 0; i < kinds.size(); ++i) {
    kinds[i].count += other.kinds[i].count;
    kinds[i].bytes += other.kinds[i].bytes, kinds[i].seconds += other.kinds[i].seconds;
  }
}

// A device's values are brought to the host first; the download waits for the work before it.
std::unique_ptr<CollectiveRunner::Flight> CollectiveRunner::start(Communicator& group, Collective collective) {
  auto flight = std::make_unique<Flight>();
  flight->started_s = now_s();
  if (on_their_way_++ == 0) since_s_ = flight->started_s;
  Device& device = *rank_.hardware;
  if (!device.shares_host_memory()) {
    const auto [in, out] = bytes_of(collective, group.rank());
    flight->in = Buffer(in, Category::kCommunication, device.host_memory());
    flight->out = Buffer(out, Category::kCommunication, device.host_memory());
    device.download(flight->in.data(), collective.in, in);
    collective.in = flight->in.data();
    flight->target = std::exchange(collective.out, flight->out.data());
  }
  flight->pending = group.start(collective);
  return flight;
}

void CollectiveRunner::run(const CollectiveOp& op, const TensorView& in, const TensorView& out, ValueId name) {
  VT_CHECK(rank_.ranks, "%s in a program of one rank", std::string(op.kind()).c_str());
  Communicator& group = rank_.ranks->over(op.form().axes);
  const double begin = now_s();
  std::unique_ptr<Flight> flight = start(group, collective_of(op, in, out, group.rank()));
  flight->kind = op.form().kind;
  const TensorDesc desc = in.desc();
  CollectiveTimes::Kind& kind = times_.kinds[static_cast<size_t>(flight->kind)];
  kind.bytes += op.bytes_sent({&desc, 1}, group.size());
  ++kind.count;
  if (op.form().started) {
    VT_CHECK(flights_.emplace(name, std::move(flight)).second, "a collective is started twice");
    times_.exposed_s += now_s() - begin;
    return;
  }
  flight->pending->wait();
  land(*flight);
  if (flight->target) rank_.hardware->finish();  // the upload reads the host's bytes
  times_.exposed_s += now_s() - begin;
}

void CollectiveRunner::land(Flight& flight) {
  if (flight.done) return;
  flight.done = true;
  if (flight.target) rank_.hardware->upload(flight.target, flight.out.data(), flight.out.bytes());
  const double now = now_s();
  times_.kinds[static_cast<size_t>(flight.kind)].seconds += now - flight.started_s;
  if (--on_their_way_ == 0) times_.flight_s += now - since_s_;
}

void CollectiveRunner::poll() {
  if (flights_.empty()) return;
  const double begin = now_s();
  for (auto& [name, flight] : flights_)
    if (!flight->done && flight->pending->poll()) land(*flight);
  times_.exposed_s += now_s() - begin;
}

void CollectiveRunner::wait(ValueId name) {
  const auto found = flights_.find(name);
  VT_CHECK(found != flights_.end(), "nothing to wait for was started");
  const double begin = now_s();
  if (!found->second->done) found->second->pending->wait();
  land(*found->second);
  // The upload may still read the host's bytes.
  if (found->second->target) rank_.hardware->finish();
  flights_.erase(found);
  times_.exposed_s += now_s() - begin;
}

}  // namespace vitrail
