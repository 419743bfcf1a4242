// Network files at their limits, the tiers of each topology, and what is said of levels that do not join.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "simulate/failures.h"
#include "simulate/network.h"
#include "temp_folder.h"
#include "thrown.h"
#include "working_folder.h"

namespace vitrail {
namespace {

using nlohmann::ordered_json;

ordered_json plain_network() {
  return ordered_json::parse(
      R"({"format": "vitrail network 1", "name": "n", "source": "s", "comment": "any", "levels": [
      {"name": "inside", "topology": "switch", "latency_us": 2, "bandwidth_gbps": 80},
      {"name": "between", "topology": "switch", "latency_us": 5, "bandwidth_gbps": 8}]})");
}

std::string reading(const ordered_json& json) {
  const TempFolder folder;
  const std::string path = folder.file("n.json", json.dump());
  std::string said = thrown_by([&] { read_network(path); });
  if (const size_t at = said.find(path); at != std::string::npos) said.replace(at, path.size(), "FILE");
  return said.substr(0, said.find(" | "));
}

TEST(NetworkLimits, AreMetExactly) {
  struct Limit {
    const char* key;
    double least, below, most, above;
  };
  const Limit of_level[] = {
      {"latency_us", 0, -0.1, 1e6, 1.1e6},        {"hop_us", 0, -0.1, 1e6, 1.1e6},
      {"bandwidth_gbps", 1e-3, 9e-4, 1e5, 1.1e5}, {"links", 1, 0, 1024, 1025},
      {"joins", 2, 1, 1 << 20, (1 << 20) + 1},    {"leaf", 2, 1, 1 << 20, (1 << 20) + 1},
      {"oversubscription", 1, 0.9, 1000, 1001},   {"cpu_gbps", 1e-3, 9e-4, 1e5, 1.1e5}};
  const Limit of_network[] = {{"collective_us", 0, -1, 1e6, 1.1e6},    {"jitter", 0, -0.1, 1, 1.1},
                              {"straggler_share", 0, -0.1, 1, 1.1},    {"straggler_factor", 1, 0.9, 100, 101},
                              {"mtbf_hours", 1, 0.9, 1e9, 1.1e9},      {"restart_s", 0, -1, 1e6, 1.1e6},
                              {"storage_gbps", 1e-3, 9e-4, 1e7, 1.1e7}};
  const auto check = [](const Limit& limit, const auto& with) {
    for (const double value : {limit.least, limit.most})
      EXPECT_EQ(with(value), "nothing") << limit.key << value;
    for (const double value : {limit.below, limit.above})
      EXPECT_NE(with(value).find(strf("; expected %g to %g", limit.least, limit.most)), std::string::npos)
          << with(value);
  };
  for (const Limit& limit : of_level)
    check(limit, [&](double value) {
      ordered_json json = plain_network();
      json["levels"][1][limit.key] = value;
      return reading(json);
    });
  for (const Limit& limit : of_network)
    check(limit, [&](double value) {
      ordered_json json = plain_network();
      json["storage_gbps"] = 1;
      json[limit.key] = value;
      return reading(json);
    });
}

TEST(NetworkLimits, RulesBetweenKeys) {
  const auto changed = [](const char* pointer, const ordered_json& value) {
    ordered_json json = plain_network();
    json[ordered_json::json_pointer(pointer)] = value;
    return reading(json);
  };
  const std::string start = "data: FILE is no network file: ";
  EXPECT_EQ(changed("/levels/1/links", 1.5), start + "'links' of level 1 is no whole number");
  EXPECT_EQ(changed("/levels/1/joins", 2.5), start + "'joins' of level 1 is no whole number");
  EXPECT_EQ(changed("/levels/1/leaf", 2.5), start + "'leaf' of level 1 is no whole number");
  EXPECT_EQ(changed("/levels/1/topology", "rail"), "nothing");
  EXPECT_EQ(changed("/levels/0/topology", "rail"),
            start + "'topology' of level 0 is rail: rails join the devices of several nodes");
  EXPECT_EQ(changed("/mtbf_hours", 5),
            start + "'mtbf_hours' needs 'storage_gbps': failures are set against the time of a checkpoint");
  EXPECT_EQ(changed("/format", "vitrail network 2"), start + "its format is not 'vitrail network 1'");
  EXPECT_EQ(changed("/name", ""), start + "'name' of the file is no text");
  EXPECT_EQ(changed("/levels", ordered_json::array()), start + "'levels' is no list of levels");
  EXPECT_EQ(changed("/levels/0", 5), start + "level 0 is no object");
  EXPECT_EQ(changed("/wrong", 5), start + "the file has an unknown key 'wrong'");
  ordered_json many = plain_network();
  many["levels"][1]["joins"] = 2;
  while (many["levels"].size() < 8) many["levels"].push_back(many["levels"][1]);
  EXPECT_EQ(reading(many), "nothing");
  many["levels"][6].erase("joins");
  EXPECT_EQ(reading(many),
            start + "'joins' of level 6 is missing: the last level alone joins all that there are");
  many["levels"][7].erase("joins"), many["levels"][6]["joins"] = 2;
  EXPECT_EQ(reading(many), "nothing");
  many["levels"].push_back(many["levels"][1]);
  EXPECT_EQ(reading(many), start + "it has 9 levels; expected 1 to 8");
}

TEST(NetworkLimits, FilesMayHoldComments) {
  const TempFolder folder;
  const std::string text = "// measured by hand\n" + plain_network().dump() + " /* and no more */";
  EXPECT_EQ(read_network(folder.file("n.json", text)).name, "n");
}

TEST(NetworkLimits, NamesAreFoundInPlaces) {
  const TempFolder folder;
  const std::string path = folder.file("mine.json", "{}");
  EXPECT_EQ(find_network("mine", {folder.path() / "none", folder.path()}), path);
  EXPECT_EQ(find_network("a/b", {}), "a/b") << "a path is not looked for";
  const WorkingFolder here(folder.path());
  EXPECT_EQ(find_network("mine.json", {}), "mine.json") << "a file of the current folder";
  EXPECT_EQ(thrown_by([&] { find_network("yours", {folder.path()}); }),
            "data: no network \"yours\" | a file, or the name of one in configs/networks, as dgx-a100");
}

Network made_network(Topology topology, double leaf) {
  Network network{.name = "n", .source = "s"};
  network.levels = {{.name = "inside", .latency_us = 2, .bandwidth_gbps = 80, .cpu_gbps = 4},
                    {.name = "between",
                     .topology = topology,
                     .latency_us = 5,
                     .hop_us = 1,
                     .bandwidth_gbps = 8,
                     .links = 2,
                     .leaf = leaf,
                     .oversubscription = 4}};
  return network;
}

// A tree of switches of two over eight nodes has three tiers, each as wide as a child and two hops farther.
TEST(Tiers, OfEveryTopology) {
  const std::vector<Tier> tree = tiers_of(made_network(Topology::kTree, 2), 8, 2);
  ASSERT_EQ(tree.size(), 4u);
  const int64_t capacity[] = {2, 4, 8, 16};
  const double latency[] = {2e-6, 5e-6, 7e-6, 9e-6};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(tree[i].capacity, capacity[i]) << i;
    EXPECT_DOUBLE_EQ(tree[i].latency, latency[i]) << i;
    EXPECT_DOUBLE_EQ(tree[i].bandwidth, i == 0 ? 1e10 : 2e9) << i;
    EXPECT_EQ(tree[i].topology, Topology::kSwitch);
  }
  EXPECT_DOUBLE_EQ(tree[0].cpu, 2e-9);
  EXPECT_EQ(tree[1].cpu, 0);
  EXPECT_EQ(tree[2].name, "between above leaves");
  const std::vector<Tier> rail = tiers_of(made_network(Topology::kRail, 3), 8, 1);
  ASSERT_EQ(rail.size(), 2u) << "one device needs nothing within a node";
  EXPECT_EQ(rail[1].capacity, 8);
  EXPECT_DOUBLE_EQ(rail[1].bandwidth, 2e9 * 3 / 4);
  EXPECT_EQ(tiers_of(made_network(Topology::kFatTree, 8), 8, 1).size(), 1u) << "all lie in one leaf";
  EXPECT_EQ(tiers_of(made_network(Topology::kFatTree, 7), 8, 1).size(), 2u);
  EXPECT_EQ(tiers_of(made_network(Topology::kFatTree, 0), 8, 1).size(), 1u);
  for (const Topology topology : {Topology::kRing, Topology::kBus})
    EXPECT_EQ(tiers_of(made_network(topology, 2), 8, 1).at(0).topology, topology);
}

TEST(Tiers, LevelsMustJoinAll) {
  Network network = made_network(Topology::kSwitch, 0);
  network.levels[0].joins = 4, network.levels[1].joins = 3;
  EXPECT_EQ(thrown_by([&] { tiers_of(network, 3, 4); }), "nothing");
  EXPECT_EQ(thrown_by([&] { tiers_of(network, 1, 5); }),
            "config: inside joins 4 devices at most, and a node has 5");
  EXPECT_EQ(thrown_by([&] { tiers_of(network, 4, 2); }),
            "config: the levels of n join 6 devices, and 4 nodes have 8");
  network.levels.push_back(network.levels[1]);
  EXPECT_EQ(tiers_of(network, 9, 2).back().capacity, 18);
  EXPECT_EQ(tiers_of(network, 4, 2).back().capacity, 12) << "two units of three";
  network.levels.resize(1);
  EXPECT_EQ(thrown_by([&] { tiers_of(network, 2, 2); }),
            "config: n joins the devices of one node, and there are 2 nodes");
}

TEST(Failures, IntervalsByTheirFormulas) {
  const FailureModel model{.mtbf_s = 10000, .checkpoint_s = 50, .restart_s = 100};
  EXPECT_NEAR(daly_interval(model), 1000 * (1 + 0.05 / 3 + 0.0025 / 9) - 50, 1e-9);
  EXPECT_EQ(daly_interval({.mtbf_s = 10, .checkpoint_s = 20}), 10);
  EXPECT_NE(daly_interval({.mtbf_s = 10, .checkpoint_s = 19.9}), 10);
  const double expected = 10000 * std::exp(0.01) * std::expm1((450.0 + 50) / 10000);
  EXPECT_NEAR(effective_share(model, 450), 450 / expected, 1e-12);
  const auto rows = checkpoint_intervals(model, 600);
  ASSERT_EQ(rows.size(), 4u);
  const double seconds[] = {best_interval(model), young_interval(model), daly_interval(model), 600};
  const char* names[] = {"best", "Young", "Daly", "train.save_minutes"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_STREQ(rows[i].name, names[i]);
    EXPECT_EQ(rows[i].seconds, seconds[i]) << names[i];
    EXPECT_EQ(rows[i].share, effective_share(model, seconds[i])) << names[i];
  }
  EXPECT_EQ(checkpoint_intervals(model, 0).size(), 3u);
}

}  // namespace
}  // namespace vitrail
