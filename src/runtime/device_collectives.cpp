// Collectives that devices run themselves, on a stream beside the programs' own.
#include <set>
#include <thread>

#include "runtime/collective_runners.h"

namespace vitrail {

namespace {

// Devices exchange values themselves, on a stream beside the programs' own; events order the two, and the
// host never waits but in the first run. There ranks may share a GPU, and a driver that loads a kernel waits
// for all that runs on it: a collective that is waiting for the rank which loads would wait for ever. So in
// the first run, in which kernels are loaded, a collective runs alone: every rank has finished what was
// before it, and begins what follows when all have ended it. Nor are collectives recorded where ranks of one
// process share a GPU: the driver lends the branches of all graphs one set of queues, and a collective at the
// head of a queue may wait for a rank whose work is queued behind it. On streams of their own nothing is.
class DeviceCollectives : public CollectiveRunner {
 public:
  explicit DeviceCollectives(RankContext& rank)
      : rank_(rank), device_(*rank.hardware), stream_(rank.exchange_stream()) {}

  void add(size_t node, const PlacedCollective& placed) override {
    DeviceCommunicator& devices = rank_.ranks->devices_over(placed.op->form().axes);
    groups_.insert(&devices);
    nodes_.emplace(node, std::make_unique<Entry>(device_, placed, devices));
  }

  void begin_run(bool first) override {
    collect();
    first_ = first;
    for (DeviceCommunicator* group : groups_) group->check();
    for (auto& [node, entry] : nodes_) {
      ++times_of(entry->placed).count;
      times_of(entry->placed).bytes += entry->sent_bytes;
    }
  }
  void end_run() override {
    to_collect_ = true;
    first_ = false;
  }
  bool records() const override { return !rank_.shares_queues; }

  void run(size_t node) override {
    Entry& entry = *nodes_.at(node);
    if (first_) synchronize_ranks();
    Stream& programs = device_.stream();
    programs.record(*entry.ready);
    stream_.wait(*entry.ready);
    entry.flight.begin(stream_);
    entry.devices.enqueue(entry.collective, stream_.handle());
    entry.flight.end(stream_);
    stream_.record(*entry.done);
    if (first_) await(entry);
    if (!entry.placed.op->form().started) return join(entry);
    started_[entry.placed.name] = &entry;  // one of a recording that was spoilt may still be there
  }

  void wait(ValueId name) override {
    const auto found = started_.find(name);
    VT_CHECK(found != started_.end(), "nothing to wait for was started");
    join(*found->second);
    started_.erase(found);
  }

  CollectiveTimes& times() override {
    collect();
    return times_;
  }

 private:
  struct Entry {
    Entry(Device& device, const PlacedCollective& p, DeviceCommunicator& d)
        : placed(p),
          devices(d),
          collective(collective_of(p, d.rank())),
          sent_bytes(vitrail::sent_bytes(p, d.size())),
          ready(device.create_event()),
          done(device.create_event()),
          flight(device),
          stall(device) {}
    PlacedCollective placed;
    DeviceCommunicator& devices;
    Collective collective;
    double sent_bytes;
    std::unique_ptr<Event> ready, done;
    Stall flight, stall;  // on the stream of collectives, and of the programs for them
  };

  void join(Entry& entry) {
    Stream& programs = device_.stream();
    entry.stall.begin(programs);
    programs.wait(*entry.done);
    entry.stall.end(programs);
  }

  void synchronize_ranks() {
    device_.finish();
    rank_.ranks->world().barrier();
  }

  // The host waits for the answer, so that silence ends in an error that names the collective.
  void await(Entry& entry) {
    const double begin = now_s();
    while (!entry.done->reached()) {
      entry.devices.check();
      if (now_s() - begin > entry.devices.deadline_s()) {
        const std::string why =
            strf("%s along %s: no answer within %g s", to_string(entry.collective.kind),
                 to_string(entry.placed.op->form().axes).c_str(), entry.devices.deadline_s());
        entry.devices.abort(why);
        throw Error(ErrorKind::kDeadline, why, "NCCL_DEBUG=INFO shows where it waits");
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    synchronize_ranks();
    entry.devices.check();
  }

  // Reads the times of the run that is over. One that is not, as of micro-batches that are enqueued behind
  // each other, counts like the next that is.
  void collect() {
    if (!to_collect_) return;
    to_collect_ = false;
    ++uncollected_;
    CollectiveTimes run;
    for (const auto& [node, entry] : nodes_) {
      const std::optional<double> flight = entry->flight.seconds(), stall = entry->stall.seconds();
      if (!flight || !stall) return;
      run.kinds[static_cast<size_t>(entry->placed.op->form().kind)].seconds += *flight * uncollected_;
      run.flight_s += *flight * uncollected_;
      run.exposed_s += *stall * uncollected_;
    }
    times_.add(run);
    uncollected_ = 0;
  }

  RankContext& rank_;
  Device& device_;
  Stream& stream_;
  std::map<size_t, std::unique_ptr<Entry>> nodes_;
  std::map<ValueId, Entry*> started_;
  std::set<DeviceCommunicator*> groups_;
  bool first_ = false, to_collect_ = false;
  int uncollected_ = 0;  // runs
};

}  // namespace

std::unique_ptr<CollectiveRunner> device_collectives(RankContext& rank) {
  return std::make_unique<DeviceCollectives>(rank);
}

}  // namespace vitrail
