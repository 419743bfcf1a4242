// Every operation of a policy is the one it is named for; windows and boxes where attempts fail; draws that
// are taken and no more.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "data/augment/augmenter.h"
#include "data/augment/colour.h"
#include "data/augment/geometry.h"
#include "data/augment/pixel_ops.h"
#include "data/augment/policy_ops.h"
#include "data/augment/windows.h"
#include "data/fake_dataset.h"

namespace vitrail {
namespace {

TEST(PolicyApply, EveryOperationIsWhatItsNameSays) {
  const Sampling sampling{Interpolation::kBilinear, {10, 20, 30}};
  using Map = std::array<double, 6>;
  const struct {
    PolicyOp op;
    double argument;
    std::function<void(Image&)> expected;
  } rows[] = {
      {PolicyOp::kAutoContrast, 0, [](Image& i) { auto_contrast(i); }},
      {PolicyOp::kEqualize, 0, [](Image& i) { equalize(i); }},
      {PolicyOp::kInvert, 0, [](Image& i) { invert(i); }},
      {PolicyOp::kRotate, 20, [&](Image& i) { rotate(i, 20, sampling); }},
      {PolicyOp::kPosterize, 3, [](Image& i) { posterize(i, 3); }},
      {PolicyOp::kPosterizeOriginal, 5, [](Image& i) { posterize(i, 5); }},
      {PolicyOp::kSolarize, 100, [](Image& i) { solarize(i, 100); }},
      {PolicyOp::kSolarizeAdd, 40, [](Image& i) { solarize_add(i, 40); }},
      {PolicyOp::kColor, 1.5, [](Image& i) { adjust_saturation(i, 1.5); }},
      {PolicyOp::kContrast, 1.5, [](Image& i) { adjust_contrast(i, 1.5); }},
      {PolicyOp::kBrightness, 1.5, [](Image& i) { adjust_brightness(i, 1.5); }},
      {PolicyOp::kSharpness, 1.5, [](Image& i) { adjust_sharpness(i, 1.5); }},
      {PolicyOp::kShearX, 0.2,
       [&](Image& i) {
         affine(i, Map{1, 0.2, 0, 0, 1, 0}, sampling);
       }},
      {PolicyOp::kShearY, 0.2,
       [&](Image& i) {
         affine(i, Map{1, 0, 0, 0.2, 1, 0}, sampling);
       }},
      {PolicyOp::kTranslateX, 3,
       [&](Image& i) {
         affine(i, Map{1, 0, 3, 0, 1, 0}, sampling);
       }},
      {PolicyOp::kTranslateY, 3,
       [&](Image& i) {
         affine(i, Map{1, 0, 0, 0, 1, 3}, sampling);
       }},
      {PolicyOp::kDesaturate, 0.75, [](Image& i) { adjust_saturation(i, 0.25); }},
      {PolicyOp::kGaussianBlur, 1.2, [](Image& i) { gaussian_blur(i, 1.2); }},
      {PolicyOp::kIdentity, 0, [](Image&) {}},
  };
  const Image image = test::scene(24, 30, 3, 2);  // under 256 pixels nothing is equalized
  for (const auto& row : rows) {
    Image found = image, expected = image;
    apply_op(row.op, row.argument, sampling, found);
    row.expected(expected);
    EXPECT_EQ(found.pixels, expected.pixels) << enum_name(row.op);
    EXPECT_EQ(found.pixels == image.pixels, row.op == PolicyOp::kIdentity) << enum_name(row.op);
  }
}

TEST(PolicyApply, ArgumentsByLevelAndScale) {
  // At level 6 of 10, of 9 (ten steps) and of 30; signs are drawn, so magnitudes count. An image of 100 x
  // 200.
  const struct {
    PolicyOp op;
    double plain, increasing, ten, thirty;
  } rows[] = {
      {PolicyOp::kRotate, 18, 18, 20, 6},
      {PolicyOp::kPosterize, 2, 2, 5, 7},  // int(2.4); 4 - int(2.4); 8 - round(8 / 3); 8 - round(0.8)
      {PolicyOp::kPosterizeOriginal, 6, 6, 5, 7},
      {PolicyOp::kSolarize, 153, 103, 85, 204},  // int(153.6); 256 - 153; 255 - 170; 255 - 51
      {PolicyOp::kSolarizeAdd, 66, 66, 73, 22},
      {PolicyOp::kShearX, 0.18, 0.18, 0.2, 0.06},
      {PolicyOp::kShearY, 0.18, 0.18, 0.2, 0.06},
      {PolicyOp::kTranslateX, 54, 54, 60, 18},  // of 200; int(60.4), int(18.1)
      {PolicyOp::kTranslateY, 27, 27, 30, 9},   // of 100
      {PolicyOp::kDesaturate, 0.8, 0.8, 0.5 + 1.0 / 3, 0.6},
      {PolicyOp::kInvert, 0, 0, 0, 0},
  };
  for (const auto& row : rows) {
    const double expected[] = {row.plain, row.increasing, row.ten, row.thirty};
    for (size_t scale = 0; scale < 4; ++scale) {
      Draw draw(1, 0, 0, "argument");
      EXPECT_NEAR(std::abs(op_argument(row.op, static_cast<LevelScale>(scale), 6, {100, 200}, draw)),
                  expected[scale], 1e-9)
          << enum_name(row.op) << " " << scale;
    }
  }
  for (const PolicyOp op :
       {PolicyOp::kColor, PolicyOp::kContrast, PolicyOp::kBrightness, PolicyOp::kSharpness}) {
    Draw draw(1, 0, 0, "argument");
    EXPECT_NEAR(op_argument(op, LevelScale::kPlain, 6, {100, 200}, draw), 1.18, 1e-9);
    EXPECT_NEAR(std::abs(op_argument(op, LevelScale::kIncreasing, 6, {100, 200}, draw) - 1), 0.54, 1e-9);
    EXPECT_NEAR(std::abs(op_argument(op, LevelScale::kThirtySteps, 6, {100, 200}, draw) - 1), 0.18, 1e-9);
  }
}

// Levels above the end of a scale, which mmax allows, lead no further than to grey and to a tenth.
TEST(PolicyApply, ArgumentsHaveTheirBounds) {
  Draw draw(1, 0, 0, "argument");
  const auto argument = [&](PolicyOp op, LevelScale scale, double level) {
    return op_argument(op, scale, level, {100, 200}, draw);
  };
  EXPECT_EQ(argument(PolicyOp::kDesaturate, LevelScale::kPlain, 15), 1);
  double least = 9, most = 0, blurred = 0;
  for (int i = 0; i < 60; ++i) {
    const double factor = argument(PolicyOp::kContrast, LevelScale::kIncreasing, 20);
    least = std::min(least, factor), most = std::max(most, factor);
    blurred = std::max(blurred, argument(PolicyOp::kGaussianBlur, LevelScale::kPlain, 3));
  }
  EXPECT_EQ(least, 0.1);
  EXPECT_EQ(most, 2.8) << "1 + 2 * 0.9";
  EXPECT_LE(blurred, 0.6) << "twice the level's share";
  EXPECT_GT(blurred, 0.5);
}

TEST(WindowFacts, TheCentreIsAsNearToTheShapesAsPossible) {
  AugmentConfig config;
  config.crop_scale = {1, 1};
  config.crop_ratio = {2, 3};
  Draw draw(1, 0, 0, "crop");
  const Window wide = resized_crop({10, 10}, config, draw);  // every attempt is wider than the image
  EXPECT_EQ(wide.height, 5) << "10 / 2";
  EXPECT_EQ(wide.width, 10);
  EXPECT_EQ(wide.top, 2);
  EXPECT_EQ(wide.left, 0);
  config.crop_ratio = {0.25, 0.5};
  const Window tall = resized_crop({10, 10}, config, draw);
  EXPECT_EQ(tall.height, 10);
  EXPECT_EQ(tall.width, 5) << "10 * 0.5";
  EXPECT_EQ(tall.left, 2);
}

// Shapes whose rows or columns are rounded to none are drawn again, and the centre has one at least.
TEST(WindowFacts, NoWindowIsEmpty) {
  using Sides = std::array<int64_t, 4>;
  const struct {
    Size image;
    double share, ratio_from, ratio_to;
    Sides wanted;
  } rows[] = {{{10, 10}, 0.01, 0.1, 0.1, {0, 4, 10, 1}},  // 3 rows of 0.3 columns
              {{10, 10}, 0.01, 10, 10, {4, 0, 1, 10}},    // 0.3 rows of 3 columns
              {{1, 10}, 1, 0.1, 0.4, {0, 4, 1, 1}},       // a row; 0.4 columns of it
              {{10, 1}, 1, 3, 5, {4, 0, 1, 1}}};
  for (const auto& row : rows) {
    AugmentConfig config;
    config.crop_scale = {row.share, row.share};
    config.crop_ratio = {row.ratio_from, row.ratio_to};
    Draw draw(1, 0, 0, "crop");
    const Window found = resized_crop(row.image, config, draw);
    EXPECT_EQ((Sides{found.top, found.left, found.height, found.width}), row.wanted)
        << row.image.height << " x " << row.image.width;
  }
}

TEST(WindowFacts, TenAttemptsAreLookedAt) {
  AugmentConfig config;
  config.crop_scale = {0.08, 1};
  config.crop_ratio = {0.75, 4.0 / 3};
  for (int64_t position = 0; position < 20; ++position) {
    Draw draw(5, 0, position, "crop");
    double least = 0;
    for (int i = 0; i < 10; ++i) {
      const double area = draw.uniform(0.08, 1),
                   ratio = std::exp(draw.uniform(std::log(0.75), std::log(4.0 / 3)));
      least = std::max({least, 30 / std::sqrt(area * ratio), 20 / std::sqrt(area / ratio)});
    }
    EXPECT_EQ(resized_crop_least_side({20, 30}, config, Draw(5, 0, position, "crop")),
              static_cast<int64_t>(std::ceil(least)));
  }
}

// Boxes as large as the image never fit: a chance, a count, and two draws for each of ten attempts.
TEST(WindowFacts, TenAttemptsAtABoxAndNoMore) {
  AugmentConfig config;
  config.erase = 1;
  config.erase_area = {1, 1};
  Draw draw(uint64_t{99});
  int boxes = 0;
  draw_erased({8, 8}, config, draw, [&](const Window&) { ++boxes; });
  EXPECT_EQ(boxes, 0);
  EXPECT_EQ(draw.bits(), counter_hash(99, 22));
}

TEST(JitterFacts, OrderAndFactorsAreTheSameForEver) {
  Draw draw(7, 2, 5, "jitter");
  const JitterDraw drawn = draw_jitter({0.4, 0.3, 0.2, 0.1}, draw);
  EXPECT_EQ(drawn.order, (std::array<int, 4>{0, 3, 1, 2}));
  const double factors[] = {0.9655217763229809, 1.1145691841576342, 1.0510339643028017, -0.04703339992821618};
  for (size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(drawn.factor[i], factors[i]) << i;
}

TEST(AugmenterFacts, ChannelsMustBeTheModelsAndUnusedSettingsDoNotMatter) {
  PreprocessConfig preprocess{.height = 8, .width = 8, .resize = 8};
  AugmentConfig config;
  config.erase_mode = EraseMode::kPixel;
  config.erase_count = 9;
  const Augmenter augmenter(config, preprocess, 3, 1);
  EXPECT_THROW(augmenter.vary(test::scene(8, 8, 1, 2), 0, 0), Error);
  ImageRecipe recipe;
  EXPECT_NO_THROW(augmenter.describe(0, 0, recipe)) << "nothing is erased";
  EXPECT_EQ(recipe.erased, 0);
}

}  // namespace
}  // namespace vitrail
