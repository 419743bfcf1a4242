// The plan of an update on the host, by its bytes: every gradient comes down once, in buckets of the size
// that is asked for, through two staging places that hold the largest of them.
#include "train/offload_plan.h"

#include <gtest/gtest.h>

#include "train/helpers/tiny_run.h"
#include "train/run_setup.h"

namespace vitrail::testing {
namespace {

StepPlan planned(size_t bucket_bytes, Offload offload = Offload::kOptimizer,
                 ComputeType type = ComputeType::kF32) {
  TrainConfig config = tiny_config(1);
  config.train.dtype = type;
  StepConfig step = set_up(config).step;
  step.offload = offload, step.bucket_bytes = bucket_bytes;
  if (offload == Offload::kParameters) step.zero = 3;
  return plan_step(step, cuda_backend(), planned_cuda_device("a GPU", 90, 132));
}

std::vector<const PersistentValue*> gradients_of(const StepPlan& plan) {
  std::vector<const PersistentValue*> sums;
  for (const PersistentValue& value : plan.layout->values())
    if (value.name.starts_with(gradient_name("")) && !value.is_container && !value.name.ends_with("@host"))
      sums.push_back(&value);
  return sums;
}

size_t end_of(const std::vector<OffloadPlan::Span>& spans) {
  size_t end = 0;
  for (const OffloadPlan::Span& span : spans) end = std::max(end, span.host + span.bytes);
  return (end + 63) / 64 * 64;
}

TEST(OffloadPlan, EveryGradientComesDownOnce) {
  for (const size_t bucket_bytes : {size_t{0}, size_t{1}, size_t{4096}, size_t{1} << 30}) {
    SCOPED_TRACE(bucket_bytes);
    const StepPlan plan = planned(bucket_bytes);
    const OffloadPlan& offload = *plan.offload;
    const std::vector<const PersistentValue*> sums = gradients_of(plan);
    ASSERT_EQ(sums.size(), plan.config.trained.size());
    size_t all = 0, largest = 0;
    for (const PersistentValue* sum : sums) {
      all += sum->desc.bytes(), largest = std::max(largest, sum->desc.bytes());
      int times = 0;
      for (size_t b = 0; b < offload.trained; ++b)
        for (const OffloadPlan::Span& span : offload.buckets[b].gradients) {
          const size_t first = plan.layout->at(span.first).offset;
          times += first <= sum->offset && sum->offset + sum->desc.bytes() <= first + span.bytes;
        }
      EXPECT_EQ(times, 1) << sum->name;
    }
    const size_t most = bucket_bytes > 0 ? bucket_bytes : all / 4;
    size_t down = 0, up = 0;
    for (size_t b = 0; b < offload.buckets.size(); ++b) {
      const OffloadPlan::Bucket& bucket = offload.buckets[b];
      EXPECT_EQ(bucket.update.has_value(), b < offload.trained);
      EXPECT_TRUE(bucket.refresh);
      EXPECT_FALSE(bucket.average) << "there are none";
      for (const OffloadPlan::Span& span : bucket.gradients) EXPECT_EQ(span.host % 64, 0u);
      down = std::max(down, end_of(bucket.gradients)), up = std::max(up, end_of(bucket.copies));
      EXPECT_LE(end_of(bucket.gradients), std::max(most, largest) + 64 * sums.size());
    }
    EXPECT_EQ(plan.layout->at(OffloadPlan::gradients_at(0)).desc.bytes(), down);
    EXPECT_EQ(plan.layout->at(OffloadPlan::copies_at(0)).desc.bytes(), up);
    EXPECT_EQ(plan.layout->has(OffloadPlan::gradients_at(1)), offload.trained > 1);
    EXPECT_TRUE(offload.sends);
    if (bucket_bytes == 1) {
      EXPECT_EQ(offload.trained, sums.size()) << "one each";
    }
    if (bucket_bytes == size_t{1} << 30) {
      EXPECT_EQ(offload.trained, 1u);
    }
    if (bucket_bytes == 0) {
      EXPECT_GE(offload.trained, 4u);
    }
  }
}

TEST(OffloadPlan, StagingPlacesTakeTurns) {
  EXPECT_EQ(OffloadPlan::gradients_at(0), "offload/gradients/0");
  EXPECT_EQ(OffloadPlan::gradients_at(3), "offload/gradients/1");
  EXPECT_EQ(OffloadPlan::copies_at(2), "offload/copies/0");
}

// In bf16 what goes up is half of what comes down; parameters on the host stay there.
TEST(OffloadPlan, CopiesGoUpInTheirType) {
  const StepPlan half = planned(size_t{1} << 30, Offload::kOptimizer, ComputeType::kBF16);
  size_t down = 0, up = 0;
  for (const OffloadPlan::Bucket& bucket : half.offload->buckets) {
    for (const OffloadPlan::Span& span : bucket.gradients) down += span.bytes;
    for (const OffloadPlan::Span& span : bucket.copies) up += span.bytes;
  }
  EXPECT_LT(up, down);
  EXPECT_GT(up, down / 3);
  const StepPlan there = planned(0, Offload::kParameters);
  EXPECT_FALSE(there.offload->sends);
  for (const OffloadPlan::Bucket& bucket : there.offload->buckets) EXPECT_TRUE(bucket.copies.empty());
  EXPECT_FALSE(there.layout->has(OffloadPlan::copies_at(0)));
}

TEST(OffloadPlan, HostProgramsShareOneArena) {
  const StepPlan plan = planned(4096);
  size_t most = 0, count = 0;
  for (const OffloadPlan::Bucket& bucket : plan.offload->buckets)
    for (const auto* one : {&bucket.update, &bucket.refresh, &bucket.average})
      if (*one) most = std::max(most, (*one)->memory.transient_bytes), ++count;
  EXPECT_EQ(plan.offload->host_programs().size(), count);
  EXPECT_EQ(plan.offload->transient_bytes(), most);
}

}  // namespace
}  // namespace vitrail::testing
