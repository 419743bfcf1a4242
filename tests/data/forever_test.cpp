// What a run that a later version resumes must find again: streams of draws, orders of samples, fingerprints
// and synthetic pixels, computed independently in Python.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/cores.h"
#include "data/augment/draw.h"
#include "data/dataset_files.h"
#include "data/decode.h"
#include "data/decoding_memory.h"
#include "data/fake_dataset.h"
#include "data/loader.h"
#include "data/loader_helpers.h"
#include "data/sampler.h"
#include "data/statistics.h"

namespace vitrail {
namespace {

using test::FakeDataset;
using Indices = std::vector<int64_t>;

TEST(Forever, Draws) {
  EXPECT_EQ(name_key("order"), 0x6be60d7281a829f7u);
  EXPECT_EQ(counter_hash(1, 2), 0xf893a2eefb32555eu);
  EXPECT_EQ(draw_key(7, 2, 5, "crop"), 0x0c6a9e688cd0d329u);
  Draw draw(7, 2, 5, "crop");
  EXPECT_DOUBLE_EQ(draw.uniform(), 0.5904855149654616);
  EXPECT_EQ(draw.integer(-3, 11), 0);
  EXPECT_NEAR(draw.normal(), -0.3886917780980076, 1e-12);
  Draw scaled(7, 2, 5, "crop");
  EXPECT_DOUBLE_EQ(scaled.uniform(-2, 6), -2 + 8 * 0.5904855149654616);
}

TEST(Forever, OrdersOfSamples) {
  Indices ten, thousand;
  for (int64_t i = 0; i < 10; ++i) ten.push_back(permuted(5, 10, i));
  for (int64_t i = 0; i < 6; ++i) thousand.push_back(permuted(77, 1000, i));
  EXPECT_EQ(ten, (Indices{8, 5, 1, 0, 6, 4, 7, 2, 3, 9}));
  EXPECT_EQ(thousand, (Indices{923, 660, 435, 495, 379, 765}));
  const auto at = [](const Sampler& sampler, int64_t count) {
    Indices samples;
    for (int64_t i = 0; i < count; ++i) samples.push_back(sampler.sample_at(1, i));
    return samples;
  };
  EXPECT_EQ(at(Sampler(FakeDataset(10, 2), Order::kShuffled, 9), 12),
            (Indices{2, 3, 1, 6, 9, 7, 8, 4, 0, 5, 1, 6}));
  EXPECT_EQ(at(Sampler(FakeDataset(10, 2), Order::kShuffled, 9, 3), 7), (Indices{2, 2, 2, 3, 3, 3, 1}));
  EXPECT_EQ(at(Sampler(FakeDataset(7, 3), Order::kBalanced, 9), 9), (Indices{5, 3, 1, 2, 6, 4, 0, 4, 2}));
  EXPECT_EQ(sample_of(FakeDataset(50, 5), 6, 3, ""), (Indices{17, 27, 23, 38, 4, 34}));
}

TEST(Forever, FingerprintsAndSyntheticPixels) {
  EXPECT_EQ(FakeDataset(3, 2).fingerprint(), 0x1a2f119e61860dccu);
  const Image image = open_dataset("synthetic:3x2x3x2x10", Part::kTrain)->load(5, 0);
  const double expected[] = {196.201, 53.375, 92.029, 148.459, 147.581, 82.507, 155.289, 135.264, 73.732,
                             67.183,  92.852, 195.16, 112.173, 67.221,  59.695, 232.161, 153.614, 190.591};
  ASSERT_EQ(image.pixels.size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i)
    EXPECT_EQ(image.pixels[i], static_cast<uint8_t>(std::clamp(expected[i], 0.0, 255.0))) << i;
}

TEST(LoaderTimes, WorkAddsUpUntilItIsAskedFor) {
  FakeDataset data(64, 5);
  auto loader = make_eval_loader(data, test::small_settings(1));
  test::take(*loader, static_cast<int>(loader->batches()));
  EXPECT_GT(loader->work_seconds(), 0);
  EXPECT_EQ(loader->work_seconds(), 0) << "all batches are made";
  const double cpu = loader->cpu_seconds();
  EXPECT_GT(cpu, 0);
  EXPECT_EQ(loader->cpu_seconds(), cpu) << "never reset";
}

// Half of the cores that the process may run on, one at least and sixteen at most.
TEST(LoaderTimes, WorkersByDefault) {
  const test::DataFolder folder;
  folder.file("a/1.png", test::png(1));
  const auto data = open_dataset("folder:" + folder.path(), Part::kTrain);
  const size_t workers = std::clamp<size_t>(allowed_cores().size() / 2, 1, 16);
  EXPECT_EQ(Loader::decoding_bytes(LoaderConfig{}, *data), workers * largest_decoding(*data));
}

// The largest that deflate can pack: a white lie of a ratio would refuse it.
TEST(DecodeDensity, AnEmptySheetIsAnImage) {
  const Image image = decode_image(encode_png(Image::blank(2000, 2000, 1)));
  EXPECT_EQ(image.width, 2000);
}

}  // namespace
}  // namespace vitrail
