// Training updates on several ranks, timed: how long one takes, and how much of it ranks spend on each other.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "measure/synthetic_steps.h"
#include "measure/timing.h"
#include "telemetry/rank_times.h"
#include "train/world.h"

namespace vitrail {

struct RankStepsRequest {
  TrainConfig config;
  std::optional<int64_t> classes;
  std::string backend;
  std::function<DeviceInfo(int local)> device;
  Variables variables = {};  // of the environment, in which NCCL's file may be named
  int64_t warmup = 3, updates = 20;
  liveness::Heartbeat* heartbeat = nullptr;  // tells others how the ranks fare
  std::function<bool()> stop = {};           // asked before each update on the first rank; true ends it
};

// Returns the ranks of this process that such a request runs on.
LocalRanks local_ranks(World world, const RankStepsRequest& request);

struct RankStepsResult {
  int ranks = 1;
  std::string transport, mesh;
  std::string devices;  // "nccl" or "staged", where devices have memory of their own
  std::string note;     // why not by NCCL
  int64_t batch = 0;
  Spread seconds;                             // of an update, on the first rank
  std::vector<double> each;                   // the same of every update
  std::vector<std::vector<double>> computes;  // by rank: its own work in every update
  double exposed_share = 0;  // of the updates' time, within collectives, waits and polls; mean of the ranks
  double waited_share = 0;   // the part of it in which a rank waited for the slowest of them
  double sent_bytes = 0;     // by a rank, an update
  double flight_s = 0;       // with a collective on its way, an update; mean of the ranks
  double hidden_share = 0;   // the part of that in which work went on
  double loss = 0;           // the mean over all images, with the weights after
  int64_t steps = 0;         // so many updates
  size_t peak_bytes = 0;     // planned, on the first rank
  TimingStatus timing = {};  // of the measured updates, rank by rank
  double images_per_second() const { return static_cast<double>(batch) / seconds.median; }
};

// Every rank of the world calls it; the first one has the result.
RankStepsResult time_rank_steps(World world, const RankStepsRequest& request);
nlohmann::ordered_json to_json(const RankStepsResult& result);
std::string to_text(const RankStepsResult& result);

}  // namespace vitrail
