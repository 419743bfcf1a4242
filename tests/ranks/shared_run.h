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

// Losses and evaluations of a run of several ranks are those of one.
inline void expect_same_run(const Ran& many, const Ran& one) {
  expect_near(many.losses(), one.losses(), 1e-5);
  ASSERT_EQ(many.evals.size(), one.evals.size());
  for (size_t i = 0; i < one.evals.size(); ++i) {
    EXPECT_EQ(many.evals[i].count, one.evals[i].count);
    EXPECT_EQ(many.evals[i].top1, one.evals[i].top1);
    EXPECT_NEAR(many.evals[i].loss, one.evals[i].loss, 1e-5 * one.evals[i].loss);
  }
}

}  // namespace vitrail::testing
