// What replicas are compared by: values that are computed, and no data.
#include "train/replica_check.h"

#include <gtest/gtest.h>

#include "ranks/shared_run.h"
#include "train/flip_bit.h"
#include "train/run_setup.h"

namespace vitrail::testing {
namespace {

void store_same(const TrainStep& step, const PersistentValue& value) {
  step.store().write(value, std::vector<std::byte>(value.desc.bytes(), std::byte{7}));
}

// Pixels and levels that a rank keeps on its device are data: no rank computes them.
TEST(Replicas, DataIsNotCompared) {
  TrainConfig config = shared_config(1);
  config.augment = {};
  config.augment.crop = CropKind::kPad;
  config.loader.on_device = OnDevice::kDataset;
  run_ranks({.worlds = thread_communicators(2),
             .mesh = resolved(config.mesh, 2),
             .device = [](int) { return cpu_device(1); },
             .sharing = 2},
            [&](RankContext& rank) {
              const Team team(rank.ranks);
              const RunSetup setup = set_up(config, rank.device, {team.rank(), 2, 2});
              const StepPlan plan = plan_step(setup.step, cpu_backend(), rank.device);
              TrainStep step(plan, rank);
              step.start(setup.model->filler());
              ASSERT_TRUE(step.store().layout().has(kStoredPixels));
              const auto flip = [&](const char* value) {
                if (team.rank() == 1) flip_bit(step, {value, 3});
              };
              size_t values = 0, bytes = 0;
              for (const PersistentValue& value : step.store().layout().values()) {
                const bool data = value.name == kStoredPixels || value.name == kImageLevels;
                if (data) store_same(step, value);
                if (data || value.category == Category::kGradients || value.is_container) continue;
                ++values;
                bytes += value.desc.bytes();
              }
              const ReplicaCheck check(step, team);
              EXPECT_EQ(check.values(), values);
              EXPECT_EQ(check.bytes(), bytes);
              EXPECT_FALSE(check.compare());
              flip(kStoredPixels), flip(kImageLevels);
              EXPECT_FALSE(check.compare()) << "data";
              flip("head.bias"), flip("norm.weight");
              const auto found = check.compare();
              ASSERT_TRUE(found);
              EXPECT_EQ(found->values, 2u);
              EXPECT_EQ(found->holders, (std::vector<int>{0, 1}));
              EXPECT_EQ(found->odd, std::vector<int>()) << "of two nobody knows";
              flip("head.bias"), flip("norm.weight");
              EXPECT_FALSE(check.compare());
            });
}

TEST(Replicas, ANegativeIntervalIsRefused) {
  MeshConfig config;
  config.verify_every = -1;
  EXPECT_THROW(validate(config), Error);
}

}  // namespace
}  // namespace vitrail::testing
