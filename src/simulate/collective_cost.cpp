#include "simulate/collective_cost.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace vitrail {

namespace {

double as_double(int64_t value) {
  return static_cast<double>(value);
}

// The devices of a unit below a tier that take part in the step.
int64_t devices_below(const std::vector<Tier>& tiers, const GroupPlace& group, size_t tier) {
  return tier == 0 ? 1 : std::min(tiers[tier - 1].capacity, group.world);
}

// The bytes a second that one of `senders` messages gets which leave a unit below the tier together. On a bus
// the messages of all units share it.
double bandwidth(const std::vector<Tier>& tiers, const GroupPlace& group, size_t tier, double senders) {
  const double below = as_double(devices_below(tiers, group, tier));
  const double units = as_double(std::min(tiers[tier].capacity, group.world)) / below;
  return tiers[tier].bandwidth / (tiers[tier].topology == Topology::kBus ? senders * units : senders);
}

// Returns how many groups leave a unit below the tier at the same moment.
double groups_below(const std::vector<Tier>& tiers, const GroupPlace& group, size_t tier) {
  return std::max(1.0, as_double(devices_below(tiers, group, tier)) / as_double(group.below(tier)));
}

// Messages that go `distance` units round a ring share its links with as many others.
double detour(const Tier& tier, double units, double distance) {
  return tier.topology == Topology::kRing ? std::max(1.0, std::min(distance, units - distance)) : 1.0;
}

// p - 1 rounds in which every rank hands a p-th to the next one. Rounds follow each other without a gap, so
// the slowest of the links sets the pace and every hop's latency counts once.
double ring_seconds(const std::vector<Tier>& tiers, const GroupPlace& group, double bytes) {
  const double ranks = as_double(group.ranks);
  double pace = 0, latency = 0, first = -1, last = 0;
  for (size_t i = 0; i < tiers.size(); ++i) {
    if (group.units(i) < 2) continue;
    pace = std::max(pace, bytes / ranks / bandwidth(tiers, group, i, groups_below(tiers, group, i)));
    const double hops = ranks / as_double(group.below(i)) - ranks / as_double(group.within[i]);
    latency += hops * tiers[i].latency;
    if (first < 0) first = tiers[i].latency;
    last = tiers[i].latency;
  }
  // A piece passes all hops of the circle but one; the last to end lacks a short one, not the one that closes
  // it.
  return (ranks - 1) * pace + latency + last - first;
}

// Each tier, from the inside out, works on the piece that is left to a rank: by a ring, or by rounds in which
// partners halve what they hold. All ranks of a unit send at the same moment, each its own piece.
double tiered_seconds(const std::vector<Tier>& tiers, const GroupPlace& group, double bytes, bool rounds) {
  double seconds = 0;
  for (size_t i = 0; i < tiers.size(); ++i) {
    const double units = as_double(group.units(i));
    if (units < 2) continue;
    const double piece = bytes / as_double(group.below(i));
    const double rate = bandwidth(tiers, group, i, as_double(devices_below(tiers, group, i)));
    if (!rounds) {
      seconds += (units - 1) * (tiers[i].latency + piece / units / rate);
      continue;
    }
    double distance = 1, moved = piece / units;
    for (; distance < units; distance *= 2, moved *= 2) {
      const double sent = std::min(moved, piece * (units - distance) / units);
      seconds += tiers[i].latency * detour(tiers[i], units, distance) +
                 sent / rate * detour(tiers[i], units, distance);
    }
  }
  return seconds;
}

double one_way(const std::vector<Tier>& tiers, const GroupPlace& group, double bytes, Algorithm algorithm) {
  return algorithm == Algorithm::kRing ? ring_seconds(tiers, group, bytes)
                                       : tiered_seconds(tiers, group, bytes, algorithm == Algorithm::kTree);
}

// Every rank sends a p-th of its bytes to each other, in p - 1 rounds, to the one that is so many places
// ahead. In each round the busiest link sets the pace: of a unit below a tier so many ranks send out of it.
double exchange_seconds(const std::vector<Tier>& tiers, const GroupPlace& group, double bytes) {
  const double ranks = as_double(group.ranks);
  double seconds = 0;
  for (double ahead = 1; ahead < ranks; ++ahead) {
    double slowest = 0;
    for (size_t i = 0; i < tiers.size(); ++i) {
      if (group.units(i) < 2) continue;
      const double leaving = std::min({ahead, ranks - ahead, as_double(group.below(i))});
      const double way = detour(tiers[i], as_double(group.units(i)), ahead);
      slowest = std::max(
          slowest, leaving * way * bytes / ranks / bandwidth(tiers, group, i, groups_below(tiers, group, i)));
    }
    seconds += slowest;
  }
  for (size_t i = 0; i < tiers.size(); ++i) {
    const double units = as_double(group.units(i)), below = as_double(group.below(i));
    const bool round = tiers[i].topology == Topology::kRing;
    seconds += below * (round ? std::floor(units * units / 4) : units - 1) * tiers[i].latency;
  }
  return seconds;
}

// One message, while every device sends one as far: as many of a unit leave it as stand within that distance
// of its end.
double pair_seconds(const std::vector<Tier>& tiers, const GroupPlace& group, double bytes) {
  double seconds = 0;
  for (size_t i = 0; i < tiers.size(); ++i) {
    if (group.units(i) < 2) continue;
    const int64_t leaving = std::min(devices_below(tiers, group, i), group.apart);
    seconds = tiers[i].latency + bytes / bandwidth(tiers, group, i, as_double(leaving));
  }
  return seconds;
}

// The bytes that a rank sends and receives pass its cores where no device moves them.
double cpu_seconds(const std::vector<Tier>& tiers, const GroupPlace& group, double sent) {
  double seconds = 0;
  for (size_t i = 0; i < tiers.size(); ++i)
    if (group.units(i) > 1) seconds = std::max(seconds, sent * tiers[i].cpu);
  return seconds;
}

}  // namespace

GroupPlace place_group(const std::vector<Tier>& tiers, const Mesh& mesh, AxisSet axes) {
  constexpr Axis kInsideOut[] = {Axis::kTensor, Axis::kSequence, Axis::kData, Axis::kPipeline};
  GroupPlace group{.ranks = mesh.size(axes), .within = {}, .world = mesh.world()};
  for (const Tier& tier : tiers) {
    int64_t inside = 1, stride = 1;
    for (const Axis axis : kInsideOut) {
      const int64_t size = mesh.size(axis);
      if (axes.has(axis)) inside *= std::clamp<int64_t>(tier.capacity / stride, 1, size);
      stride *= size;
    }
    group.within.push_back(inside);
  }
  if (!group.within.empty()) group.within.back() = group.ranks;
  return group;
}

GroupPlace place_pair(const std::vector<Tier>& tiers, const Mesh& mesh, int64_t one, int64_t other) {
  GroupPlace group{.ranks = 2, .within = {}, .world = mesh.world(), .apart = std::abs(one - other)};
  for (const Tier& tier : tiers) group.within.push_back(one / tier.capacity == other / tier.capacity ? 2 : 1);
  if (!group.within.empty()) group.within.back() = 2;
  return group;
}

CollectiveCost collective_cost(const std::vector<Tier>& tiers, const GroupPlace& group, CollectiveKind kind,
                               double bytes, Algorithm algorithm) {
  if (group.ranks < 2 || tiers.empty()) return {};
  const double sent = bytes * as_double(group.ranks - 1) / as_double(group.ranks);
  if (kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive)
    return {pair_seconds(tiers, group, bytes), cpu_seconds(tiers, group, bytes), Algorithm::kRing};
  if (kind == CollectiveKind::kAllToAll)
    return {exchange_seconds(tiers, group, bytes), cpu_seconds(tiers, group, sent), Algorithm::kRing};
  const double ways = kind == CollectiveKind::kAllReduce ? 2 : 1;
  CollectiveCost best{-1, cpu_seconds(tiers, group, ways * sent), algorithm};
  for (const Algorithm one : {Algorithm::kRing, Algorithm::kHierarchical, Algorithm::kTree}) {
    if (algorithm != Algorithm::kBest && algorithm != one) continue;
    const double seconds = ways * one_way(tiers, group, bytes, one);
    if (best.seconds < 0 || seconds < best.seconds) {
      best.seconds = seconds;
      best.algorithm = one;
    }
  }
  return best;
}

}  // namespace vitrail
