// A run whose gradients become NaN a few updates after a good beginning.
#pragma once

#include "train/helpers/tiny_run.h"

namespace vitrail::testing {

inline void expect_finite(const std::string& folder) {
  const Tensors state = state_of(folder);
  ASSERT_FALSE(state.empty());
  for (const auto& [name, bytes] : state) {
    if (name == kUpdateCounterState || name == kLossScaleState) continue;
    for (float value : floats_of(state, name)) ASSERT_TRUE(std::isfinite(value)) << name;
  }
}

// Six good steps, then a learning rate that diverges: update 7 still has finite gradients, none after it.
inline constexpr int64_t kGood = 6;

inline TrainConfig exploding_config(int64_t steps, const std::string& folder) {
  TrainConfig config = tiny_config(kGood);
  config.schedule.kind = ScheduleKind::kConstant;
  config.train.save_every = 2;
  config.train.skip_limit = 3;
  train(config, folder);
  config.train.steps = steps;
  config.optim.lr = 1e30;
  return config;
}

}  // namespace vitrail::testing
