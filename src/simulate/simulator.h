// Runs the tasks of a step on a network, in simulated time: each rank computes its nodes in their order on
// one stream and exchanges on another, as the executor does. One rank stands for all that have the same
// program at a like place of the network; ranks that differ (stages of a pipeline, other shares of a batch)
// are simulated together and wait for each other.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "simulate/collective_cost.h"
#include "simulate/step_tasks.h"

namespace vitrail {

struct SimulatedRank {
  Mesh mesh;  // with the rank
  const StepTasks* step = nullptr;
};

struct SimulationOptions {
  double slowest = 1;       // the time of the slowest rank, by which everybody computes
  double collective_s = 0;  // to begin a collective
  Algorithm algorithm = Algorithm::kBest;
  bool spans = false;  // keep what each rank did when
};

// A rank's step. Compute, what is exposed, and waiting add up to the step.
struct SimulatedTimes {
  double step_s = 0;
  double compute_s = 0;
  double exposed_s = 0;  // within collectives while nothing computes
  double waiting_s = 0;  // for ranks that come later: the bubble of a pipeline, uneven shares
  double flight_s = 0;   // of all collectives

  double hidden_s() const { return flight_s > exposed_s ? flight_s - exposed_s : 0; }
};

// The collectives of one kind along the same axes, of the first rank simulated.
struct ExchangeTimes {
  int64_t count = 0;
  double bytes = 0, seconds = 0;
  Algorithm algorithm = Algorithm::kRing;  // of the largest
  double largest = 0;
};

struct SimulatedSpan {
  int rank = 0;
  bool exchange = false;  // on the stream of communication
  std::string name;
  double begin = 0, end = 0;
};

struct SimulatedStep {
  double step_s = 0;  // until the last rank has ended
  std::vector<SimulatedTimes> ranks;
  std::map<std::pair<CollectiveKind, unsigned>, ExchangeTimes> exchanges;  // by kind and axes' bits
  std::vector<SimulatedSpan> spans;
};

// Throws Error(kInternal) when the ranks wait for each other in a circle.
SimulatedStep simulate_step(const std::vector<SimulatedRank>& ranks, const std::vector<Tier>& tiers,
                            const SimulationOptions& options = {});

}  // namespace vitrail
