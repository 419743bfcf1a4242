// Plays a step on SimGrid, message by message: the oracle of src/simulate, which has closed forms instead.
//   simgrid_oracle TOPOLOGY HOSTS LEAF OVERSUBSCRIPTION LATENCY_S HOP_S BYTES_PER_S DEVICES < TASKS
// Every host runs the same tasks, one a line:
//   compute SECONDS
//   KIND ALGORITHM BYTES STARTED SLOT STRIDE RANKS WITHIN,WITHIN,...
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
#include <simgrid/s4u.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

namespace {

struct Task {
  std::string kind, algorithm;
  double seconds = 0, bytes = 0;
  int started = 0, slot = 0, stride = 1, ranks = 1;
  std::vector<int> within;
};

std::vector<Task> read_tasks() {
  std::vector<Task> tasks;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    Task task;
    std::string within;
    in >> task.kind;
    if (task.kind == "compute")
      in >> task.seconds;
    else if (task.kind == "wait")
      in >> task.slot;
    else
      in >> task.algorithm >> task.bytes >> task.started >> task.slot >> task.stride >> task.ranks >> within;
    std::istringstream list(within);
    for (std::string one; std::getline(list, one, ',');) task.within.push_back(std::stoi(one));
    tasks.push_back(task);
  }
  return tasks;
}

// Links and routes of a platform; a link that stands for both directions is a pair.
class Platform {
 public:
  Platform(int hosts, double bandwidth) : zone_(sg4::create_full_zone("all")), bandwidth_(bandwidth) {
    for (int i = 0; i < hosts; ++i) hosts_.push_back(zone_->create_host("h" + std::to_string(i), 1e9));
  }

  const sg4::Link* link(const std::string& name, double share, double latency) {
    sg4::Link*& one = links_[name];
    if (!one) one = zone_->create_link(name, bandwidth_ * share)->set_latency(latency)->seal();
    return one;
  }
  void route(int from, int to, const std::vector<const sg4::Link*>& links) {
    std::vector<sg4::LinkInRoute> list;
    for (const sg4::Link* one : links) list.emplace_back(one);
    zone_->add_route(hosts_[from]->get_netpoint(), hosts_[to]->get_netpoint(), nullptr, nullptr, list, false);
  }
  int size() const { return static_cast<int>(hosts_.size()); }
  void seal() { zone_->seal(); }
  const std::vector<sg4::Host*>& hosts() const { return hosts_; }

 private:
  sg4::NetZone* zone_;
  double bandwidth_;
  std::vector<sg4::Host*> hosts_;
  std::map<std::string, sg4::Link*> links_;
};

// Neighbours have a link in each direction; messages take the shorter way.
void join_ring(Platform& platform, double latency) {
  const int n = platform.size();
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b) {
      if (a == b) continue;
      const int ahead = (b - a + n) % n, step = 2 * ahead <= n ? 1 : n - 1;
      std::vector<const sg4::Link*> links;
      for (int at = a; at != b; at = (at + step) % n)
        links.push_back(platform.link((step == 1 ? "f" : "b") + std::to_string(at), 1, latency));
      platform.route(a, b, links);
    }
}

// Hosts, leaves, leaves of leaves: a link up and one down from each unit. `widens` is what a unit's way up
// has more than that of one below it.
void join_tree(Platform& platform, int leaf, bool one_spine, double widens, double latency, double hop) {
  const int n = platform.size();
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b) {
      if (a == b) continue;
      std::vector<const sg4::Link*> up, down;
      double share = 1, late = latency / 2;
      for (int tier = 0, x = a, y = b; x != y; ++tier) {
        const std::string level = std::to_string(tier) + "_";
        up.push_back(platform.link("u" + level + std::to_string(x), share, late));
        down.insert(down.begin(), platform.link("d" + level + std::to_string(y), share, late));
        const int joins = leaf == 0 || (one_spine && tier > 0) ? n : leaf;
        x /= joins, y /= joins, share *= widens, late = hop;
      }
      up.insert(up.end(), down.begin(), down.end());
      platform.route(a, b, up);
    }
}

// Nodes of `devices` on a crossbar, and an adapter for each device. A leaf joins the adapters of one number
// of some nodes, a spine the leaves of that number. A message to another number changes rails in its own
// node.
void join_rails(Platform& platform, int devices, int leaf, double over, double latency, double hop) {
  const auto name = [](const char* what, int a, int b) {
    return what + std::to_string(a) + "_" + std::to_string(b);
  };
  for (int a = 0; a < platform.size(); ++a)
    for (int b = 0; b < platform.size(); ++b) {
      if (a == b) continue;
      const int from = a / devices, to = b / devices, rail = b % devices;
      const int relay = from * devices + rail;  // the device of the sender's node on that rail
      std::vector<const sg4::Link*> links;
      if (a != relay) {
        links.push_back(platform.link("cu" + std::to_string(a), 1, latency / 2));
        links.push_back(platform.link("cd" + std::to_string(relay), 1, latency / 2));
      }
      if (from != to) {
        links.push_back(platform.link("nu" + std::to_string(relay), 1, latency / 2));
        if (from / leaf != to / leaf) {
          links.push_back(platform.link(name("lu", rail, from / leaf), leaf / over, hop));
          links.push_back(platform.link(name("ld", rail, to / leaf), leaf / over, hop));
        }
        links.push_back(platform.link("nd" + std::to_string(b), 1, latency / 2));
      }
      platform.route(a, b, links);
    }
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

// One host: computes on one actor, exchanges on another, in the order of the tasks.
struct Host {
  std::deque<int> begun;
  sg4::SemaphorePtr more = sg4::Semaphore::create(0);
  std::map<int, sg4::SemaphorePtr> done;  // by task
};

void play(const std::vector<Task>& tasks, Host& host) {
  std::map<int, int> slots;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    if (task.kind == "compute") {
      sg4::this_actor::sleep_for(task.seconds);
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

}  // namespace

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  for (const char* setting : {"network/model:CM02", "network/latency-factor:1", "network/bandwidth-factor:1",
                              "network/weight-S:0", "network/crosstraffic:0", "network/TCP-gamma:1e18"})
    sg4::Engine::set_config(setting);
  if (argc != 9) return 64;
  const std::string topology = argv[1];
  const int hosts = std::atoi(argv[2]), leaf = std::atoi(argv[3]);
  const double over = std::atof(argv[4]), latency = std::atof(argv[5]), hop = std::atof(argv[6]);
  Platform platform(hosts, std::atof(argv[7]));
  const bool fat = topology == "fat_tree";
  if (topology == "ring")
    join_ring(platform, latency);
  else if (topology == "rail")
    join_rails(platform, std::atoi(argv[8]), leaf, over, latency, hop);
  else
    join_tree(platform, leaf, fat, fat ? leaf / over : 1, latency, hop);
  platform.seal();
  const std::vector<Task> tasks = read_tasks();
  std::vector<Host> state(static_cast<size_t>(hosts));
  for (int h = 0; h < hosts; ++h) {
    Host& host = state[static_cast<size_t>(h)];
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
