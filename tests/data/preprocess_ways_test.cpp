// The modes of transformers' image processors: sizes as transformers computes them, and what becomes of the
// rest of the crop.
#include "data/image_helpers.h"
#include "data/preprocess.h"
#include "data/preprocess_layout.h"

namespace vitrail {
namespace {

using test::noise;

Size laid_out(ResizeMode mode, int64_t resize, int64_t other, Size image) {
  PreprocessConfig config{.height = 44, .width = 40, .mode = mode, .resize = resize, .resize_longer = other};
  if (mode == ResizeMode::kShorterMost || mode == ResizeMode::kWithin)
    set_resize_sides({resize, other}, &config);
  return lay_out(Image::blank(image.height, image.width, 3), config).size;
}

// Numbers of transformers 5.22.2's own functions.
TEST(PreprocessWays, SizesAreThoseOfTransformers) {
  const struct {
    Size image, most, within, down, up, square, corner;
  } rows[] = {
      {{300, 451}, {32, 48}, {26, 40}, {44, 68}, {40, 55}, {21, 32}, {18, 27}},
      {{451, 300}, {48, 32}, {44, 29}, {68, 44}, {55, 40}, {32, 21}, {27, 18}},
      {{21, 29}, {35, 48}, {28, 40}, {44, 60}, {40, 55}, {23, 32}, {20, 27}},
      {{200, 200}, {36, 36}, {40, 40}, {44, 44}, {40, 40}, {32, 32}, {27, 27}},
      {{33, 999}, {2, 48}, {1, 40}, {1, 72}, {40, 1120}, {14, 32}, {1, 27}},
      {{37, 36}, {37, 36}, {41, 40}, {44, 44}, {40, 40}, {32, 31}, {27, 26}},
      {{1000, 999}, {36, 36}, {40, 40}, {44, 44}, {40, 40}, {32, 32}, {27, 27}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(strf("%d x %d", static_cast<int>(row.image.height), static_cast<int>(row.image.width)));
    EXPECT_EQ(laid_out(ResizeMode::kShorterMost, 36, 48, row.image), row.most);
    EXPECT_EQ(laid_out(ResizeMode::kWithin, 44, 40, row.image), row.within);
    EXPECT_EQ(laid_out(ResizeMode::kShorterDown, 45, 4, row.image), row.down);
    EXPECT_EQ(laid_out(ResizeMode::kShorterUp, 37, 5, row.image), row.up);
    EXPECT_EQ(laid_out(ResizeMode::kSquare, 32, 14, row.image), row.square);
    EXPECT_EQ(laid_out(ResizeMode::kCorner, 27, 0, row.image), row.corner);
  }
}

// Returns the levels of the first channel of a white image, as they are shown.
std::vector<int> column_of(const Image& white, const PreprocessConfig& config) {
  const Image shown = crop_for_display(white, config);
  std::vector<int> levels;
  for (int64_t y = 0; y < shown.height; ++y) levels.push_back(shown.row(y)[3 * (shown.width / 2)]);
  return levels;
}

const Image kWhite{6, 12, 3, std::vector<uint8_t>(216, 255)};  // becomes 4 x 8

TEST(PreprocessWays, BordersOfASquareAreTheMeanRoundedDown) {
  PreprocessConfig config{.height = 8, .width = 8, .mode = ResizeMode::kSquare, .resize = 8};
  config.mean = {0.48145466, 0.5, 0.7};
  EXPECT_EQ(column_of(kWhite, config), (std::vector<int>{122, 122, 255, 255, 255, 255, 122, 122}));
  config.resize_longer = 7;  // at the least
  EXPECT_EQ(column_of(kWhite, config), (std::vector<int>{255, 255, 255, 255, 255, 255, 255, 122}));
}

TEST(PreprocessWays, TheRestOfACornerIsTheMeanItself) {
  PreprocessConfig config{.height = 8, .width = 9, .mode = ResizeMode::kCorner, .resize = 8};
  config.mean = {0.48145466};
  std::vector<float> target(3 * 72);
  preprocess(kWhite, config, target);
  for (size_t i = 0; i < 72; ++i)
    EXPECT_NEAR(target[72 + i], i / 9 < 4 && i % 9 < 8 ? (1 - 0.48145466) / 0.5 : 0, 1e-6) << i;
}

TEST(PreprocessWays, AThumbnailIsResizedTwiceBetweenBlackBorders) {
  const PreprocessConfig config{.height = 8, .width = 8, .mode = ResizeMode::kThumbnail, .resize = 0};
  EXPECT_EQ(column_of(kWhite, config), (std::vector<int>{0, 0, 255, 255, 255, 255, 0, 0}));
  const Image image = noise(30, 60, 3, 4);
  const Image twice = resize(resize(image, {8, 16}, config.interpolation), {4, 8}, config.interpolation);
  const Image shown = crop_for_display(image, config);
  for (int64_t y = 0; y < 4; ++y)
    EXPECT_TRUE(std::equal(twice.row(y), twice.row(y) + 24, shown.row(y + 2))) << y;
  const Image thread = Image::blank(1, 65535, 1);
  PreprocessConfig large = config;
  large.height = large.width = 2560;
  EXPECT_THROW(crop_for_display(thread, large), Error) << "the first step would not fit into memory";
}

TEST(PreprocessWays, WhatFitsWithinStandsBetweenBlackBorders) {
  PreprocessConfig config{.height = 7, .width = 8, .mode = ResizeMode::kWithin, .resize = 7};
  config.resize_longer = 8;
  EXPECT_EQ(column_of(kWhite, config), (std::vector<int>{0, 255, 255, 255, 255, 0, 0}));
}

TEST(PreprocessWays, TheCentreIsStretched) {
  PreprocessConfig config{.height = 4, .width = 6, .mode = ResizeMode::kCropStretch};
  set_resize_sides({8, 8}, &config);
  const Image image = noise(21, 16, 3, 2);  // a centre of 8 x 12 of the shorter side's 16
  const Image shown = crop_for_display(image, config);
  const Size whole{21, 16};
  const Image centre = resize(image, whole, {6, 2, 8, 12}, config.interpolation);
  EXPECT_EQ(shown.pixels, resize(centre, {4, 6}, config.interpolation).pixels);
}

}  // namespace
}  // namespace vitrail
