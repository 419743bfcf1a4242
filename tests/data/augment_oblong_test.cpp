// Images that are not square: height and width are never confused.
#include <algorithm>

#include "data/augment/augmenter.h"
#include "data/image_helpers.h"

namespace vitrail {
namespace {

constexpr int64_t kHeight = 6, kWidth = 14, kPlane = kHeight * kWidth;

PreprocessConfig oblong() {
  PreprocessConfig preprocess;
  preprocess.height = kHeight;
  preprocess.width = kWidth;
  preprocess.mean = preprocess.std = {0.5, 0.5, 0.5};
  return preprocess;
}

AugmentConfig still() {
  AugmentConfig config;
  config.crop = CropKind::kPad;
  config.pad = 0;
  config.hflip = 0;
  return config;
}

TEST(Oblong, AnImageToBePaddedCoversTheLongerSide) {
  EXPECT_EQ(Augmenter(still(), oblong(), 3, 1).least_side(0, 0), kWidth);
}

// White images become 1 everywhere; what is erased is 0, the same box in every plane.
TEST(Oblong, TheSameBoxIsErasedInEveryPlane) {
  AugmentConfig config = still();
  config.erase = 1;
  config.erase_area = {0.1, 0.2};
  config.erase_mode = EraseMode::kConst;
  const Augmenter augmenter(config, oblong(), 3, 1);
  Image white = Image::blank(kHeight, kWidth, 3);
  std::fill(white.pixels.begin(), white.pixels.end(), uint8_t{255});
  for (int64_t position = 0; position < 20; ++position) {
    std::vector<float> planes(3 * kPlane, -7.0f);
    augmenter.fill(white, 0, position, planes);
    const auto plane = [&](int64_t c) {
      return std::vector<float>(planes.begin() + c * kPlane, planes.begin() + (c + 1) * kPlane);
    };
    const auto erased = std::count(planes.begin(), planes.begin() + kPlane, 0.0f);
    EXPECT_GE(erased, kPlane / 20);
    EXPECT_LE(erased, kPlane / 3);
    EXPECT_EQ(std::count(planes.begin(), planes.begin() + kPlane, 1.0f), kPlane - erased);
    EXPECT_EQ(plane(1), plane(0));
    EXPECT_EQ(plane(2), plane(0));
  }
}

TEST(Oblong, RecipesFlipRowsAndColumnsByTheirOwnChance) {
  for (const bool rows : {false, true}) {
    AugmentConfig config = still();
    (rows ? config.vflip : config.hflip) = 1;
    ImageRecipe recipe;
    Augmenter(config, oblong(), 3, 1).describe(0, 3, recipe);
    EXPECT_EQ(static_cast<bool>(recipe.flip_rows), rows);
    EXPECT_EQ(static_cast<bool>(recipe.flip_columns), !rows);
  }
}

}  // namespace
}  // namespace vitrail
