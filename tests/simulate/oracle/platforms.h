// The platforms that SimGrid plays on: hosts, links and the routes between them, by topology.
#pragma once

#include <map>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace oracle {

namespace sg4 = simgrid::s4u;

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
    list.reserve(links.size());
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

// All messages share one link.
inline void join_bus(Platform& platform, double latency) {
  for (int a = 0; a < platform.size(); ++a)
    for (int b = 0; b < platform.size(); ++b)
      if (a != b) platform.route(a, b, {platform.link("bus", 1, latency)});
}

// Neighbours have a link in each direction; messages take the shorter way.
inline void join_ring(Platform& platform, double latency) {
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
inline void join_tree(Platform& platform, int leaf, bool one_spine, double widens, double latency,
                      double hop) {
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
inline void join_rails(Platform& platform, int devices, int leaf, double over, double latency, double hop) {
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

}  // namespace oracle
