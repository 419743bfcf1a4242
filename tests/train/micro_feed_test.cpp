// Micro-batches whose images are prefetched: the run equals that of a step which reads them in place, whether
// the loader is ahead or behind, and the prefetch buffer is planned.
#include "train/micro_feed.h"

#include <gtest/gtest.h>

#include <thread>

#include "cuda_test.h"
#include "train/helpers/late_device.h"
#include "train/helpers/planned_memory.h"

namespace vitrail::testing {
namespace {

TrainConfig feed_config(OnDevice form) {
  TrainConfig config = tiny_config(10);
  config.augment.crop = CropKind::kPad;
  config.augment.hflip = 0.5;
  config.augment.mixup = 0.8;
  config.augment.mix_group = 4;
  config.train.micro_batch = 4;
  config.train.eval_batch = 4;
  config.loader.on_device = form;
  return config;
}

// A run's steps on the reference backend, planned as for a GPU or not.
class FedStep {
 public:
  FedStep(const TrainConfig& config, bool on_gpu)
      : setup_(set_up(config)),
        plan_(plan_step(setup_.step, ref_backend(), {.shares_host_memory = !on_gpu})),
        rank_(DeviceInfo(), std::make_unique<LateDevice>()),
        step_(plan_, rank_) {
    step_.start(setup_.model->filler());
    bring_images(setup_, step_);
    auto loader = make_train_loader(*setup_.data.train, setup_.loader_settings(Purpose::kTrain));
    loader_ = loader.get();
    feed_ = std::make_unique<MicroFeed>(std::move(loader), step_, nullptr, setup_.config.train);
  }

  // A step takes as long as loading the next batch.
  void keep_loader_ahead() {
    device().while_it_works = [this] {
      while (!loader_->peek()) std::this_thread::yield();
    };
  }
  void run(int64_t first, int64_t steps) {
    for (int64_t step = first; step < first + steps; ++step) {
      for (int64_t m = 0; m < setup_.config.train.accumulation; ++m) feed_->run(step, m);
      step_.run_update(0.003);
      losses_.push_back(step_.take_loss());
      EXPECT_EQ(step_.take_loss(), 0.0) << "it was taken";
    }
  }
  void evaluate() {
    const std::vector<float> images(4 * 3 * 8 * 8, 0.5f);
    for (float logit : step_.evaluate(images, 4, false)) losses_.push_back(static_cast<double>(logit));
  }
  // Runs steps 0 to 3, an evaluation, back to 2 and on to 4, then to 20 and on.
  void wander() {
    run(0, 4);
    evaluate();
    for (int64_t step : {2, 20}) {
      feed_->seek(step);
      EXPECT_TRUE(device().pending.empty()) << "the loader writes where an upload reads";
      run(step, 3);
    }
  }

  LateDevice& device() { return dynamic_cast<LateDevice&>(*rank_.hardware); }
  MicroFeed& feed() { return *feed_; }
  TrainStep& step() { return step_; }
  const StepPlan& plan() const { return plan_; }
  const std::vector<double>& losses() const { return losses_; }
  Tensors state() const { return state_of(step_); }

 private:
  RunSetup setup_;
  StepPlan plan_;
  RankContext rank_;
  TrainStep step_;
  Loader* loader_ = nullptr;
  std::unique_ptr<MicroFeed> feed_;
  std::vector<double> losses_;
};

TEST(MicroFeed, SendingAheadChangesNoBit) {
  for (OnDevice form : {OnDevice::kOff, OnDevice::kImages, OnDevice::kDataset}) {
    SCOPED_TRACE(enum_name(form));
    FedStep in_place(feed_config(form), false);
    in_place.wander();
    EXPECT_EQ(in_place.device().waits, 0);
    for (bool loader_ahead : {true, false}) {
      FedStep ahead(feed_config(form), true);
      if (loader_ahead) ahead.keep_loader_ahead();
      ahead.wander();
      EXPECT_EQ(ahead.losses(), in_place.losses());
      EXPECT_EQ(differing(ahead.state(), in_place.state()), std::vector<std::string>());
      // There are 20 micro-batches, three of them the first after a start or a seek.
      if (loader_ahead) {
        EXPECT_EQ(ahead.device().waits, form == OnDevice::kDataset ? 0 : 17);
      }
    }
  }
}

TEST(MicroFeed, TheLossIsThatOfEveryMicroBatchOfAnUpdate) {
  FedStep fed(feed_config(OnDevice::kOff), false);
  double wanted = 0;
  for (int64_t micro : {0, 1}) {
    fed.feed().run(0, micro);
    for (float loss : fed.step().losses()) wanted += static_cast<double>(loss) * static_cast<double>(0.125f);
  }
  EXPECT_NEAR(fed.step().take_loss(), wanted, 1e-14 * wanted);
}

// Random numbers go by the place of an image in the whole batch, whichever micro-batch it comes in.
TEST(MicroFeed, AMicroBatchKnowsItsPlace) {
  TrainConfig config = feed_config(OnDevice::kOff);
  config.train.batch = 12, config.train.seed = 7;
  FedStep fed(config, false);
  for (const int64_t step : {0, 5})
    for (const int64_t micro : {0, 1, 2}) {
      SCOPED_TRACE(strf("micro-batch %d of step %d", static_cast<int>(micro), static_cast<int>(step)));
      int shown = 0;
      fed.feed().show_next([&](const MicroBatch& batch) {
        ++shown;
        EXPECT_EQ(batch.seed, 7);
        EXPECT_EQ(batch.step, step);
        EXPECT_EQ(batch.position, 4 * micro);
        EXPECT_EQ(batch.last, micro == 2);
        EXPECT_EQ(std::vector<float>(batch.weights.begin(), batch.weights.end()),
                  std::vector<float>(4, 1.0f / 12));
        EXPECT_EQ(batch.images.size(), 4u * 3 * 8 * 8);
        EXPECT_EQ(batch.targets.size(), 4u * 4);
      });
      fed.feed().run(step, micro);
      EXPECT_EQ(shown, 1);
    }
}

// Dropout by place: what an update learns does not depend on how its batch is cut.
TEST(MicroFeed, DropoutOfABatchIsThatOfItsMicroBatches) {
  TrainConfig config = tiny_config(3);
  config.train.dropout = 0.2, config.train.drop_path = 0.2;
  config.train.micro_batch = 8;
  const std::vector<double> whole = losses_of(config);
  for (const int64_t micro : {4, 2}) {
    config.train.micro_batch = micro;
    EXPECT_LT(worst_share(losses_of(config), whole), 1e-5) << micro;
  }
}

// A loader writes over a batch while the device may still fetch it.
TEST(MicroFeed, ABatchIsOnTheDeviceBeforeTheNextIsAskedFor) {
  FedStep fed(feed_config(OnDevice::kImages), true);
  for (int micro = 0; micro < 4; ++micro) {
    const int before = fed.device().host_waits;
    fed.feed().run(micro / 2, micro % 2);
    EXPECT_EQ(fed.device().host_waits, before + 1);
  }
  const int before = fed.device().host_waits;
  fed.feed().seek(7);
  EXPECT_EQ(fed.device().host_waits, before + 1);
}

TEST(MicroFeed, WhatLandsIsPlannedAndAllocated) {
  const size_t pixels = 4 * 3 * 8 * 8;
  for (ComputeType dtype : {ComputeType::kF32, ComputeType::kBF16})
    for (const auto& [form, bytes] : {std::pair{OnDevice::kOff, pixels * sizeof(float)},
                                      {OnDevice::kImages, pixels},
                                      {OnDevice::kDataset, size_t{0}}}) {
      SCOPED_TRACE(strf("%s in %s", enum_name(form), enum_name(dtype)));
      TrainConfig config = feed_config(form);
      config.train.dtype = dtype;
      FedStep on_gpu(config, true), here(config, false);
      EXPECT_EQ(here.plan().prefetch_bytes, 0u);
      EXPECT_EQ(on_gpu.plan().prefetch_bytes, bytes);
      EXPECT_EQ(on_gpu.step().allocated_bytes(), on_gpu.plan().peak_bytes());
      StepPlan without = on_gpu.plan();
      without.prefetch_bytes = 0;
      EXPECT_EQ(on_gpu.plan().peak_bytes() - without.peak_bytes(), bytes);
      EXPECT_EQ(sum(on_gpu.plan().by_category()), on_gpu.plan().lower_bound_bytes());
    }
}

// Each form of images reaches a device in its own way and at its own moment; seeking back loses and repeats
// no batch.
void expect_same_way_back(const RunOptions& options) {
  const WorkFolder work;
  for (OnDevice form : {OnDevice::kDataset, OnDevice::kImages, OnDevice::kOff}) {
    SCOPED_TRACE(enum_name(form));
    TrainConfig config = feed_config(form);
    config.train.steps = 140;
    config.train.eval_every = config.train.save_every = 10;
    config.train.skip_limit = 3;
    config.optim.name = "sgd";
    config.optim.momentum = 0;
    config.optim.lr = 0.01;
    config.optim.weight_decay = 300;  // doubles the weights until they are no numbers; half of it fades them
    config.optim.clip_norm = 1;
    config.schedule.kind = ScheduleKind::kConstant;
    Ran ran;
    train_error(ran, config, work / enum_name(form), options);  // whether it helps does not matter here
    EXPECT_GE(ran.events_of("rollback"), 1);
    EXPECT_GT(ran.steps.size(), 20u);
    EXPECT_EQ(metrics_of(work / enum_name(form)), metrics_of(work / "dataset"));
    EXPECT_EQ(differing(state_of(work / enum_name(form)), state_of(work / "dataset")),
              std::vector<std::string>());
  }
}

TEST(MicroFeed, ARunThatGoesBackIsTheSameInEveryForm) {
  expect_same_way_back({});
}

using CudaMicroFeed = CudaTest;

TEST_F(CudaMicroFeed, ARunThatGoesBackIsTheSameInEveryForm) {
  expect_same_way_back({.cuda = true});
}

}  // namespace
}  // namespace vitrail::testing
