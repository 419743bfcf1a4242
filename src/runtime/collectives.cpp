#include "runtime/collectives.h"

#include <numeric>

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

}  // namespace

void CollectiveRunner::run(const CollectiveOp& op, const TensorView& in, const TensorView& out, ValueId name) {
  VT_CHECK(ranks_, "%s in a program of one rank", std::string(op.kind()).c_str());
  Communicator& group = ranks_->over(op.form().axes);
  const double start = now_s();
  Flight flight{group.start(collective_of(op, in, out, group.rank())), start};
  const TensorDesc desc = in.desc();
  times_.bytes += op.bytes_sent({&desc, 1}, group.size());
  ++times_.count;
  if (op.form().started) {
    VT_CHECK(flights_.emplace(name, std::move(flight)).second, "a collective is started twice");
    times_.exposed_s += now_s() - start;
    return;
  }
  flight.pending->wait();
  const double took = now_s() - start;
  times_.exposed_s += took;
  times_.waited_s += took;
  times_.flight_s += took;
}

void CollectiveRunner::land(Flight& flight) {
  if (flight.done) return;
  flight.done = true;
  times_.flight_s += now_s() - flight.started_s;
}

void CollectiveRunner::poll() {
  if (flights_.empty()) return;
  const double start = now_s();
  for (auto& [name, flight] : flights_)
    if (!flight.done && flight.pending->poll()) land(flight);
  times_.exposed_s += now_s() - start;
}

void CollectiveRunner::wait(ValueId name) {
  const auto found = flights_.find(name);
  VT_CHECK(found != flights_.end(), "nothing to wait for was started");
  const double start = now_s();
  if (!found->second.done) found->second.pending->wait();
  land(found->second);
  flights_.erase(found);
  times_.exposed_s += now_s() - start;
  times_.waited_s += now_s() - start;
}

}  // namespace vitrail
