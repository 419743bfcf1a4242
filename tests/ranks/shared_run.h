// Runs whose batches 2, 3 and 4 ranks can share, and how their losses are compared.
#pragma once

#include "train/helpers/tiny_run.h"

namespace vitrail::testing {

// Every setting that draws random numbers.
inline TrainConfig shared_config(int64_t steps) {
  TrainConfig config = full_config(steps);
  config.train.batch = 24;
  config.train.micro_batch = 0;
  config.train.eval_batch = 5;  // 40 images: the last batches are padded
  config.augment.mix_group = 2;
  return config;
}

inline void expect_near(const std::vector<double>& found, const std::vector<double>& wanted,
                        double relative) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], relative * std::abs(wanted[i])) << "step " << i;
}

}  // namespace vitrail::testing
