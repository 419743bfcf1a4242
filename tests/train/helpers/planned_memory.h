// What a step allocates, compared with its plan.
#pragma once

#include <numeric>

#include "train/helpers/tiny_run.h"
#include "train/run_setup.h"
#include "train/train_step.h"

namespace vitrail::testing {

using CategoryBytes = std::array<size_t, kCategoryCount>;

inline CategoryBytes allocated_now() {
  CategoryBytes bytes;
  for (size_t c = 0; c < kCategoryCount; ++c) bytes[c] = Buffer::allocated(static_cast<Category>(c));
  return bytes;
}

inline size_t sum(const CategoryBytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), size_t{0});
}

inline void expect_as_planned(const TrainConfig& config, const Backend& backend, const DeviceInfo& device) {
  const RunSetup setup = set_up(config);
  const auto before = allocated_now();
  const StepPlan plan = plan_step(setup.step, backend, device);
  EXPECT_EQ(allocated_now(), before) << "planning allocates nothing";
  RankContext rank(device);
  TrainStep step(plan, rank);
  auto planned = before;
  for (size_t c = 0; c < kCategoryCount; ++c) planned[c] += plan.layout->bytes(static_cast<Category>(c));
  planned[static_cast<size_t>(Category::kTransient)] += plan.transient_bytes();
  planned[static_cast<size_t>(Category::kStaging)] += plan.staging_bytes();
  EXPECT_EQ(allocated_now(), planned);
  EXPECT_EQ(plan.peak_bytes(), sum(planned) - sum(before));
  EXPECT_EQ(step.allocated_bytes(), plan.peak_bytes());
  EXPECT_EQ(sum(plan.by_category()), plan.lower_bound_bytes());
  EXPECT_LE(plan.lower_bound_bytes(), plan.peak_bytes());
}

}  // namespace vitrail::testing
