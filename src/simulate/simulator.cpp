#include "simulate/simulator.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <tuple>

#include "base/error.h"

namespace vitrail {

namespace {

// One collective, from the first rank that begins it to its end.
struct Exchange {
  size_t expected = 0;
  std::vector<int> ranks;  // that have begun it
  double last_arrival = 0;
  double seconds = 0;
  double end = -1;            // not known yet
  double* channel = nullptr;  // of a pair: when its last message has passed
  std::string name;
};

class Simulation {
 public:
  Simulation(const std::vector<SimulatedRank>& ranks, const std::vector<Tier>& tiers,
             const SimulationOptions& options)
      : tiers_(tiers), options_(options) {
    for (const SimulatedRank& rank : ranks) ranks_.push_back({&rank});
    result_.ranks.resize(ranks.size());
  }

  SimulatedStep run() {
    for (bool all_done = false; !all_done;) {
      bool moved = false;
      all_done = true;
      for (size_t r = 0; r < ranks_.size(); ++r) {
        moved = advance(static_cast<int>(r)) || moved;
        all_done = all_done && ranks_[r].run == ranks_[r].in->step->runs.size();
      }
      VT_CHECK(moved || all_done, "the simulated ranks wait for each other");
    }
    for (size_t r = 0; r < ranks_.size(); ++r) {
      result_.ranks[r].step_s = ranks_[r].now;
      result_.step_s = std::max(result_.step_s, ranks_[r].now);
    }
    // Nobody begins the next step before the last has ended this one.
    for (SimulatedTimes& times : result_.ranks) times.waiting_s += result_.step_s - times.step_s;
    return std::move(result_);
  }

 private:
  using Key = std::tuple<unsigned, int, int, int64_t>;  // axes, group, pair and channel, number

  struct Rank {
    const SimulatedRank* in = nullptr;
    size_t run = 0, task = 0;
    int64_t repetition = 0;
    double now = 0, stream_free = 0;
    std::deque<Exchange*> stream = {};  // begun and not resolved, in order
    std::map<int, Exchange*> started = {};
    std::map<std::tuple<unsigned, int>, int64_t> counts = {};
    Exchange* blocked = nullptr;  // the one it waits for
  };

  // Goes on as far as nothing is missing; returns whether it went at all.
  bool advance(int r) {
    Rank& rank = ranks_[static_cast<size_t>(r)];
    bool moved = false;
    for (const auto& runs = rank.in->step->runs; rank.run < runs.size(); moved = true) {
      if (rank.blocked) {
        if (rank.blocked->end < 0) return moved;
        end_wait(r, *rank.blocked);
        rank.blocked = nullptr;
        continue;
      }
      const StepTasks::Run& run = runs[rank.run];
      if (rank.task == run.tasks.size() || run.times == 0) {
        rank.task = 0;
        if (++rank.repetition >= run.times) {
          rank.repetition = 0;
          ++rank.run;
        }
        continue;
      }
      begin(r, run.tasks[rank.task++]);
    }
    return moved;
  }

  void begin(int r, const StepTask& task) {
    Rank& rank = ranks_[static_cast<size_t>(r)];
    SimulatedTimes& times = result_.ranks[static_cast<size_t>(r)];
    if (task.kind == StepTask::Kind::kCompute) {
      const double seconds = task.seconds * options_.slowest;
      note(r, false, task.name, rank.now, rank.now + seconds);
      rank.now += seconds;
      times.compute_s += seconds;
    } else if (task.kind == StepTask::Kind::kWait) {
      const auto found = rank.started.find(task.slot);
      VT_CHECK(found != rank.started.end(), "%s waits for nothing", task.name.c_str());
      rank.blocked = found->second;
      rank.started.erase(found);
    } else {
      exchange(r, task);
    }
  }

  void exchange(int r, const StepTask& task) {
    Rank& rank = ranks_[static_cast<size_t>(r)];
    SimulatedTimes& times = result_.ranks[static_cast<size_t>(r)];
    const CollectiveCost cost = cost_of(rank.in->mesh, task);
    Exchange& one = find(rank, task);
    one.seconds = std::max(cost.seconds, cost.cpu_seconds) + options_.collective_s;
    one.ranks.push_back(r);
    one.last_arrival = std::max(one.last_arrival, rank.now);
    if (one.name.empty()) one.name = task.name;
    times.flight_s += one.seconds;
    if (r == 0) count(task, cost, one.seconds);
    if (!one.channel) rank.stream.push_back(&one);
    note(r, false, task.name, rank.now, rank.now + cost.cpu_seconds);
    rank.now += cost.cpu_seconds;
    times.exposed_s += cost.cpu_seconds;
    if (task.started)
      rank.started[task.slot] = &one;
    else
      rank.blocked = &one;
    resolve(one);
  }

  // Once all have come, and what they began before is over, the end is known.
  void resolve(Exchange& one) {
    if (one.end >= 0 || one.ranks.size() < one.expected) return;
    double begin = one.last_arrival;
    if (one.channel) {
      begin = std::max(begin, *one.channel);
      *one.channel = begin + one.seconds;
    } else {
      for (const int r : one.ranks) {
        const Rank& rank = ranks_[static_cast<size_t>(r)];
        if (rank.stream.front() != &one) return;
        begin = std::max(begin, rank.stream_free);
      }
    }
    one.end = begin + one.seconds;
    for (const int r : one.ranks) note(r, true, one.name, begin, one.end);
    if (one.channel) return;
    for (const int r : one.ranks) {
      Rank& rank = ranks_[static_cast<size_t>(r)];
      rank.stream.pop_front();
      rank.stream_free = one.end;
    }
    for (const int r : one.ranks)
      if (Rank& rank = ranks_[static_cast<size_t>(r)]; !rank.stream.empty()) resolve(*rank.stream.front());
  }

  // The rank stood still from now to the end; until the last rank had come, it waited for that one.
  void end_wait(int r, const Exchange& one) {
    Rank& rank = ranks_[static_cast<size_t>(r)];
    if (one.end <= rank.now) return;
    SimulatedTimes& times = result_.ranks[static_cast<size_t>(r)];
    const double waiting = std::clamp(one.last_arrival - rank.now, 0.0, one.end - rank.now);
    times.waiting_s += waiting;
    times.exposed_s += one.end - rank.now - waiting;
    rank.now = one.end;
  }

  Exchange& find(Rank& rank, const StepTask& task) {
    const Mesh& mesh = rank.in->mesh;
    const bool pair = task.exchange == CollectiveKind::kSend || task.exchange == CollectiveKind::kReceive;
    int way = 0;
    if (pair) {
      const int own = mesh.coordinate(task.axes), size = mesh.size(task.axes);
      const bool sends = task.exchange == CollectiveKind::kSend;
      way = 1 + ((sends ? own : task.peer) * size + (sends ? task.peer : own)) * 2 + task.channel;
    }
    const int group = mesh.group(task.axes);
    const int64_t number = rank.counts[{task.axes.bits(), way}]++;
    Exchange& one = exchanges_[{task.axes.bits(), group, way, number}];
    if (one.expected > 0) return one;
    one.expected = 2;
    if (pair) {
      one.channel = &channels_[{group, way}];
      return one;
    }
    one.expected = static_cast<size_t>(std::count_if(ranks_.begin(), ranks_.end(), [&](const Rank& other) {
      return other.in->mesh.group(task.axes) == group;
    }));
    return one;
  }

  CollectiveCost cost_of(const Mesh& mesh, const StepTask& task) {
    const bool pair = task.exchange == CollectiveKind::kSend || task.exchange == CollectiveKind::kReceive;
    const int stage = mesh.world() / mesh.size(Axis::kPipeline);  // ranks of one
    const int own = pair ? mesh.rank : 0;
    const int other = pair ? own + (task.peer - mesh.coordinate(task.axes)) * stage : 0;
    const auto [known, added] =
        costs_.try_emplace({static_cast<int>(task.exchange), task.axes.bits(), own, other, task.bytes});
    if (!added) return known->second;
    const GroupPlace place =
        pair ? place_pair(tiers_, mesh, own, other) : place_group(tiers_, mesh, task.axes);
    return known->second = collective_cost(tiers_, place, task.exchange, task.bytes, options_.algorithm);
  }

  void count(const StepTask& task, const CollectiveCost& cost, double seconds) {
    ExchangeTimes& times = result_.exchanges[{task.exchange, task.axes.bits()}];
    ++times.count;
    times.bytes += task.bytes;
    times.seconds += seconds;
    if (task.bytes > times.largest) {
      times.largest = task.bytes;
      times.algorithm = cost.algorithm;
    }
  }

  void note(int r, bool exchange, const std::string& name, double begin, double end) {
    if (options_.spans && end > begin) result_.spans.push_back({r, exchange, name, begin, end});
  }

  const std::vector<Tier>& tiers_;
  const SimulationOptions& options_;
  std::vector<Rank> ranks_;
  std::map<Key, Exchange> exchanges_;
  std::map<std::pair<int, int>, double> channels_;
  std::map<std::tuple<int, unsigned, int, int, double>, CollectiveCost> costs_;
  SimulatedStep result_;
};

}  // namespace

SimulatedStep simulate_step(const std::vector<SimulatedRank>& ranks, const std::vector<Tier>& tiers,
                            const SimulationOptions& options) {
  return Simulation(ranks, tiers, options).run();
}

}  // namespace vitrail
