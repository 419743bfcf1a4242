// From settings to a step, value by value.
#include "train/run_setup.h"

#include <gtest/gtest.h>

#include <set>

#include "train/checkpoint_keeper.h"
#include "train/helpers/stepped.h"
#include "train/helpers/tiny_run.h"

namespace vitrail::testing {
namespace {

using Change = std::function<void(TrainConfig&)>;

StepConfig step_with(const Change& change, RankPlace place = {}) {
  TrainConfig config = tiny_config(1);
  change(config);
  return set_up(config, {}, place).step;
}

TEST(StepOfARun, EveryTypeHasItsTensorsAndGemms) {
  const struct {
    ComputeType type;
    DType compute;
    Arithmetic arithmetic;
  } rows[] = {{ComputeType::kF32, DType::kF32, Arithmetic::kExact},
              {ComputeType::kBF16, DType::kBF16, Arithmetic::kExact},
              {ComputeType::kF16, DType::kF16, Arithmetic::kExact},
              {ComputeType::kFp8, DType::kBF16, Arithmetic::kFp8},
              {ComputeType::kTF32, DType::kF32, Arithmetic::kTF32}};
  for (const auto& row : rows)
    for (const bool low : {false, true}) {
      const StepConfig step =
          step_with([&](TrainConfig& c) { c.train.dtype = row.type, c.train.low_residual = low; });
      EXPECT_EQ(step.precision.compute, row.compute) << enum_name(row.type);
      EXPECT_EQ(step.arithmetic, row.arithmetic) << enum_name(row.type);
      EXPECT_EQ(step.precision.residual, low ? row.compute : DType::kF32) << enum_name(row.type);
      EXPECT_EQ(step.loss_scale.dynamic, row.type == ComputeType::kF16) << enum_name(row.type);
    }
}

TEST(StepOfARun, SettingsArriveWhereTheyBelong) {
  StepConfig step = step_with(
      [](TrainConfig& c) {
        c.train.batch = 24, c.train.accumulation = 2, c.train.eval_batch = 5, c.mesh.dp = 3;
        c.train.dropout = 0.125, c.train.drop_path = 0.25;
        c.train.recompute = Recompute::kBlock, c.train.recompute_every = 2;
        c.train.loss = TrainLoss::kBceMean;
        c.mesh.bucket_mb = 1.5, c.mesh.zero = 2, c.mesh.accumulate = KeptSums::kWhole;
        c.augment.mixup = 0.5, c.augment.mix_group = 2;
      },
      {1, 3, 1});
  EXPECT_EQ(step.micro_batch, 12) << "of all ranks";
  EXPECT_EQ(step.eval_batch, 15) << "of all ranks";
  EXPECT_EQ(step.distribution.batch_unit, 2);
  EXPECT_EQ(step.distribution.mesh.rank, 1);
  EXPECT_EQ(step.dropout, 0.125);
  EXPECT_EQ(step.drop_path, 0.25);
  EXPECT_EQ(step.recompute.level, Recompute::kBlock);
  EXPECT_EQ(step.recompute.every, 2);
  EXPECT_EQ(step.loss, LossKind::kSigmoidMean);
  EXPECT_EQ(step.bucket_bytes, 1572864u);
  EXPECT_EQ(step.zero, 2);
  EXPECT_TRUE(step.whole_sums);
  EXPECT_EQ(step.host_threads, 0) << "alone on its host";
  step = step_with(
      [](TrainConfig& c) {
        c.mesh.zero = 1, c.mesh.accumulate = KeptSums::kWhole, c.augment.mix_group = 4, c.mesh.tp = 2;
        c.mesh.tokens_on_tp = true;
      },
      {0, 2, 2});
  EXPECT_FALSE(step.whole_sums) << "of ZeRO 2 and 3";
  EXPECT_EQ(step.distribution.batch_unit, 1) << "nothing is mixed";
  EXPECT_TRUE(step.distribution.tokens_on_tp);
  EXPECT_GE(step.host_threads, 1);
}

TEST(StepOfARun, RanksThatShareCoresShareWorkers) {
  const auto workers = [](int64_t given, RankPlace place, OnError on_error = OnError::kFail) {
    TrainConfig config = tiny_config(1);
    config.loader.workers = given, config.loader.on_error = on_error;
    config.mesh.dp = place.world;
    return set_up(config, {}, place).config.loader.workers;
  };
  const int64_t cores = std::thread::hardware_concurrency(), half = std::max<int64_t>(1, cores / 2);
  EXPECT_EQ(workers(5, {0, 2, 2}), 5) << "as given";
  EXPECT_EQ(workers(0, {0, 1, 1}), 0) << "alone: the loader's own rule";
  EXPECT_EQ(workers(0, {0, 2, 2}), std::clamp<int64_t>(HostRank{.sharing = 2}.threads() / 2, 1, half));
  EXPECT_EQ(workers(0, {0, 2, 2, 1}),
            std::clamp<int64_t>(HostRank{.sharing = 2, .overlapping = 1}.threads() / 2, 1, half));
}

// A teacher reads the images that the model does.
TEST(StepOfARun, ImagesForATeacherAreMadeOnTheCpu) {
  for (const DistillKind kind : {DistillKind::kNone, DistillKind::kSoft, DistillKind::kHard}) {
    TrainConfig config = tiny_config(1);
    config.loader.on_device = OnDevice::kImages;
    config.distill.kind = kind;
    if (kind != DistillKind::kNone) config.distill.teacher = "teacher";
    const RunSetup setup = set_up(config);
    const bool taught = kind != DistillKind::kNone;
    EXPECT_EQ(setup.step.images, taught ? ImageForm::kFloats : ImageForm::kPixels) << enum_name(kind);
    EXPECT_EQ(setup.images.find("the teacher reads them too") != std::string::npos, taught) << setup.images;
  }
}

TEST(StepOfARun, EpochsMakeSteps) {
  const auto total = [](int64_t epochs, int64_t steps, int64_t batch) {
    TrainConfig config = tiny_config(steps);
    config.train.epochs = epochs, config.train.batch = batch, config.data.val_fraction = 0;
    config.data.val = "synthetic:3x8x8x4x8";
    const RunSetup setup = set_up(config);
    return std::pair{setup.total_steps, setup.steps_per_epoch};
  };
  const int64_t images = open_dataset("synthetic:3x8x8x4x40", Part::kTrain)->size();
  const int64_t each = images / 8;
  EXPECT_EQ(total(3, 0, 8), std::pair(3 * each, each));
  EXPECT_EQ(total(3, 7, 8), std::pair(int64_t{7}, each));
  EXPECT_EQ(total((int64_t{1} << 53) - 1, 0, images).first, (int64_t{1} << 53) - 1);
  const Error error = error_of([&] { total(int64_t{1} << 53, 0, images); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.message().find("train.epochs is 9007199254740992: more steps"), std::string::npos);
  EXPECT_EQ(error_of([&] { total(INT64_MAX, 0, 8); }).kind(), ErrorKind::kConfig) << "the product overflows";
  EXPECT_EQ(total(INT64_MAX, 5, 8).first, 5);
}

// Both heads of a distilled model are trained beside its adapters.
TEST(StepOfARun, AdaptersLeaveBothHeadsFree) {
  const StepConfig step = step_with([](TrainConfig& c) {
    c.lora.rank = 2;
    set_model(c, "distilled", [](VitConfig& m) { m.distilled = true; });
  });
  std::set<std::string> trained;
  for (const TrainedParam& param : step.trained) trained.insert(param.name);
  EXPECT_TRUE(trained.contains("head.weight") && trained.contains("head_dist.bias"));
  EXPECT_FALSE(trained.contains("norm.weight"));
}

// Another micro-batch than the run's own bounds the batches of its evaluations, too.
TEST(StepOfARun, LoadersHoldTheBatchesOfBoth) {
  TrainConfig config = tiny_config(1);
  config.train.batch = 24, config.train.micro_batch = 12, config.train.eval_batch = 5;
  const RunSetup setup = set_up(config);
  const auto bytes = [&](int64_t trained, int64_t evaluated) {
    LoaderSettings train = setup.loader_settings(Purpose::kTrain),
                   eval = setup.loader_settings(Purpose::kEval);
    train.micro_batch = trained, eval.micro_batch = evaluated;
    return Loader::staging_bytes(train) + (evaluated > 0 ? Loader::staging_bytes(eval) : 0);
  };
  EXPECT_LT(bytes(6, 5), bytes(12, 5));
  EXPECT_EQ(setup.loader_bytes(), bytes(12, 5));
  for (const auto& [micro, evaluated] : {std::pair{12, 5}, {24, 5}, {6, 5}, {5, 5}, {4, 4}, {1, 1}})
    EXPECT_EQ(setup.loader_bytes(micro), bytes(micro, evaluated)) << micro;
  config.train.micro_batch = 4;
  const RunSetup small = set_up(config);
  EXPECT_EQ(small.loader_bytes(), bytes(4, 5)) << "its own evaluations keep their batch";
  RunSetup alone = set_up(config);
  alone.data.val.reset();
  EXPECT_EQ(alone.loader_bytes(), bytes(4, 0));
  EXPECT_EQ(alone.loader_bytes(2), bytes(2, 0));
}

// What the bits of a result depend on besides the settings.
TEST(DeviceFacts, NameTheDeviceAndItsKernels) {
  const TrainPlace place{.folder = "x", .resume = ResumeMode::kFresh, .generator = "vitrail 1.2"};
  DeviceInfo device = cpu_device(1);
  device.isa = 2, device.kernels = nullptr;
  EXPECT_EQ(device_facts(place, cpu_backend(), device),
            (Json{{"version", "vitrail 1.2"}, {"backend", "cpu"}, {"isa", 2}}));
  device.shares_host_memory = false, device.name = "a card";
  auto table = std::make_shared<KernelTable>();
  table->set({{.op = "linear", .m = 8, .n = 16, .k = 16}, {"plain"}});
  device.kernels = table;
  const Json facts = device_facts(place, cpu_backend(), device);
  EXPECT_EQ(facts.at("card"), "a card");
  EXPECT_EQ(facts.at("kernels"), strf("%016llx", static_cast<unsigned long long>(table->hash())));
}

}  // namespace
}  // namespace vitrail::testing
