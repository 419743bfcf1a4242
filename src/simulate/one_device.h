// The run on one device of the cluster that exchanges nothing, which efficiency is against; each number of
// images is planned once.
#pragma once

#include <map>
#include <utility>

#include "simulate/cluster_plan.h"

namespace vitrail {

class OneDevice {
 public:
  // Keeps references to both.
  OneDevice(const ClusterRun& run, const Backend& backend) : run_(run), backend_(backend) {}

  const RunPlan& plan(int64_t micro_batch, int64_t accumulation);
  // The seconds of an update of so many micro-batches.
  double seconds(int64_t micro_batch, int64_t accumulation);

  // The seconds of a device's even share of `batch` images among `world` devices, in micro-batches of at most
  // `micro_batch`. A share that is no whole number of images is rounded up to whole ones, in groups that are
  // mixed together, and to whole micro-batches; its seconds are then the part of those that it has of the
  // images.
  double share_seconds(int64_t batch, int64_t world, int64_t micro_batch);
  // The largest micro-batch of such a share that fits the device, by halves; all of it where none does.
  int64_t share_micro_batch(int64_t batch, int64_t world);

 private:
  int64_t whole_groups(int64_t images) const;

  const ClusterRun& run_;
  const Backend& backend_;
  std::map<std::pair<int64_t, int64_t>, RunPlan> plans_;
};

}  // namespace vitrail
