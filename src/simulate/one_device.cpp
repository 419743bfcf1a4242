#include "simulate/one_device.h"

#include "base/checked.h"
#include "plan/largest_batch.h"

namespace vitrail {

const RunPlan& OneDevice::plan(int64_t micro_batch, int64_t accumulation) {
  const auto key = std::make_pair(micro_batch, accumulation);
  const auto known = plans_.find(key);
  if (known != plans_.end()) return known->second;
  TrainConfig config = run_.config;
  config.mesh = MeshConfig();
  config.train.micro_batch = micro_batch;
  config.train.accumulation = accumulation;
  config.train.batch = micro_batch * accumulation;
  config.train.eval_batch = 0;
  return plans_.emplace(key, RunPlan(config, run_.classes, backend_, run_.target.device, RankPlace{0, 1, 1}))
      .first->second;
}

double OneDevice::seconds(int64_t micro_batch, int64_t accumulation) {
  return plan(micro_batch, accumulation).step().update_seconds(accumulation, *run_.target.file);
}

int64_t OneDevice::whole_groups(int64_t images) const {
  const AugmentConfig& augment = run_.config.augment;
  const int64_t unit = augment.mixes() ? augment.mix_group : 1;
  return ceil_div(images, unit) * unit;
}

double OneDevice::share_seconds(int64_t batch, int64_t world, int64_t micro_batch) {
  const int64_t images = whole_groups(ceil_div(batch, world));
  const int64_t each = std::min(images, micro_batch), micros = ceil_div(images, each);
  const double part = static_cast<double>(batch) / static_cast<double>(world * each * micros);
  return seconds(each, micros) * part;
}

int64_t OneDevice::share_micro_batch(int64_t batch, int64_t world) {
  const int64_t images = whole_groups(ceil_div(batch, world));
  // A share need not divide evenly, so its halves are tried.
  std::vector<int64_t> sizes;
  for (int64_t micros = 1; micros <= images; micros *= 2) {
    const int64_t each = whole_groups(ceil_div(images, micros));
    if (!sizes.empty() && each == sizes.front()) break;
    sizes.insert(sizes.begin(), each);
  }
  const int64_t most = largest_fitting(sizes, [&](int64_t each) {
    return plan(each, ceil_div(images, each)).peak_bytes() <= run_.target.available_bytes;
  });
  return most > 0 ? most : images;
}

}  // namespace vitrail
