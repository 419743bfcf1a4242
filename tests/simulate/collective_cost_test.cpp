// What collectives cost, worked out by hand on one tier and on two: every algorithm, topology and kind.
#include "simulate/collective_cost.h"

#include <gtest/gtest.h>

namespace vitrail {
namespace {

using Kind = CollectiveKind;

// Four devices, a byte a second and half a second a message.
std::vector<Tier> one_tier(Topology topology) {
  return {{"line", topology, 4, 1, 0.5, 0.25}};
}
// Two nodes of four: 4 bytes a second and a quarter of a second within, 1 and 1 between.
const std::vector<Tier> kNodes = {{"node", Topology::kSwitch, 4, 4, 0.25, 0},
                                  {"net", Topology::kSwitch, 8, 1, 1, 0}};

double cost(const std::vector<Tier>& tiers, const Mesh& mesh, AxisSet axes, Kind kind, double bytes,
            Algorithm algorithm) {
  return collective_cost(tiers, place_group(tiers, mesh, axes), kind, bytes, algorithm).seconds;
}

TEST(CollectiveCost, OnOneTier) {
  const Mesh mesh{{4, 1, 1, 1}, 0};
  struct Row {
    Topology topology;
    Kind kind;
    Algorithm algorithm;
    double seconds;
  };
  const Row rows[] = {{Topology::kSwitch, Kind::kAllGather, Algorithm::kRing, 3 * 2 + 3 * 0.5},
                      {Topology::kSwitch, Kind::kReduceScatter, Algorithm::kHierarchical, 3 * (2 + 0.5)},
                      {Topology::kSwitch, Kind::kAllGather, Algorithm::kTree, (2 + 0.5) + (4 + 0.5)},
                      {Topology::kSwitch, Kind::kAllReduce, Algorithm::kRing, 2 * 7.5},
                      {Topology::kSwitch, Kind::kAllReduce, Algorithm::kTree, 2 * 7},
                      {Topology::kSwitch, Kind::kAllToAll, Algorithm::kBest, 3 * 2 + 3 * 0.5},
                      // Partners two places apart send along two links of a ring, and so do others.
                      {Topology::kRing, Kind::kAllGather, Algorithm::kTree, (2 + 0.5) + 2 * (4 + 0.5)},
                      {Topology::kRing, Kind::kAllGather, Algorithm::kRing, 7.5},
                      {Topology::kRing, Kind::kAllToAll, Algorithm::kBest, 2 + 4 + 2 + 4 * 0.5},
                      {Topology::kBus, Kind::kAllGather, Algorithm::kRing, 4 * 3 * 2 + 1.5},
                      {Topology::kBus, Kind::kAllGather, Algorithm::kTree, 4 * (2 + 4) + 1}};
  for (const Row& row : rows)
    EXPECT_DOUBLE_EQ(cost(one_tier(row.topology), mesh, Axis::kData, row.kind, 8, row.algorithm), row.seconds)
        << enum_name(row.topology) << " " << enum_name(row.algorithm);
}

// Devices that take no part in the step send nothing, and the last round of three partners is no longer than
// the first.
TEST(CollectiveCost, OfFewerThanATierJoins) {
  const Mesh two{{2, 1, 1, 1}, 0}, three{{3, 1, 1, 1}, 0};
  const auto gathered = [](Topology topology, const Mesh& mesh, double bytes, Algorithm algorithm) {
    return cost(one_tier(topology), mesh, Axis::kData, Kind::kAllGather, bytes, algorithm);
  };
  EXPECT_DOUBLE_EQ(gathered(Topology::kBus, two, 8, Algorithm::kRing), 2 * 4 + 0.5);
  EXPECT_DOUBLE_EQ(gathered(Topology::kSwitch, three, 9, Algorithm::kTree), 2 * (3 + 0.5));
}

TEST(CollectiveCost, TheBestIsTaken) {
  const std::vector<Tier> tiers = one_tier(Topology::kSwitch);
  const GroupPlace group = place_group(tiers, Mesh{{4, 1, 1, 1}, 0}, Axis::kData);
  const CollectiveCost best = collective_cost(tiers, group, Kind::kAllReduce, 8);
  EXPECT_EQ(best.algorithm, Algorithm::kTree);
  EXPECT_DOUBLE_EQ(best.seconds, 14);
  EXPECT_EQ(collective_cost(one_tier(Topology::kRing), group, Kind::kAllReduce, 8).algorithm,
            Algorithm::kRing);
  EXPECT_EQ(collective_cost(tiers, group, Kind::kAllReduce, 8, Algorithm::kHierarchical).algorithm,
            Algorithm::kHierarchical);
  EXPECT_EQ(collective_cost({}, group, Kind::kAllReduce, 8).seconds, 0);
  const GroupPlace alone = place_group(tiers, Mesh{{1, 4, 1, 1}, 0}, Axis::kData);
  EXPECT_EQ(collective_cost(tiers, alone, Kind::kAllReduce, 8).seconds, 0);
}

// A quarter of a second of the cores for every byte sent.
TEST(CollectiveCost, CoresMoveWhatARankSends) {
  const std::vector<Tier> tiers = one_tier(Topology::kSwitch);
  const GroupPlace group = place_group(tiers, Mesh{{4, 1, 1, 1}, 0}, Axis::kData);
  const std::pair<Kind, double> rows[] = {
      {Kind::kAllReduce, 3}, {Kind::kAllGather, 1.5}, {Kind::kReduceScatter, 1.5}, {Kind::kAllToAll, 1.5}};
  for (const auto& [kind, seconds] : rows)
    EXPECT_DOUBLE_EQ(collective_cost(tiers, group, kind, 8).cpu_seconds, seconds);
  const GroupPlace pair = place_pair(tiers, Mesh{{4, 1, 1, 1}, 0}, 0, 1);
  EXPECT_DOUBLE_EQ(collective_cost(tiers, pair, Kind::kSend, 8).cpu_seconds, 2);
  EXPECT_DOUBLE_EQ(collective_cost(tiers, pair, Kind::kReceive, 8).seconds, 8.5);
  // Of two tiers the one counts whose bytes cost the cores more.
  const std::vector<Tier> nodes = {{"node", Topology::kSwitch, 2, 4, 0.25, 0.25},
                                   {"net", Topology::kSwitch, 4, 1, 1, 0.125}};
  const GroupPlace all = place_group(nodes, Mesh{{4, 1, 1, 1}, 0}, Axis::kData);
  EXPECT_DOUBLE_EQ(collective_cost(nodes, all, Kind::kAllGather, 8).cpu_seconds, 1.5);
}

TEST(CollectiveCost, OnTwoTiers) {
  const Mesh all{{8, 1, 1, 1}, 0}, both{{2, 4, 1, 1}, 0};
  // The link between the nodes sets the pace of a ring: 2 bytes a round; six short hops and one long, and one
  // long for a short one at the end.
  EXPECT_DOUBLE_EQ(cost(kNodes, all, Axis::kData, Kind::kAllGather, 16, Algorithm::kRing),
                   7 * 2 + 6 * 0.25 + 1 + 0.75);
  // Within a node on the whole, then a quarter of it by each of four at once.
  EXPECT_DOUBLE_EQ(cost(kNodes, all, Axis::kData, Kind::kAllGather, 16, Algorithm::kHierarchical),
                   3 * 1.25 + 1 + 8);
  EXPECT_DOUBLE_EQ(cost(kNodes, all, Axis::kData, Kind::kAllGather, 16, Algorithm::kTree),
                   1.25 + 2.25 + 1 + 8);
  // Rounds in which 1, 2, 3, 4, 3, 2, 1 of a node send 2 bytes each to the other.
  EXPECT_DOUBLE_EQ(cost(kNodes, all, Axis::kData, Kind::kAllToAll, 16, Algorithm::kBest), 32 + 0.75 + 4);
  // Four groups of two share the link.
  EXPECT_DOUBLE_EQ(cost(kNodes, both, Axis::kData, Kind::kAllGather, 16, Algorithm::kRing), 8 * 4 + 1);
  EXPECT_DOUBLE_EQ(cost(kNodes, both, Axis::kTensor, Kind::kAllGather, 16, Algorithm::kRing),
                   3 * 1 + 3 * 0.25);
  const auto pair = [&](int64_t distance) {
    return collective_cost(kNodes, place_pair(kNodes, all, 0, distance), Kind::kSend, 16).seconds;
  };
  EXPECT_DOUBLE_EQ(pair(3), 0.25 + 4);
  EXPECT_DOUBLE_EQ(pair(4), 1 + 64) << "while all four of a node send";
}

TEST(CollectiveCost, GroupsLieWhereTheirRanksAre) {
  const Mesh mesh{{2, 2, 2, 1}, 0};
  const auto within = [&](AxisSet axes) { return place_group(kNodes, mesh, axes).within; };
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(within(Axis::kTensor), (Counts{2, 2}));
  EXPECT_EQ(within(Axis::kSequence), (Counts{2, 2}));
  EXPECT_EQ(within(Axis::kData), (Counts{1, 2}));
  EXPECT_EQ(within(AxisSet(Axis::kData).with(Axis::kTensor)), (Counts{2, 4}));
  const GroupPlace group = place_group(kNodes, mesh, AxisSet(Axis::kData).with(Axis::kTensor));
  EXPECT_EQ(group.ranks, 4);
  EXPECT_EQ(group.world, 8);
  EXPECT_EQ(group.units(0), 2);
  EXPECT_EQ(group.units(1), 2);
  EXPECT_EQ((GroupPlace{.ranks = 5, .within = {3, 5}, .world = 5}.units(1)), 2)
      << "a unit that is not full is one";
}

}  // namespace
}  // namespace vitrail
