#include "simulate/network.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace vitrail {

namespace {
constexpr size_t kMaxNetworkBytes = 1 << 20;
constexpr size_t kMaxLevels = 8;
constexpr const char* kFormat = "vitrail network 1";

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::kData, strf("%s is no network file: %s", path.c_str(), why.c_str()),
              "docs/cluster-simulation.md lists the keys; configs/networks has examples");
}

// A number of a file: where it goes, what it may be, whether it must be there.
template <typename Owner>
struct NumberKey {
  const char* name;
  double Owner::*field;
  double least, most;
  bool required = false;
};

constexpr NumberKey<NetworkLevel> kLevelKeys[] = {
    {"latency_us", &NetworkLevel::latency_us, 0, 1e6, true},
    {"hop_us", &NetworkLevel::hop_us, 0, 1e6},
    {"bandwidth_gbps", &NetworkLevel::bandwidth_gbps, 1e-3, 1e5, true},
    {"links", &NetworkLevel::links, 1, 1024},
    {"joins", &NetworkLevel::joins, 2, 1 << 20},
    {"leaf", &NetworkLevel::leaf, 2, 1 << 20},
    {"oversubscription", &NetworkLevel::oversubscription, 1, 1000},
    {"cpu_gbps", &NetworkLevel::cpu_gbps, 1e-3, 1e5}};

constexpr NumberKey<Network> kNetworkKeys[] = {{"collective_us", &Network::collective_us, 0, 1e6},
                                               {"jitter", &Network::jitter, 0, 1},
                                               {"straggler_share", &Network::straggler_share, 0, 1},
                                               {"straggler_factor", &Network::straggler_factor, 1, 100},
                                               {"mtbf_hours", &Network::mtbf_hours, 1, 1e9},
                                               {"restart_s", &Network::restart_s, 0, 1e6},
                                               {"storage_gbps", &Network::storage_gbps, 1e-3, 1e7}};

// Reads one object of the file, and refuses what it does not know.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string what, const std::string& path)
      : object_(object), what_(std::move(what)), path_(path) {
    if (!object.is_object()) refuse(path, what_ + " is no object");
  }

  std::string text(const char* name, bool required = true) {
    known_.insert(name);
    if (!object_.contains(name)) {
      if (required) refuse(path_, strf("'%s' of %s is missing", name, what_.c_str()));
      return {};
    }
    if (!object_[name].is_string() || object_[name].get<std::string>().empty())
      refuse(path_, strf("'%s' of %s is no text", name, what_.c_str()));
    return shown(object_[name].get<std::string>());
  }

  template <typename Owner>
  void number(const NumberKey<Owner>& key, Owner& owner) {
    known_.insert(key.name);
    if (!object_.contains(key.name)) {
      if (key.required) refuse(path_, strf("'%s' of %s is missing", key.name, what_.c_str()));
      return;
    }
    const Json& value = object_[key.name];
    const double number = value.is_number() ? value.get<double>() : std::nan("");
    if (!(number >= key.least && number <= key.most))
      refuse(path_, strf("'%s' of %s is %s; expected %g to %g", key.name, what_.c_str(),
                         shown(value.dump()).c_str(), key.least, key.most));
    owner.*key.field = number;
  }

  const Json& list(const char* name) {
    known_.insert(name);
    if (!object_.contains(name) || !object_[name].is_array() || object_[name].empty())
      refuse(path_, strf("'%s' is no list of levels", name));
    return object_[name];
  }

  void end() const {
    for (const auto& [key, value] : object_.items())
      if (!known_.contains(key))
        refuse(path_, strf("%s has an unknown key '%s'", what_.c_str(), shown(key).c_str()));
  }

 private:
  const Json& object_;
  std::string what_;
  const std::string& path_;
  std::set<std::string> known_ = {"comment"};
};

void require_whole(double value, const char* key, const std::string& what, const std::string& path) {
  if (value != std::floor(value)) refuse(path, strf("'%s' of %s is no whole number", key, what.c_str()));
}

NetworkLevel read_level(const Json& json, size_t index, size_t count, const std::string& path) {
  const std::string what = strf("level %zu", index);
  ObjectReader reader(json, what, path);
  NetworkLevel level;
  level.name = reader.text("name");
  const std::string topology = reader.text("topology");
  const auto& names = EnumNames<Topology>::names;
  const auto* found = std::find(std::begin(names), std::end(names), topology);
  if (found == std::end(names))
    refuse(path, strf("'topology' of %s is %s; expected switch, ring, tree, fat_tree, rail or bus",
                      what.c_str(), quoted(topology).c_str()));
  level.topology = static_cast<Topology>(found - std::begin(names));
  for (const auto& key : kLevelKeys) reader.number(key, level);
  reader.end();
  require_whole(level.links, "links", what, path);
  require_whole(level.joins, "joins", what, path);
  require_whole(level.leaf, "leaf", what, path);
  if (level.topology == Topology::kRail && index == 0)
    refuse(path, "'topology' of level 0 is rail: rails join the devices of several nodes");
  if (index > 0 && index + 1 < count && level.joins == 0)
    refuse(path,
           strf("'joins' of %s is missing: the last level alone joins all that there are", what.c_str()));
  return level;
}

}  // namespace

std::string find_network(const std::string& name, const std::vector<std::filesystem::path>& places) {
  std::error_code ignored;
  if (name.find('/') != std::string::npos || std::filesystem::exists(name, ignored)) return name;
  for (const std::filesystem::path& place : places)
    if (const auto file = place / (name + ".json"); std::filesystem::is_regular_file(file, ignored))
      return file.string();
  throw Error(ErrorKind::kData, strf("no network %s", quoted(name).c_str()),
              "a file, or the name of one in configs/networks, as dgx-a100");
}

Network read_network(const std::string& path) {
  Json json;
  try {
    json = parse_json(read_file(path, kMaxNetworkBytes), path, {.comments = true});
  } catch (const Error& error) {
    refuse(path, error.message());
  }
  ObjectReader reader(json, "the file", path);
  if (reader.text("format") != kFormat) refuse(path, strf("its format is not '%s'", kFormat));
  Network network;
  network.name = reader.text("name");
  network.source = reader.text("source");
  const Json& levels = reader.list("levels");
  if (levels.size() > kMaxLevels)
    refuse(path, strf("it has %zu levels; expected 1 to %zu", levels.size(), kMaxLevels));
  for (const auto& key : kNetworkKeys) reader.number(key, network);
  reader.end();
  for (size_t i = 0; i < levels.size(); ++i)
    network.levels.push_back(read_level(levels[i], i, levels.size(), path));
  if (network.mtbf_hours > 0 && network.storage_gbps == 0)
    refuse(path, "'mtbf_hours' needs 'storage_gbps': failures are set against the time of a checkpoint");
  return network;
}

nlohmann::ordered_json to_json(const Network& network) {
  nlohmann::ordered_json json = {{"format", kFormat}, {"name", network.name}, {"source", network.source}};
  for (const NetworkLevel& level : network.levels) {
    nlohmann::ordered_json one = {{"name", level.name}, {"topology", enum_name(level.topology)}};
    for (const auto& key : kLevelKeys)
      if (key.required || level.*key.field != NetworkLevel().*key.field) one[key.name] = level.*key.field;
    json["levels"].push_back(one);
  }
  for (const auto& key : kNetworkKeys)
    if (network.*key.field != Network().*key.field) json[key.name] = network.*key.field;
  return json;
}

namespace {

constexpr double kBytesOfGbit = 1e9 / 8;

// Adds the tiers of one level over `children` units of `below` devices.
void add_tiers(const NetworkLevel& level, int64_t below, int64_t children, std::vector<Tier>& tiers) {
  const bool plain = level.topology == Topology::kSwitch || level.topology == Topology::kRing ||
                     level.topology == Topology::kBus;
  Tier tier{level.name,
            plain ? level.topology : Topology::kSwitch,
            below * children,
            level.bandwidth_gbps * kBytesOfGbit * level.links,
            level.latency_us * 1e-6,
            level.cpu_gbps > 0 ? 1 / (level.cpu_gbps * kBytesOfGbit) : 0};
  const auto leaf = static_cast<int64_t>(level.leaf);
  if (plain || leaf == 0 || leaf >= children) return tiers.push_back(tier);
  tier.capacity = below * leaf;
  tiers.push_back(tier);
  // As much goes up from a unit as one child has in a tree, and as all its children have in a fat tree, where
  // one tier of spines joins all leaves.
  const bool tree = level.topology == Topology::kTree;
  if (!tree) tier.bandwidth *= static_cast<double>(leaf) / level.oversubscription;
  for (int64_t joined = leaf; joined < children;) {
    joined = tree ? std::min(joined * leaf, children) : children;
    tier.capacity = below * joined;
    tier.latency += 2 * level.hop_us * 1e-6;
    tier.name = level.name + " above leaves";
    tiers.push_back(tier);
  }
}

// An approximation of the normal distribution's expected largest of `count` draws, after Blom.
double normal_largest(double count) {
  const double p = (count - 0.375) / (count + 0.25);
  if (count <= 1) return 0;
  double low = 0, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return low;
}

}  // namespace

std::vector<Tier> tiers_of(const Network& network, int64_t nodes, int64_t devices) {
  VT_REQUIRE(nodes == 1 || network.levels.size() > 1, ErrorKind::kConfig,
             "%s joins the devices of one node, and there are %lld nodes", network.name.c_str(),
             static_cast<long long>(nodes));
  std::vector<Tier> tiers;
  const NetworkLevel& inside = network.levels[0];
  VT_REQUIRE(inside.joins == 0 || devices <= static_cast<int64_t>(inside.joins), ErrorKind::kConfig,
             "%s joins %.0f devices at most, and a node has %lld", inside.name.c_str(), inside.joins,
             static_cast<long long>(devices));
  if (devices > 1) add_tiers(inside, 1, devices, tiers);
  int64_t below = devices, left = nodes;  // units of so many devices, still to be joined
  for (size_t i = 1; i < network.levels.size() && left > 1; ++i) {
    const auto joins = static_cast<int64_t>(network.levels[i].joins);
    const int64_t children = joins == 0 ? left : std::min(left, joins);
    add_tiers(network.levels[i], below, children, tiers);
    below *= children;
    left = ceil_div(left, children);
  }
  VT_REQUIRE(left == 1, ErrorKind::kConfig, "the levels of %s join %lld devices, and %lld nodes have %lld",
             network.name.c_str(), static_cast<long long>(below), static_cast<long long>(nodes),
             static_cast<long long>(nodes * devices));
  return tiers;
}

double expected_slowest(const Network& network, int64_t devices) {
  const auto count = static_cast<double>(devices);
  const double steady = 1 + network.jitter * normal_largest(count);
  if (network.straggler_share <= 0 || network.straggler_factor <= 1) return steady;
  const double none = std::pow(1 - network.straggler_share, count);
  const double slow = std::max(1.0, count * network.straggler_share);
  const double slowest = network.straggler_factor * (1 + network.jitter * normal_largest(slow));
  return none * steady + (1 - none) * std::max(steady, slowest);
}

}  // namespace vitrail
