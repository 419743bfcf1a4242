// Images made by the step from pixels and recipes are those of the CPU's own path, bit for bit; so is a run
// on them.
#include <gtest/gtest.h>

#include <cstring>

#include "backend/ref/kernels.h"
#include "cuda_test.h"
#include "data/fake_dataset.h"
#include "data/image_form.h"
#include "ops/make_images.h"
#include "runtime/executor.h"
#include "runtime/transfer.h"
#include "train/helpers/planned_memory.h"

namespace vitrail::testing {
namespace {

using test::FakeDataset;

struct VaryCase {
  const char* name;
  std::function<void(AugmentConfig&)> change;
  bool storable = true;
};

const std::vector<VaryCase>& vary_cases() {
  static const std::vector<VaryCase> cases = {
      {"nothing", [](AugmentConfig& a) { a.hflip = 0; }},
      {"flips", [](AugmentConfig& a) { a.hflip = a.vflip = 0.5; }},
      {"pad", [](AugmentConfig& a) { a.crop = CropKind::kPad, a.pad = 3; }},
      {"reflect and flips",
       [](AugmentConfig& a) {
         a.crop = CropKind::kPad, a.pad_mode = PadMode::kReflect, a.pad = 5, a.vflip = 0.5;
       }},
      {"pad wider than the image", [](AugmentConfig& a) { a.crop = CropKind::kPad, a.pad = 20; }},
      {"reflect wider than the image",
       [](AugmentConfig& a) { a.crop = CropKind::kPad, a.pad_mode = PadMode::kReflect, a.pad = 20; }},
      {"erase", [](AugmentConfig& a) { a.erase = 0.7, a.erase_count = 4; }},
      {"mixup", [](AugmentConfig& a) { a.mixup = 0.8; }},
      {"cutmix", [](AugmentConfig& a) { a.cutmix = 1; }},
      {"all together",
       [](AugmentConfig& a) {
         a.crop = CropKind::kPad, a.vflip = 0.3, a.erase = 0.5, a.erase_count = 2;
         a.mixup = 0.8, a.cutmix = 1, a.mix_prob = 0.8, a.repeats = 2;
       }},
      {"resized and policy",
       [](AugmentConfig& a) {
         a.crop = CropKind::kResized, a.policy = "rand-m9-mstd0.5-inc1", a.erase = 0.5, a.mixup = 0.8;
       },
       false},
      {"jitter, grey and blur",
       [](AugmentConfig& a) {
         a.colour_jitter = {0.3}, a.grayscale = 0.2, a.blur = 0.5, a.crop = CropKind::kPad, a.cutmix = 1;
       },
       false},
  };
  return cases;
}

LoaderSettings settings_of(const VaryCase& c, int64_t channels) {
  LoaderSettings s;
  s.loader.workers = 2;
  s.preprocess.height = s.preprocess.width = s.preprocess.resize = 12;
  s.seed = 5;
  s.micro_batch = 8;
  s.accumulation = 2;
  s.channels = channels;
  if (channels == 1) s.preprocess.mean = s.preprocess.std = {0.4};
  s.classes = 5;
  s.smoothing = 0.1;
  s.augment.mix_group = 4;
  c.change(s.augment);
  return s;
}

// The op on its own, in f32 on the reference backend.
class Maker {
 public:
  Maker(const LoaderSettings& s, int64_t rows)
      : plan_(plan_execution(program(s, rows), ref_backend(), {})),
        store_(plan_, rank_),
        executor_(plan_, store_, rank_),
        levels_(image_levels(s)) {}

  std::vector<float> make(std::span<const uint8_t> pixels, std::span<const ImageRecipe> recipes) {
    write_bytes(rank_, executor_.input("pixels"), std::as_bytes(pixels));
    write_bytes(rank_, executor_.input("recipes"), std::as_bytes(recipes));
    write_floats(rank_, executor_.input("levels"), levels_);
    executor_.run();
    const TensorView out = executor_.output("images");
    return {out.as<float>(), out.as<float>() + out.desc().elems()};
  }

 private:
  static Program program(const LoaderSettings& s, int64_t rows) {
    Builder b;
    const Dim c('C', s.channels);
    b.output(
        "images",
        b.add<MakeImagesOp>(
            {b.input("pixels",
                     {DType::kU8, {{'R', rows}, {'Y', s.preprocess.height}, {'X', s.preprocess.width}, c}}),
             b.input("recipes", {DType::kI32, {{'B', s.micro_batch}, {'Z', kRecipeWords}}}),
             b.input("levels", {DType::kF32, {c, {'Z', 256}}})},
            "images", DType::kF32));
    return b.finish();
  }

  RankContext rank_{DeviceInfo()};
  ExecutionPlan plan_;
  PersistentStore store_;
  Executor executor_;
  std::vector<float> levels_;
};

template <typename T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// `count` batches in both forms.
void expect_same_images(const Dataset& data, LoaderSettings settings, ImageForm form, int count) {
  auto floats = make_train_loader(data, settings);
  settings.form = form;
  auto recipes = make_train_loader(data, settings);
  std::vector<uint8_t> stored;
  if (form == ImageForm::kStored)
    read_stored_pixels(settings, data, [&](size_t, std::span<const uint8_t> pixels) {
      stored.insert(stored.end(), pixels.begin(), pixels.end());
    });
  Maker maker(settings, form == ImageForm::kStored ? data.size() : settings.micro_batch);
  for (int i = 0; i < count; ++i) {
    const Batch &wanted = floats->next(), &found = recipes->next();
    const std::vector<float> made =
        maker.make(form == ImageForm::kStored ? stored : found.pixels, found.recipes);
    EXPECT_TRUE(same_bits(wanted.images, std::span<const float>(made))) << "batch " << i;
    EXPECT_TRUE(same_bits(wanted.targets, found.targets)) << "batch " << i;
    EXPECT_TRUE(same_bits(wanted.weights, found.weights)) << "batch " << i;
    EXPECT_TRUE(same_bits(wanted.samples, found.samples)) << "batch " << i;
  }
}

TEST(ImageRecipe, MakesTheImagesOfTheCpu) {
  const auto same_size = open_dataset("synthetic:3x12x12x5x37", Part::kTrain);
  const FakeDataset uneven(37, 5, 12);  // every third of the model's size
  for (const VaryCase& c : vary_cases())
    for (int64_t channels : {3, 1}) {
      SCOPED_TRACE(strf("%s, %lld channels", c.name, static_cast<long long>(channels)));
      const LoaderSettings settings = settings_of(c, channels);
      expect_same_images(*same_size, settings, ImageForm::kPixels, 6);
      expect_same_images(uneven, settings, ImageForm::kPixels, 6);
      if (c.storable) expect_same_images(*same_size, settings, ImageForm::kStored, 6);
    }
}

TEST(ImageRecipe, SkippedSamplesAreZeroAndStayUnmixed) {
  FakeDataset data(40, 5, 12);
  data.broken = {3, 4, 11, 12, 13, 30};
  for (const VaryCase& c : vary_cases()) {
    SCOPED_TRACE(c.name);
    LoaderSettings settings = settings_of(c, 3);
    settings.loader.on_error = OnError::kSkip;
    settings.loader.max_bad_fraction = 1;
    expect_same_images(data, settings, ImageForm::kPixels, 8);
  }
}

TrainConfig run_config() {
  TrainConfig config = tiny_config(10);
  config.augment.crop = CropKind::kPad;
  config.augment.hflip = 0.5;
  config.augment.erase = 0.25;
  config.augment.mixup = 0.8;
  config.augment.cutmix = 1;
  config.augment.mix_group = 4;
  config.train.micro_batch = 4;
  config.train.eval_every = 5;
  config.train.smoothing = 0.1;
  return config;
}

void expect_same_runs(const RunOptions& options) {
  for (ComputeType dtype : {ComputeType::kF32, ComputeType::kBF16}) {
    TrainConfig config = run_config();
    config.train.dtype = dtype;
    config.loader.on_device = OnDevice::kOff;
    const WorkFolder work;
    const Ran off = train(config, work / "off", options);
    for (OnDevice form : {OnDevice::kImages, OnDevice::kDataset}) {
      SCOPED_TRACE(strf("%s in %s", enum_name(form), enum_name(dtype)));
      config.loader.on_device = form;
      const Ran on = train(config, work / enum_name(form), options);
      EXPECT_EQ(on.losses(), off.losses());
      EXPECT_EQ(on.losses().size(), 10u);
      ASSERT_EQ(on.evals.size(), off.evals.size());
      EXPECT_EQ(on.evals.back().loss, off.evals.back().loss);
      EXPECT_TRUE(differing(state_of(work / enum_name(form)), state_of(work / "off")).empty());
      EXPECT_TRUE(on.noted(form == OnDevice::kDataset ? "all 40 of them kept" : "8-bit pixels"));
    }
  }
}

TEST(ImageRecipe, RunsAreTheSameInEveryForm) {
  expect_same_runs({});
}

using CudaImageRecipe = CudaTest;

TEST_F(CudaImageRecipe, RunsAreTheSameInEveryForm) {
  expect_same_runs({.cuda = true});
}

TEST_F(CudaImageRecipe, PixelsAreCountedAndASmallDatasetIsKept) {
  TrainConfig config = run_config();
  for (OnDevice form : {OnDevice::kImages, OnDevice::kDataset}) {
    config.loader.on_device = form;
    expect_as_planned(config, cuda_backend(), cuda_device());
  }
  config.loader.on_device = OnDevice::kAuto;
  const WorkFolder work;
  EXPECT_TRUE(train(config, work / "run", {.cuda = true}).noted("all 40 of them kept"));
}

// A dataset is brought to the device in pieces of 16 MiB: this one is two.
TEST(ImageRecipe, ADatasetOfSeveralPiecesIsKeptWhole) {
  TrainConfig config = tiny_config(4);
  config.data.train = "synthetic:3x8x8x4x100000";
  config.loader.on_device = OnDevice::kOff;
  const WorkFolder work;
  const Ran off = train(config, work / "off");
  config.loader.on_device = OnDevice::kDataset;
  const Ran on = train(config, work / "on");
  EXPECT_TRUE(on.noted("all 100000 of them kept"));
  EXPECT_EQ(on.losses(), off.losses());
}

TEST(ImageRecipe, ARunResumesInAnotherForm) {
  TrainConfig config = run_config();
  config.loader.on_device = OnDevice::kDataset;
  const WorkFolder work;
  const Ran whole = train(config, work / "whole");
  train(config, work / "parts", {.stop_after = 4});
  for (int64_t stop : {7, 0}) {
    config.loader.on_device = stop ? OnDevice::kDataset : OnDevice::kImages;
    train(config, work / "parts", {.resume = ResumeMode::kStrict, .stop_after = stop});
  }
  EXPECT_TRUE(differing(state_of(work / "parts"), state_of(work / "whole")).empty());
  EXPECT_EQ(metrics_of(work / "parts"), metrics_of(work / "whole"));
}

TEST(ImageRecipe, PixelsAreCountedAndHandedOver) {
  for (OnDevice form : {OnDevice::kImages, OnDevice::kDataset}) {
    TrainConfig config = run_config();
    config.loader.on_device = form;
    expect_as_planned(config, ref_backend(), DeviceInfo());
    const RunSetup setup = set_up(config);
    const StepPlan plan = plan_step(setup.step, ref_backend(), DeviceInfo());
    const size_t levels = 3 * 256 * sizeof(float), pixels = 40 * 3 * 8 * 8;
    EXPECT_EQ(plan.layout->bytes(Category::kStaging), levels + (form == OnDevice::kDataset ? pixels : 0));
  }
}

TEST(ImageRecipe, WhatNoConfigAsksForIsRefused) {
  TrainConfig config = run_config();
  config.loader.on_device = OnDevice::kImages;
  const RunSetup setup = set_up(config);
  const StepPlan plan = plan_step(setup.step, ref_backend(), DeviceInfo());
  RankContext rank{DeviceInfo()};
  TrainStep step(plan, rank);
  const std::vector<float> targets(16), weights(4);
  const std::vector<uint8_t> pixels(4 * 3 * 8 * 8);
  const auto refused = [&](const ImageRecipe& bad) {
    std::vector<ImageRecipe> recipes(4);
    recipes[2] = bad;
    try {
      step.run_micro({.images = {},
                      .targets = targets,
                      .weights = weights,
                      .teacher = {},
                      .pixels = pixels,
                      .recipes = recipes});
    } catch (const Error& error) {
      return error.kind() == ErrorKind::kInternal;
    }
    return false;
  };
  EXPECT_FALSE(refused({.source = 3}));
  EXPECT_TRUE(refused({.source = 4}));
  EXPECT_TRUE(refused({.source = 0, .erased = 5}));
  EXPECT_TRUE(refused({.source = 0, .mix = ImageMix::kCut, .partner = 4}));
  EXPECT_TRUE(refused({.source = 0, .mix = ImageMix::kBlend, .partner = -1}));
}

}  // namespace
}  // namespace vitrail::testing
