// Collectives of values in host memory, moved by the ranks' own threads.
#include "runtime/collective_runners.h"

namespace vitrail {

namespace {

// The ranks' own cores move the bytes, since no other thread does: between nodes, and while a rank waits.
class HostCollectives : public CollectiveRunner {
 public:
  explicit HostCollectives(RankContext& rank) : rank_(rank) {}

  void add(size_t node, const PlacedCollective& placed) override { placed_.emplace(node, placed); }

  void run(size_t node) override {
    const PlacedCollective& placed = placed_.at(node);
    Communicator& group = rank_.ranks->over(placed.op->form().axes);
    const double begin = now_s();
    auto flight = std::make_unique<Flight>();
    flight->started_s = begin;
    flight->placed = &placed;
    if (on_their_way_++ == 0) since_s_ = begin;
    Collective collective = collective_of(placed, group.rank());
    collective.pool = &rank_.pool;
    flight->pending = group.start(collective);
    times_of(placed).bytes += sent_bytes(placed, group.size());
    ++times_of(placed).count;
    if (placed.op->form().started) {
      VT_CHECK(flights_.emplace(placed.name, std::move(flight)).second, "a collective is started twice");
    } else {
      flight->pending->wait();
      complete(*flight);
    }
    times_.exposed_s += now_s() - begin;
  }

  void wait(ValueId name) override {
    const auto found = flights_.find(name);
    VT_CHECK(found != flights_.end(), "nothing to wait for was started");
    const double begin = now_s();
    if (!found->second->done) found->second->pending->wait();
    complete(*found->second);
    flights_.erase(found);
    times_.exposed_s += now_s() - begin;
  }

  void poll() override {
    if (flights_.empty()) return;
    const double begin = now_s();
    for (auto& [name, flight] : flights_)
      if (!flight->done && flight->pending->poll()) complete(*flight);
    times_.exposed_s += now_s() - begin;
  }

 private:
  struct Flight {
    std::unique_ptr<Pending> pending;
    const PlacedCollective* placed = nullptr;
    double started_s = 0;
    bool done = false;
  };

  void complete(Flight& flight) {
    if (flight.done) return;
    flight.done = true;
    const double now = now_s();
    times_of(*flight.placed).seconds += now - flight.started_s;
    if (--on_their_way_ == 0) times_.flight_s += now - since_s_;
  }

  RankContext& rank_;
  std::map<size_t, PlacedCollective> placed_;  // by node
  std::map<ValueId, std::unique_ptr<Flight>> flights_;
  int on_their_way_ = 0;
  double since_s_ = 0;  // something was on its way all the time
};

}  // namespace

std::unique_ptr<CollectiveRunner> host_collectives(RankContext& rank) {
  return std::make_unique<HostCollectives>(rank);
}

}  // namespace vitrail
