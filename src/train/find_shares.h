// Finds the shares of mesh.balance=auto before the first update: a few updates at a time, timed on every
// rank, cut evenly at first and then by what was measured. Their results are dropped: weights, random numbers
// and the order of samples are those of a run that has measured nothing.
#pragma once

#include "train/balance.h"
#include "train/run_setup.h"
#include "train/team.h"

namespace vitrail {

inline constexpr int kMeasuredRounds = 4;                     // of other shares each, at most
inline constexpr int kWarmUpdates = 1, kMeasuredUpdates = 5;  // of a round

struct FoundShares {
  std::vector<int64_t> shares;  // by place along dp
  std::vector<double> seconds;  // of an update at these shares, by place, without waiting
};

// All ranks call it; the first one decides and tells the others. A share that a rank's memory does not hold
// is cut down for the others to take. Leaves `setup` cut by what was found.
FoundShares find_shares(RunSetup& setup, const Backend& backend, RankContext& rank, const Team& team);

// The ranks that were measured, as a text that is the same for the same ones: the mesh, the micro-batch, and
// each rank's device and threads.
std::string measured_ranks(const RunSetup& setup, const DeviceInfo& device, const Team& team);

// Returns how long a place takes, from updates that were timed: pairs of share and seconds, the newest last.
PlaceSpeed fitted_speed(const std::vector<std::pair<int64_t, double>>& timed);

}  // namespace vitrail
