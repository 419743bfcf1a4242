// Runs whose images are made on the device from pixels: ranks, stages of a pipeline and --check whole.
#include <gtest/gtest.h>

#include "ranks/shared_run.h"

namespace vitrail::testing {
namespace {

TrainConfig config_of(OnDevice form) {
  TrainConfig config = tiny_config(4);
  config.train.batch = 12;
  config.train.micro_batch = 0;
  config.augment.mixup = 0.8, config.augment.cutmix = 1, config.augment.mix_group = 2;
  config.loader.on_device = form;
  return config;
}

TEST(ImagesOnTheDevice, RanksAndStagesFollowOneRank) {
  const WorkFolder work;
  for (const OnDevice form : {OnDevice::kImages, OnDevice::kDataset}) {
    SCOPED_TRACE(enum_name(form));
    TrainConfig config = config_of(form);
    const std::string name = enum_name(form);
    const Ran one = train(config, work / (name + "-one"));
    expect_near(train(config, work / (name + "-dp"), {.ranks = 2}).losses(), one.losses(), 1e-5);
    config.mesh.pp = 2;
    config.train.accumulation = 2;
    expect_near(train(config, work / (name + "-pp"), {.ranks = 2}).losses(), one.losses(), 1e-5);
  }
}

TEST(ImagesOnTheDevice, AreThoseOfTheWholeBatch) {
  const WorkFolder work;
  for (const OnDevice form : {OnDevice::kImages, OnDevice::kDataset}) {
    SCOPED_TRACE(enum_name(form));
    const TrainConfig config = config_of(form);
    TrainPlace place{work / enum_name(form), ResumeMode::kFresh, "test"};
    place.check_whole = true;
    EXPECT_NO_THROW(
        run_ranks({.worlds = thread_communicators(3),
                   .mesh = resolved(config.mesh, 3),
                   .device = [](int) { return cpu_device(1); },
                   .sharing = 3},
                  [&](RankContext& rank) { Trainer(config, place, cpu_backend(), rank, {}).run(); }));
  }
}

}  // namespace
}  // namespace vitrail::testing
