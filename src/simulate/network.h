// A network as a file (configs/networks/*.json): the levels that join devices to nodes and nodes to each
// other, with latency, bandwidth and topology, and how steady its devices are. Tiers are the same levels
// flattened for a number of nodes. Knows no mesh and no program.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/enum_names.h"

namespace vitrail {

// switch: every child has links of its own to a crossbar. ring: links to two neighbours alone. tree: switches
// whose way up is no wider than a child's. fat tree: the way up carries all children, divided by the
// oversubscription. rail: a fat tree for each device of a node, so that a leaf joins devices of one number.
// bus: all children share one bandwidth.
enum class Topology { kSwitch, kRing, kTree, kFatTree, kRail, kBus };
template <>
struct EnumNames<Topology> {
  static constexpr const char* names[] = {"switch", "ring", "tree", "fat_tree", "rail", "bus"};
};

// The first level joins the devices of a node, the second nodes, a third what the second joined.
struct NetworkLevel {
  std::string name;
  Topology topology = Topology::kSwitch;
  double latency_us = 0;        // of one message from device to device
  double hop_us = 0;            // more for each further tier of switches, there and back
  double bandwidth_gbps = 0;    // Gbit/s of one link, one way
  double links = 1;             // of a child: a device, or a node with all its adapters
  double joins = 0;             // children; 0: as many as there are
  double leaf = 0;              // children of one switch of a tree, fat tree or rail; 0: all of them
  double oversubscription = 1;  // of the way up from a leaf
  double cpu_gbps = 0;  // rate at which the ranks' own cores move bytes; 0: the devices do it themselves
};

struct Network {
  std::string name, source;  // source: where the numbers come from
  std::vector<NetworkLevel> levels;
  double collective_us = 0;     // to begin a collective, whatever its size
  double jitter = 0;            // relative deviation of a device's time for a step
  double straggler_share = 0;   // of the devices ...
  double straggler_factor = 1;  // ... take so many times as long
  double mtbf_hours = 0;        // of one device; 0: failures are not considered
  double restart_s = 0;         // from a failure to the first step after it
  double storage_gbps = 0;      // Gbit/s at which a checkpoint is written, all nodes together
};

// Returns the network file of that name in `places` ("dgx-a100"), or the name itself where it is a path.
std::string find_network(const std::string& name, const std::vector<std::filesystem::path>& places);
// Throws Error(kData) naming the file, the key and what it may be.
Network read_network(const std::string& path);
nlohmann::ordered_json to_json(const Network& network);

// One step of the way between devices. Units of the tier below, each with its own bandwidth into this one,
// are joined to a unit of `capacity` devices.
struct Tier {
  std::string name;
  Topology topology = Topology::kSwitch;  // switch, ring or bus
  int64_t capacity = 1;                   // devices
  double bandwidth = 0;                   // bytes a second of a unit below, one way; of all of them on a bus
  double latency = 0;                     // seconds of a message that goes no higher
  double cpu = 0;                         // seconds of the ranks' own cores for a byte
};

// The tiers of `nodes` nodes with `devices` each. Throws Error(kConfig) where the levels do not join them.
std::vector<Tier> tiers_of(const Network& network, int64_t nodes, int64_t devices);

// The expected time of the slowest of `devices` for work that takes one of them one second, by jitter and
// stragglers.
double expected_slowest(const Network& network, int64_t devices);

}  // namespace vitrail
