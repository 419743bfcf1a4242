// Failures against checkpoints: how much of the time a job of many devices spends on steps that count, and
// the interval between checkpoints that makes it most. Knows no network and no program.
#pragma once

#include <vector>

namespace vitrail {

struct FailureModel {
  double mtbf_s = 0;        // of the whole job: a device's divided by their number
  double checkpoint_s = 0;  // to write one
  double restart_s = 0;     // from a failure to the first step after it
};

// The share of the time that counts, with failures at any moment (exponentially distributed), of a segment of
// `interval_s` and a checkpoint: the expectation, work that is lost and restarts that fail included.
double effective_share(const FailureModel& model, double interval_s);

// The interval of the first-order approximation (Young), of the higher-order one (Daly), and the one for
// which effective_share() is largest.
double young_interval(const FailureModel& model);
double daly_interval(const FailureModel& model);
double best_interval(const FailureModel& model);

// Returns whether the best interval leaves a share that counts, 0.05 % or more: else failures come before a
// segment and its checkpoint end.
bool makes_progress(const FailureModel& model);

// The three of them, and the job's own where it has one (not 0).
struct CheckpointInterval {
  const char* name;
  double seconds = 0;
  double share = 0;  // of the time that counts
};
std::vector<CheckpointInterval> checkpoint_intervals(const FailureModel& model, double own_s);

}  // namespace vitrail
