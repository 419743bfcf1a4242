// The host's part of updates as it runs: gradients come down bucket by bucket, the host updates masters,
// moments and averages, working copies go up. Copies run on two streams beside the programs' own, ordered by
// events, so that both directions and the host's work overlap; an update is whole when the next program
// starts. Holds no policy and knows no optimizer.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "runtime/executor.h"
#include "train/offload_plan.h"

namespace vitrail {

class OffloadRun {
 public:
  OffloadRun(const OffloadPlan& plan, const PersistentStore& store, RankContext& rank);

  // Updates every bucket with the control and the hyper values of the device's program. The device's gradient
  // sums become zero.
  void update(std::span<const double> control, std::span<const double> hyper);
  // Ends an update that is skipped: only the sums become zero.
  void skip();
  // Fills the device's copies from the masters, or from the averages.
  void load(bool average);

  size_t bytes() const { return arena_.bytes(); }  // of the host's memory, beside the store's

 private:
  using Programs = std::vector<std::unique_ptr<Executor>>;  // by bucket

  Programs programs_of(std::optional<ExecutionPlan> OffloadPlan::Bucket::*which);
  void run(const Programs& programs, bool gradients);
  void fetch(size_t bucket);
  void send(size_t bucket);

  const OffloadPlan& plan_;
  const PersistentStore& store_;
  RankContext& rank_;
  std::unique_ptr<RankContext> own_;  // of the host, where the device is another
  RankContext& host_;
  Buffer arena_;
  Programs update_, refresh_, average_;
  std::unique_ptr<Stream> down_, up_;
  std::unique_ptr<Event> ready_;                                             // the programs' work so far
  std::array<std::unique_ptr<Event>, OffloadPlan::kPlaces> arrived_, sent_;  // by staging place
};

}  // namespace vitrail
