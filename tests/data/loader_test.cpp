#include "data/loader.h"

#include <algorithm>

#include "data/loader_helpers.h"
#include "data/preprocess.h"

namespace vitrail {
namespace {

using test::Copy;
using test::FakeDataset;
using test::small_settings;
using test::take;

LoaderSettings full_settings(int64_t workers) {
  LoaderSettings s = small_settings(workers);
  s.augment.crop = CropKind::kResized;
  s.augment.policy = "rand-m9-mstd0.5-inc1";
  s.augment.colour_jitter = {0.3};
  s.augment.erase = 0.5;
  s.augment.mixup = 0.8;
  s.augment.cutmix = 1;
  s.augment.mix_group = 4;
  s.augment.repeats = 2;
  s.smoothing = 0.1;
  s.accumulation = 2;
  return s;
}

TEST(Loader, WorkersDoNotChangeBatches) {
  const FakeDataset data(70, 5);
  const auto reference = take(*make_train_loader(data, full_settings(1)), 20);
  EXPECT_EQ(reference[19].step, 9);
  EXPECT_EQ(reference[19].micro, 1);
  EXPECT_EQ(reference[19].epoch, 2);  // 70 samples are 4 steps of 16
  for (int64_t workers : {2, 3, 7}) {
    LoaderSettings settings = full_settings(workers);
    settings.loader.prefetch = workers;
    EXPECT_TRUE(take(*make_train_loader(data, settings), 20) == reference) << workers;
  }
}

// A memory source that records its allocations.
class Counted : public MemorySource {
 public:
  std::byte* allocate(size_t bytes) override {
    taken.push_back(bytes);
    return new (std::align_val_t{Buffer::kAlignment}) std::byte[bytes];
  }
  void release(std::byte* data) override {
    ++given_back;
    ::operator delete[](data, std::align_val_t{Buffer::kAlignment});
  }
  std::vector<size_t> taken;
  size_t given_back = 0;
};

TEST(Loader, BatchesLieInTheMemoryItIsGiven) {
  const FakeDataset data(70, 5);
  LoaderSettings settings = full_settings(2);
  const auto reference = take(*make_train_loader(data, settings), 6);
  Counted memory;
  settings.memory = &memory;
  EXPECT_TRUE(take(*make_train_loader(data, settings), 6) == reference);
  EXPECT_EQ(memory.taken, std::vector<size_t>(static_cast<size_t>(settings.loader.prefetch) + 1,
                                              BatchParts::bytes(settings)));
  EXPECT_EQ(memory.given_back, memory.taken.size());
}

TEST(Loader, SeekGoesOnExactly) {
  const FakeDataset data(70, 5);
  auto loader = make_train_loader(data, full_settings(3));
  const auto reference = take(*loader, 20);
  for (int64_t step : {7, 0, 3, 3}) {
    loader->seek(step);
    const auto again = take(*loader, 4);
    for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(again[i] == reference[static_cast<size_t>(step) * 2 + i]);
  }
  EXPECT_TRUE(take(*loader, 1)[0] == reference[10]);
}

Batch wait_for_peek(Loader& loader) {
  for (;;) {
    if (const std::optional<Batch> batch = loader.peek()) return *batch;
    std::this_thread::yield();
  }
}

TEST(Loader, PeeksWithoutTaking) {
  const FakeDataset data(70, 5);
  LoaderSettings settings = full_settings(2);
  const auto reference = take(*make_train_loader(data, settings), 12);
  settings.loader.prefetch = 1;
  auto loader = make_train_loader(data, settings);
  for (size_t i = 0; i < 8; ++i) {
    const Batch ahead = wait_for_peek(*loader);
    EXPECT_TRUE(test::copy_of(ahead) == reference[i]) << i;
    EXPECT_TRUE(test::copy_of(wait_for_peek(*loader)) == reference[i]) << "again " << i;
    const Batch& batch = loader->next();
    EXPECT_EQ(batch.images.data(), ahead.images.data());
    wait_for_peek(*loader);
    EXPECT_TRUE(test::copy_of(batch) == reference[i]) << "still there " << i;
  }
  loader->seek(1);
  EXPECT_TRUE(test::copy_of(wait_for_peek(*loader)) == reference[2]);
  loader->seek(5);
  EXPECT_TRUE(test::copy_of(wait_for_peek(*loader)) == reference[10]);
  EXPECT_TRUE(take(*loader, 1)[0] == reference[10]);

  auto evaluation = make_eval_loader(data, settings);
  take(*evaluation, static_cast<int>(evaluation->batches()));
  EXPECT_FALSE(evaluation->peek()) << "past the end";
}

// A step sees the same samples, augmented and mixed alike, however it is split into micro-batches and ranks.
TEST(Loader, RanksAndAccumulationShareAStep) {
  const FakeDataset data(70, 5);
  const auto whole = take(*make_train_loader(data, full_settings(2)), 4);
  for (int64_t rank : {0, 1}) {
    LoaderSettings settings = full_settings(2);
    settings.accumulation = 1;
    settings.global_batch = 2 * settings.micro_batch;
    settings.first_row = rank * settings.micro_batch;
    const auto part = take(*make_train_loader(data, settings), 2);
    for (size_t step : {0u, 1u}) {
      EXPECT_EQ(part[step].samples, whole[2 * step + static_cast<size_t>(rank)].samples);
      EXPECT_EQ(part[step].images, whole[2 * step + static_cast<size_t>(rank)].images);
      EXPECT_EQ(part[step].targets, whole[2 * step + static_cast<size_t>(rank)].targets);
    }
  }
}

TEST(Loader, AnEpochShowsEverySampleOnce) {
  const FakeDataset data(64, 5);
  auto loader = make_train_loader(data, small_settings());
  EXPECT_EQ(loader->steps_per_epoch(), 8);
  EXPECT_EQ(loader->batches(), -1);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::set<int64_t> seen;
    for (const Copy& batch : take(*loader, 8)) {
      EXPECT_EQ(batch.epoch, epoch);
      seen.insert(batch.samples.begin(), batch.samples.end());
      for (size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(batch.labels[i], batch.samples[i] % 5);
        EXPECT_EQ(batch.weights[i], 1);
        for (int32_t k = 0; k < 5; ++k)
          EXPECT_EQ(batch.targets[i * 5 + static_cast<size_t>(k)], k == batch.labels[i] ? 1.0f : 0.0f);
      }
    }
    EXPECT_EQ(seen.size(), 64u);
  }
}

TEST(Loader, SmoothsTargets) {
  FakeDataset data(16, 5);
  data.set_multi_label();
  data.set_labels(3, {1, 4});
  data.set_labels(4, {});
  LoaderSettings settings = small_settings();
  settings.smoothing = 0.2;
  auto loader = make_train_loader(data, settings);
  for (const Copy& batch : take(*loader, 2))
    for (size_t i = 0; i < 8; ++i) {
      const auto labels = data.labels(batch.samples[i]);
      EXPECT_EQ(batch.labels[i], labels.empty() ? -1 : labels[0]);
      for (int32_t k = 0; k < 5; ++k)
        EXPECT_FLOAT_EQ(batch.targets[i * 5 + static_cast<size_t>(k)],
                        std::ranges::count(labels, k) ? 0.84f : 0.04f);
    }
}

TEST(Loader, MixedTargetsAndWeightsAddUp) {
  FakeDataset data(70, 5);
  LoaderSettings settings = full_settings(2);
  settings.loader.class_weights = true;
  for (int64_t i = 0; i < 70; ++i) data.set_labels(i, {i < 40 ? 0 : static_cast<int32_t>(i % 5)});
  const std::vector<double> weights = class_weights(data);
  auto loader = make_train_loader(data, settings);
  for (const Copy& batch : take(*loader, 8))
    for (size_t i = 0; i < 8; ++i) {
      float sum = 0, weight = 0;
      for (size_t k = 0; k < 5; ++k) {
        sum += batch.targets[i * 5 + k];
        weight += static_cast<float>(weights[k]) * (batch.targets[i * 5 + k] - 0.02f) / 0.9f;
      }
      EXPECT_NEAR(sum, 1, 1e-5);
      EXPECT_NEAR(batch.weights[i], weight, 1e-4);
    }
}

TEST(Loader, EvaluationIsSequentialAndWhole) {
  for (int64_t channels : {1, 3}) {
    const FakeDataset data(21, 5, 12, channels);
    LoaderSettings settings = small_settings();
    settings.smoothing = 0.1;
    settings.augment.mixup = 1;  // not for evaluation; nor does 16 have to divide the batch
    auto loader = make_eval_loader(data, settings);
    ASSERT_EQ(loader->batches(), 3);
    std::vector<float> expected(3 * 64);
    for (int pass = 0; pass < 2; ++pass, loader->seek(0))
      for (const Copy& batch : take(*loader, 3))
        for (size_t i = 0; i < 8; ++i) {
          const int64_t position = batch.index * 8 + static_cast<int64_t>(i);
          EXPECT_EQ(batch.samples[i], position < 21 ? position : -1);
          EXPECT_EQ(batch.weights[i], position < 21 ? 1 : 0);
          EXPECT_EQ(batch.labels[i], position < 21 ? position % 5 : -1);
          std::ranges::fill(expected, 0.0f);
          if (position < 21)
            preprocess(with_channels(data.load(position, 0), 3), settings.preprocess, expected);
          EXPECT_TRUE(std::ranges::equal(expected, std::span(batch.images).subspan(i * 192, 192)));
        }
  }
}

TEST(Loader, EvaluationOverRanksCoversEachSampleOnce) {
  const FakeDataset data(21, 5);
  std::multiset<int64_t> seen;
  for (int64_t rank : {0, 1, 2}) {
    LoaderSettings settings = small_settings();
    settings.micro_batch = 4;
    settings.global_batch = 3 * settings.micro_batch;
    settings.first_row = rank * settings.micro_batch;
    auto loader = make_eval_loader(data, settings);
    ASSERT_EQ(loader->batches(), 2);
    for (const Copy& batch : take(*loader, 2)) seen.insert(batch.samples.begin(), batch.samples.end());
  }
  EXPECT_EQ(seen.count(-1), 3u);
  seen.erase(-1);
  EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), seen.size());
  EXPECT_EQ(seen.size(), 21u);
}

TEST(Loader, SaysBeforehandWhatItHolds) {
  const FakeDataset data(64, 5);
  const size_t before = Buffer::allocated(Category::kStaging);
  LoaderSettings settings = small_settings();
  settings.loader.prefetch = 5;
  {
    auto loader = make_train_loader(data, settings);
    auto second = make_eval_loader(data, settings);
    EXPECT_EQ(Buffer::allocated(Category::kStaging) - before, 2 * Loader::staging_bytes(settings));
    EXPECT_EQ(take(*second, 1)[0].samples[7], 7);
    take(*loader, 3);
  }
  EXPECT_EQ(Buffer::allocated(Category::kStaging), before);
  EXPECT_GE(Loader::staging_bytes(settings), 6u * 8 * 192 * sizeof(float));
}

TEST(Loader, StopsWhileWorkersAreBusy) {
  FakeDataset data(640, 5);
  data.delay = std::chrono::microseconds(300);
  for (int round = 0; round < 5; ++round) {
    auto loader = make_train_loader(data, small_settings(4));
    if (round > 0) loader->next();
    if (round > 2) loader->seek(round);
  }
  EXPECT_LT(data.loads, 5 * 8 * 8);
}

TEST(Loader, ReadsAheadAndMeasuresItsWaits) {
  FakeDataset data(64, 5);
  data.delay = std::chrono::microseconds(500);
  auto loader = make_train_loader(data, small_settings(1));
  loader->next();
  EXPECT_GT(loader->take_wait_seconds(), 0.0);
  EXPECT_EQ(loader->take_wait_seconds(), 0.0);
  // One batch is held and three are prefetched; no fifth.
  while (data.loads < 32) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(data.loads, 32);
}

}  // namespace
}  // namespace vitrail
