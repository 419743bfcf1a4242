// Plays a step on SimGrid, message by message: the oracle of src/simulate, which has closed forms instead.
//   simgrid_oracle TOPOLOGY HOSTS LEAF OVERSUBSCRIPTION LATENCY_S HOP_S BYTES_PER_S DEVICES < TASKS
// Tasks, one a line; all hosts run the same, or each stage those behind its own line "stage", as many hosts
// each:
//   compute SECONDS
//   KIND ALGORITHM BYTES STARTED SLOT STRIDE RANKS WITHIN,WITHIN,...
//   send BYTES STARTED SLOT STAGE CHANNEL, and receive alike
//   wait SLOT
// Prints the simulated seconds until the last host has ended.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "platforms.h"

namespace {

using oracle::join_bus;
using oracle::join_rails;
using oracle::join_ring;
using oracle::join_tree;
using oracle::Platform;
namespace sg4 = oracle::sg4;

struct Task {
  std::string kind, algorithm;
  double seconds = 0, bytes = 0;
  int started = 0, slot = 0, stride = 1, ranks = 1;
  int stage = 0, channel = 0;  // of a pair
  std::vector<int> within;

  bool is_pair() const { return kind == "send" || kind == "receive"; }
};
using Tasks = std::vector<Task>;

// The tasks of each stage; without stages one list.
std::vector<Tasks> read_tasks() {
  std::vector<Tasks> stages;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    Task task;
    std::string within;
    in >> task.kind;
    if (task.kind == "stage" || stages.empty()) stages.emplace_back();
    if (task.kind == "stage") continue;
    if (task.is_pair())
      in >> task.bytes >> task.started >> task.slot >> task.stage >> task.channel;
    else if (task.kind == "compute")
      in >> task.seconds;
    else if (task.kind == "wait")
      in >> task.slot;
    else
      in >> task.algorithm >> task.bytes >> task.started >> task.slot >> task.stride >> task.ranks >> within;
    std::istringstream list(within);
    for (std::string one; std::getline(list, one, ',');) task.within.push_back(std::stoi(one));
    stages.back().push_back(task);
  }
  return stages;
}

// The messages of one rank in one collective.
class Collective {
 public:
  Collective(const Task& task, int rank, int number) : task_(task), rank_(rank), number_(number) {
    place_ = rank / task.stride % task.ranks;
    first_ = rank - place_ * task.stride;
  }

  void run() {
    const bool all = task_.kind == "all_reduce";
    if (task_.kind == "all_to_all") {
      exchange();
    } else {
      if (all || task_.kind == "reduce_scatter") pass(false);
      if (all || task_.kind == "all_gather") pass(true);
    }
    for (const sg4::CommPtr& sent : sent_) sent->wait();
  }

 private:
  void send(int place, double bytes) {
    static int payload = 0;
    const int to = first_ + place * task_.stride;
    sent_.push_back(box(rank_, to)->put_async(&payload, static_cast<uint64_t>(std::max(1.0, bytes))));
  }
  void receive(int place) { box(first_ + place * task_.stride, rank_)->get<int>(); }
  sg4::Mailbox* box(int from, int to) const {
    return sg4::Mailbox::by_name(std::to_string(number_) + ":" + std::to_string(from) + ">" +
                                 std::to_string(to));
  }

  void exchange() {
    const int n = task_.ranks;
    for (int round = 1; round < n; ++round) {
      send((place_ + round) % n, task_.bytes / n);
      receive((place_ - round + n) % n);
    }
  }

  // One way: scatters from the inside out, gathers from the outside in.
  void pass(bool gathers) {
    if (task_.algorithm == "ring") return ring(1, task_.ranks, task_.bytes);
    std::vector<std::pair<int, int>> tiers;  // ranks below, and within
    for (size_t i = 0, below = 1; i < task_.within.size(); below = task_.within[i++])
      if (task_.within[i] > static_cast<int>(below)) tiers.emplace_back(below, task_.within[i]);
    if (gathers) std::reverse(tiers.begin(), tiers.end());
    for (const auto& [below, within] : tiers) {
      const double piece = task_.bytes / below;
      if (task_.algorithm == "tree")
        halve(below, within / below, piece, gathers);
      else
        ring(below, within / below, piece);
    }
  }

  // Among `units` that stand `step` places apart.
  void ring(int step, int units, double piece) {
    const int own = place_ / step % units, base = place_ - own * step;
    // All receives are posted in advance, as the buffers of a transport are.
    std::vector<sg4::CommPtr> coming;
    std::vector<int*> payloads(static_cast<size_t>(units));
    sg4::Mailbox* from = box(first_ + (base + (own + units - 1) % units * step) * task_.stride, rank_);
    for (int round = 0; round + 1 < units; ++round)
      coming.push_back(from->get_async<int>(&payloads[static_cast<size_t>(round)]));
    for (const sg4::CommPtr& one : coming) {
      send(base + (own + 1) % units * step, piece / units);
      one->wait();
    }
  }

  void halve(int step, int units, double piece, bool gathers) {
    const int own = place_ / step % units, base = place_ - own * step;
    std::vector<int> distances;
    for (int distance = 1; distance < units; distance *= 2) distances.push_back(distance);
    if (!gathers) std::reverse(distances.begin(), distances.end());
    for (const int distance : distances) {
      send(base + (own ^ distance) * step, piece * distance / units);
      receive(base + (own ^ distance) * step);
    }
  }

  const Task& task_;
  int rank_, number_, place_ = 0, first_ = 0;
  std::vector<sg4::CommPtr> sent_;
};

// One host: computes on one actor, exchanges on another, in the order of the tasks. Messages of a pair pass
// by themselves.
struct Host {
  int rank = 0, stage = 0, stride = 1;  // `stride`: hosts of a stage
  std::deque<int> begun;
  sg4::SemaphorePtr more = sg4::Semaphore::create(0);
  std::map<int, sg4::SemaphorePtr> done;  // by task
  std::map<std::string, int> passed;      // messages by pair and channel
  int* payload = nullptr;
};

sg4::CommPtr begin_pair(const Task& task, Host& host) {
  const int other = host.rank + (task.stage - host.stage) * host.stride;
  const bool sends = task.kind == "send";
  const std::string pair = "pair" + std::to_string(sends ? host.rank : other) + ">" +
                           std::to_string(sends ? other : host.rank) + ":" + std::to_string(task.channel);
  sg4::Mailbox* box = sg4::Mailbox::by_name(pair + ":" + std::to_string(host.passed[pair]++));
  static int payload = 0;
  return sends ? box->put_async(&payload, static_cast<uint64_t>(task.bytes))
               : box->get_async<int>(&host.payload);
}

void play(const Tasks& tasks, Host& host) {
  std::map<int, int> slots;
  std::map<int, sg4::CommPtr> pairs;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    if (task.kind == "compute") {
      sg4::this_actor::sleep_for(task.seconds);
    } else if (task.is_pair()) {
      const sg4::CommPtr message = begin_pair(task, host);
      if (task.started)
        pairs[task.slot] = message;
      else
        message->wait();
    } else if (task.kind == "wait" && pairs.contains(task.slot)) {
      pairs[task.slot]->wait();
      pairs.erase(task.slot);
    } else if (task.kind == "wait") {
      host.done[slots[task.slot]]->acquire();
    } else {
      const int number = static_cast<int>(i);
      host.begun.push_back(number);
      host.more->release();
      if (task.started)
        slots[task.slot] = number;
      else
        host.done[number]->acquire();
    }
  }
}

// Joins the hosts as the arguments say.
void join(Platform& platform, char** argv) {
  const std::string topology = argv[1];
  const int leaf = std::atoi(argv[3]);
  const double over = std::atof(argv[4]), latency = std::atof(argv[5]), hop = std::atof(argv[6]);
  const bool fat = topology == "fat_tree";
  if (topology == "bus")
    join_bus(platform, latency);
  else if (topology == "ring")
    join_ring(platform, latency);
  else if (topology == "rail")
    join_rails(platform, std::atoi(argv[8]), leaf, over, latency, hop);
  else
    join_tree(platform, leaf, fat, fat ? leaf / over : 1, latency, hop);
}

}  // namespace

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  for (const char* setting : {"network/model:CM02", "network/latency-factor:1", "network/bandwidth-factor:1",
                              "network/weight-S:0", "network/crosstraffic:0", "network/TCP-gamma:1e18"})
    sg4::Engine::set_config(setting);
  if (argc != 9) return 64;
  const int hosts = std::atoi(argv[2]);
  Platform platform(hosts, std::atof(argv[7]));
  join(platform, argv);
  platform.seal();
  const std::vector<Tasks> stages = read_tasks();
  std::vector<Host> state(static_cast<size_t>(hosts));
  for (int h = 0; h < hosts; ++h) {
    Host& host = state[static_cast<size_t>(h)];
    host.rank = h, host.stride = hosts / static_cast<int>(stages.size()), host.stage = h / host.stride;
    const Tasks& tasks = stages[static_cast<size_t>(host.stage)];
    for (size_t i = 0; i < tasks.size(); ++i) host.done[static_cast<int>(i)] = sg4::Semaphore::create(0);
    sg4::Actor::create("compute", platform.hosts()[h], [&tasks, &host] { play(tasks, host); });
    sg4::Actor::create("exchange", platform.hosts()[h], [&tasks, &host, h] {
      sg4::Actor::self()->daemonize();
      for (;;) {
        host.more->acquire();
        const int number = host.begun.front();
        host.begun.pop_front();
        Collective(tasks[static_cast<size_t>(number)], h, number).run();
        host.done[number]->release();
      }
    });
  }
  engine.run();
  std::printf("%.9g\n", sg4::Engine::get_clock());
  return 0;
}
