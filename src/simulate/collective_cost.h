// Computes what a collective costs on a network: where its ranks lie, and the time of each algorithm by
// latency and bandwidth, tier by tier, with what other groups of ranks send at the same moment. It has closed
// forms alone, so that the number of ranks costs nothing. Knows no program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/checked.h"
#include "ops/collective.h"
#include "simulate/network.h"
#include "tensor/mesh.h"

namespace vitrail {

// ring: every rank hands pieces to the next. hierarchical: a ring within each tier, on ever smaller pieces.
// tree: halving and doubling within each tier, in log2 rounds.
enum class Algorithm { kBest, kRing, kHierarchical, kTree };
template <>
struct EnumNames<Algorithm> {
  static constexpr const char* names[] = {"best", "ring", "hierarchical", "tree"};
};

// The ranks of a collective on the tiers: how many of them lie in one unit of each tier. Ranks are numbered
// with tp innermost, and a node holds consecutive ones; groups that differ in the other axes run at once.
struct GroupPlace {
  int64_t ranks = 1;
  std::vector<int64_t> within;  // by tier; the last is `ranks`
  int64_t world = 1;            // devices that take part in the step
  int64_t apart = 0;            // of a pair: its ranks stand so far apart

  int64_t below(size_t tier) const { return tier == 0 ? 1 : within[tier - 1]; }
  int64_t units(size_t tier) const { return ceil_div(within[tier], below(tier)); }
};
GroupPlace place_group(const std::vector<Tier>& tiers, const Mesh& mesh, AxisSet axes);
// Returns the place of two ranks, by their numbers.
GroupPlace place_pair(const std::vector<Tier>& tiers, const Mesh& mesh, int64_t one, int64_t other);

struct CollectiveCost {
  double seconds = 0;
  double cpu_seconds = 0;  // of the ranks' own cores, which compute nothing meanwhile
  Algorithm algorithm = Algorithm::kRing;
};

// `bytes` is the whole: what an all-reduce sums, what a gather leaves, what a scatter or an exchange takes,
// what is sent. Whoever sends or receives is placed as a pair.
CollectiveCost collective_cost(const std::vector<Tier>& tiers, const GroupPlace& group, CollectiveKind kind,
                               double bytes, Algorithm algorithm = Algorithm::kBest);

}  // namespace vitrail
