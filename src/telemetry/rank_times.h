// Says where the time of a run's ranks went: updates by rank, collectives by kind, the start by phase. It
// does so as lines of metrics.jsonl (docs/run-folder.md lists the keys) and as text. Measures nothing itself.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/run_status.h"

namespace vitrail {

// Seconds of one rank. Compute, exposed time and the wait for data add up to its time in updates.
struct RankTime {
  double compute_s = 0;    // what is none of the others: kernels, copies, the log
  double exposed_s = 0;    // within collectives, waits and polls
  double data_wait_s = 0;  // waiting for the loader
  double hidden_s = 0;     // the part of the compute while a collective was on its way
  double imbalance_s = 0;  // the part of the exposed time in which the slowest rank still had work of its own

  double total_s() const { return compute_s + exposed_s + data_wait_s; }
  void add(const RankTime& other);
};

// The collectives of one kind, as the first rank saw them.
struct CollectiveTime {
  std::string kind;  // "all_reduce"
  int64_t count = 0;
  double bytes = 0;    // that a rank sends by the best algorithm: what crosses its link
  double seconds = 0;  // from the start of each to its end

  double bus_bytes_per_s() const { return seconds > 0 ? bytes / seconds : kUnknown; }
};

// Updates up to and with `step`.
struct TimingStatus {
  int64_t step = 0, updates = 0;
  std::vector<RankTime> ranks;
  std::vector<CollectiveTime> collectives;
  double time = kUnknown;  // unix_seconds()

  double update_s() const;  // of the slowest rank
  // Adds later updates of as many ranks.
  void add(const TimingStatus& later);
};

// The start of a run, from the process to the end of its first update.
struct StartStatus {
  struct Phase {
    std::string name;
    std::vector<double> seconds;  // by rank
  };
  int64_t step = 0;
  std::vector<Phase> phases;
  double time = kUnknown;
};

nlohmann::ordered_json to_json(const TimingStatus& status);
nlohmann::ordered_json to_json(const StartStatus& status);

// Returns "10 updates of 12.3 ms: compute 81-85 %, exposed 9-12 % (imbalance 2-5 %), data wait 0 %, hidden 3
// %".
std::string breakdown_line(const TimingStatus& status);
// Returns a table of the ranks and one of the collectives, without a line end after the last.
std::string breakdown_tables(const TimingStatus& status);
// Returns "start 1.42 s: process 0.02 s, ..., first update 0.31 s", each phase as the slowest rank had it.
std::string start_line(const StartStatus& status);

// Holds what the lines of metrics.jsonl say of them, those of an earlier run on other ranks left out.
struct RankHistory {
  std::optional<TimingStatus> timing;  // all updates together
  std::optional<StartStatus> start;    // the last one
};
RankHistory read_rank_history(const std::string& metrics_path);

}  // namespace vitrail
