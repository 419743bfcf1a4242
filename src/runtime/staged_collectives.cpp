// Collectives of a device's values that pass through page-locked host memory.
#include <deque>

#include "runtime/collective_runners.h"

namespace vitrail {

namespace {

// Returns what one collective needs of page-locked memory. An all-reduce is summed where it arrives.
size_t held_bytes(const Collective& c, const MovedBytes& moved) {
  return c.kind == Collective::Kind::kAllReduce ? moved.in : moved.in + moved.out;
}

// Values of a device pass through page-locked memory, on a stream beside the programs' own: the copies run
// while the device computes, and the host comes in when it has nothing left to enqueue. Collectives that are
// not started take turns in one piece of that memory; each of the others has its own for the life of the
// program.
class StagedCollectives : public CollectiveRunner {
 public:
  explicit StagedCollectives(RankContext& rank)
      : rank_(rank), device_(*rank.hardware), stream_(rank.exchange_stream()) {}

  void add(size_t node, const PlacedCollective& placed) override {
    Communicator& group = rank_.ranks->over(placed.op->form().axes);
    nodes_.emplace(node, std::make_unique<Entry>(device_, placed, group));
  }

  void prepare() override {
    size_t turns = 0;
    for (auto& [node, entry] : nodes_) {
      const size_t bytes = held_bytes(entry->collective, entry->moved);
      if (entry->placed.op->form().started)
        entry->own = Buffer(bytes, Category::kCommunication, device_.host_memory());
      else
        turns = std::max(turns, bytes);
    }
    turns_ = Buffer(turns, Category::kCommunication, device_.host_memory());
    for (auto& [node, entry] : nodes_) entry->use(entry->own.bytes() > 0 ? entry->own : turns_);
  }

  void begin_run(bool) override { collect(); }
  void end_run() override { to_collect_ = true; }
  size_t host_bytes() const override {
    size_t bytes = turns_.bytes();
    for (const auto& [node, entry] : nodes_) bytes += entry->own.bytes();
    return bytes;
  }

  void run(size_t node) override {
    Entry& entry = *nodes_.at(node);
    device_.stream().record(*entry.ready);
    stream_.wait(*entry.ready);
    if (entry.moved.in > 0)
      stream_.download(const_cast<void*>(entry.collective.in), entry.device_in, entry.moved.in);
    stream_.record(*entry.arrived);
    entry.started_s = now_s();
    if (on_their_way_++ == 0) since_s_ = entry.started_s;
    arriving_.push_back(&entry);
    times_of(entry.placed).bytes += entry.sent_bytes;
    ++times_of(entry.placed).count;
    if (!entry.placed.op->form().started) return finish(entry);
    VT_CHECK(started_.emplace(entry.placed.name, &entry).second, "a collective is started twice");
  }

  void wait(ValueId name) override {
    const auto found = started_.find(name);
    VT_CHECK(found != started_.end(), "nothing to wait for was started");
    finish(*found->second);
    started_.erase(found);
  }

  void poll() override {
    while (!arriving_.empty() && arriving_.front()->arrived->reached()) start_next();
    for (auto& [name, entry] : started_)
      if (entry->pending && entry->pending->poll()) complete(*entry);
  }

  CollectiveTimes& times() override {
    collect();
    return times_;
  }

 private:
  struct Entry {
    Entry(Device& device, const PlacedCollective& p, Communicator& g)
        : placed(p),
          group(g),
          collective(collective_of(p, g.rank())),
          moved(bytes_of(collective, g.rank())),
          device_in(collective.in),
          device_out(collective.out),
          sent_bytes(vitrail::sent_bytes(p, g.size())),
          ready(device.create_event()),
          arrived(device.create_event()),
          completed(device.create_event()),
          stall(device) {}
    void use(const Buffer& memory) {
      collective.in = memory.data();
      const bool in_place = collective.kind == Collective::Kind::kAllReduce;
      collective.out = memory.data() + (in_place ? 0 : moved.in);
    }
    PlacedCollective placed;
    Communicator& group;
    Collective collective;  // in page-locked memory
    MovedBytes moved;
    const void* device_in;
    void* device_out;
    double sent_bytes, started_s = 0;
    Buffer own;
    std::unique_ptr<Event> ready, arrived, completed;
    std::unique_ptr<Pending> pending;
    Stall stall;
  };

  // Starts them in the order of the program, which is that of all ranks.
  void start_next() {
    Entry& entry = *arriving_.front();
    arriving_.pop_front();
    entry.pending = entry.group.start(entry.collective);
  }

  void complete(Entry& entry) {
    if (!entry.pending) return;
    entry.pending.reset();
    if (entry.moved.out > 0) stream_.upload(entry.device_out, entry.collective.out, entry.moved.out);
    stream_.record(*entry.completed);
    const double now = now_s();
    times_of(entry.placed).seconds += now - entry.started_s;
    if (--on_their_way_ == 0) times_.flight_s += now - since_s_;
  }

  void finish(Entry& entry) {
    Stream& programs = device_.stream();
    entry.stall.begin(programs);
    while (std::find(arriving_.begin(), arriving_.end(), &entry) != arriving_.end()) {
      arriving_.front()->arrived->synchronize();
      start_next();
    }
    if (entry.pending) entry.pending->wait();
    complete(entry);
    programs.wait(*entry.completed);
    entry.stall.end(programs);
  }

  // Counts as device collectives do: what is not over counts like the next that is.
  void collect() {
    if (!to_collect_) return;
    to_collect_ = false;
    ++uncollected_;
    double exposed = 0;
    for (const auto& [node, entry] : nodes_) {
      const std::optional<double> stall = entry->stall.seconds();
      if (!stall) return;
      exposed += *stall * uncollected_;
    }
    times_.exposed_s += exposed;
    uncollected_ = 0;
  }

  RankContext& rank_;
  Device& device_;
  Stream& stream_;
  Buffer turns_;
  std::map<size_t, std::unique_ptr<Entry>> nodes_;
  std::map<ValueId, Entry*> started_;
  std::deque<Entry*> arriving_;
  bool to_collect_ = false;
  int uncollected_ = 0, on_their_way_ = 0;
  double since_s_ = 0;
};

}  // namespace

std::unique_ptr<CollectiveRunner> staged_collectives(RankContext& rank) {
  return std::make_unique<StagedCollectives>(rank);
}

size_t staged_bytes(const Program& program, const Mesh& mesh) {
  size_t own = 0, turns = 0;
  for (const Node& node : program.nodes) {
    const auto* op = as_collective(*node.op);
    if (!op) continue;
    const ValueId first = node.ins.empty() ? node.outs[0] : node.ins[0];
    const TensorDesc& desc = program.values[first].desc;
    const PlacedCollective placed{op, TensorView(nullptr, desc), TensorView(nullptr, desc), first};
    const int rank = mesh.coordinate(op->form().axes);
    const Collective collective = collective_of(placed, rank);
    const size_t bytes = held_bytes(collective, bytes_of(collective, rank));
    if (op->form().started)
      own += bytes;
    else
      turns = std::max(turns, bytes);
  }
  return own + turns;
}

}  // namespace vitrail
