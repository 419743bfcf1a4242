#include <algorithm>

#include "data/augment/mix.h"
#include "data/augment/windows.h"
#include "data/fake_dataset.h"

namespace vitrail {
namespace {

TEST(Erase, FillsByMode) {
  for (const EraseMode mode : {EraseMode::kConst, EraseMode::kRand, EraseMode::kPixel}) {
    SCOPED_TRACE(enum_name(mode));
    AugmentConfig config;
    config.erase = 1;
    config.erase_mode = mode;
    std::vector<float> image(3 * 20 * 30, 9.0f);
    Draw draw(1, 2, 3, "erase");
    random_erase(image, {20, 30}, config, draw);
    std::vector<size_t> erased(3);
    std::set<float> values;
    for (size_t i = 0; i < image.size(); ++i)
      if (image[i] != 9.0f) {
        ++erased[i / 600];
        values.insert(image[i]);
      }
    EXPECT_GE(erased[0], 9u);    // 0.02 of 600, rounded sides
    EXPECT_LE(erased[0], 220u);  // 1/3
    EXPECT_TRUE(erased[0] == erased[1] && erased[1] == erased[2]);
    const size_t distinct = mode == EraseMode::kConst ? 1 : mode == EraseMode::kRand ? 3 : 3 * erased[0];
    EXPECT_EQ(values.size(), distinct);
  }
}

TEST(Erase, HappensAsOftenAsAsked) {
  AugmentConfig config;
  config.erase = 0.25;
  int erased = 0;
  for (int64_t position = 0; position < 2000; ++position) {
    std::vector<float> image(64, 9.0f);
    Draw draw(1, 0, position, "erase");
    random_erase(image, {8, 8}, config, draw);
    erased += std::ranges::count(image, 0.0f) > 0;
  }
  EXPECT_NEAR(erased, 500, 90);
}

TEST(Mix, EqualsTimm) {
  test::for_each_line("../augment/mix.txt", [](std::istringstream& fields) {
    Mix mix;
    double given;
    fields >> given >> mix.cut >> mix.box.top >> mix.box.left >> mix.box.height >> mix.box.width >>
        mix.lambda;
    std::vector<float> images(4 * 2 * 4 * 6), targets(12, 0.1f / 3), weights(4, 1.0f);
    for (size_t i = 0; i < images.size(); ++i)
      images[i] = static_cast<float>(test::hashed(static_cast<uint32_t>(i), 2)) / 128 - 1;
    for (size_t i = 0; i < 4; ++i) targets[i * 3 + std::vector<size_t>{0, 2, 1, 0}[i]] = 0.9f + 0.1f / 3;
    mix_samples(mix, {images, targets, weights, {4, 6}});
    float expected;
    for (float target : targets) EXPECT_NEAR(target, (fields >> expected, expected), 2e-7);
    for (size_t i = 0; i < images.size(); i += 7)
      EXPECT_NEAR(images[i], (fields >> expected, expected), 2e-7) << i;
    EXPECT_EQ(weights, std::vector<float>(4, 1.0f));
  });
}

TEST(Mix, DrawsByTheConfig) {
  AugmentConfig config;
  config.mixup = 0.8;
  config.cutmix = 1;
  config.mix_prob = 0.75;
  config.mix_switch = 0.25;
  int none = 0, cut = 0;
  for (int64_t group = 0; group < 4000; ++group) {
    Draw draw(1, 0, group, "mix");
    const Mix mix = draw_mix(config, {12, 20}, draw);
    none += mix.lambda == 1 && !mix.cut;
    cut += mix.cut;
    ASSERT_TRUE(mix.lambda >= 0 && mix.lambda <= 1);
    if (!mix.cut) continue;
    ASSERT_TRUE(mix.box.top >= 0 && mix.box.top + mix.box.height <= 12);
    ASSERT_TRUE(mix.box.left >= 0 && mix.box.left + mix.box.width <= 20);
    EXPECT_DOUBLE_EQ(mix.lambda, 1 - static_cast<double>(mix.box.height * mix.box.width) / 240);
  }
  EXPECT_NEAR(none, 1000, 120);
  EXPECT_NEAR(cut, 750, 110);
  config.mixup = 0;
  Draw draw(9);
  config.mix_prob = 1;
  EXPECT_TRUE(draw_mix(config, {12, 20}, draw).cut);
}

TEST(Mix, LeavesPairsWithASkippedSampleAlone) {
  std::vector<float> images = {1, 2, 3, 4}, targets = {1, 2, 3, 4}, weights = {1, 1, 1, 0};
  mix_samples({.lambda = 0.5, .cut = false, .box = {}}, {images, targets, weights, {1, 1}});
  EXPECT_EQ(images, (std::vector<float>{1, 2.5f, 2.5f, 4}));
  EXPECT_EQ(targets, images);
  EXPECT_EQ(weights, (std::vector<float>{1, 1, 1, 0}));
}

}  // namespace
}  // namespace vitrail
