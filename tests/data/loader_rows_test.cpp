// Every row of a batch, however it is cut into tasks: its image, its target, what it is mixed with.
#include "data/augment/mix.h"
#include "data/loader_helpers.h"

namespace vitrail {
namespace {

using test::Copy;
using test::FakeDataset;
using test::small_settings;
using test::take;

TEST(LoaderRows, AreAllFilledHoweverTheBatchIsCut) {
  const FakeDataset data(64, 5);
  for (const bool train : {false, true}) {
    LoaderSettings settings = small_settings();
    settings.micro_batch = 10;
    std::vector<Copy> wanted;
    for (const int64_t chunk : {1, 3, 4, 7, 10, 100}) {
      settings.chunk = chunk;
      const auto loader = train ? make_train_loader(data, settings) : make_eval_loader(data, settings);
      const std::vector<Copy> found = take(*loader, 5);
      if (wanted.empty()) wanted = found;
      EXPECT_TRUE(found == wanted) << chunk;
    }
  }
}

TEST(LoaderRows, SmoothedTargetsSumToOneAndEvaluationHasPlainOnes) {
  const FakeDataset data(64, 5);
  LoaderSettings settings = small_settings();
  settings.smoothing = 0.2;
  const auto train = make_train_loader(data, settings), eval = make_eval_loader(data, settings);
  const Copy smooth = take(*train, 1)[0], plain = take(*eval, 1)[0];
  for (size_t i = 0; i < 8; ++i)
    for (int32_t c = 0; c < 5; ++c) {
      const size_t at = i * 5 + static_cast<size_t>(c);
      EXPECT_FLOAT_EQ(smooth.targets[at], smooth.labels[i] == c ? 0.84f : 0.04f);
      EXPECT_EQ(plain.targets[at], plain.labels[i] == c ? 1.0f : 0.0f);
    }
}

// The draws of a group depend on its place in the epoch, counted in groups.
TEST(LoaderRows, AGroupIsMixedAsItsPlaceInTheEpochSays) {
  const FakeDataset data(64, 5);
  LoaderSettings settings = small_settings();
  settings.augment.mixup = 1;
  settings.augment.mix_group = 4;
  const auto loader = make_train_loader(data, settings);
  int mixed = 0;
  for (const Copy& batch : take(*loader, 10))
    for (size_t i = 0; i < 8; ++i) {
      const size_t partner = i / 4 * 4 + 3 - i % 4;
      if (batch.labels[i] == batch.labels[partner]) continue;
      const int64_t group = batch.step % 8 * 2 + static_cast<int64_t>(i) / 4;
      Draw draw(settings.seed, batch.epoch, group, "mix");
      const double lambda = draw_mix(settings.augment, {8, 8}, draw).lambda;
      const float* const target = batch.targets.data() + i * 5;
      EXPECT_NEAR(target[batch.labels[i]], lambda, 1e-6) << batch.index << " " << i;
      EXPECT_NEAR(target[batch.labels[partner]], 1 - lambda, 1e-6);
      ++mixed;
    }
  EXPECT_GT(mixed, 20);
}

}  // namespace
}  // namespace vitrail
