// What the augmenter does to an image, as often, as strongly and in the order that its settings state.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "data/augment/augmenter.h"
#include "data/augment/colour.h"
#include "data/augment/geometry.h"
#include "data/augment/pixel_ops.h"
#include "data/loader_helpers.h"

namespace vitrail {
namespace {

PreprocessConfig of_side(int64_t side) {
  PreprocessConfig config;
  config.height = config.width = config.resize = side;
  return config;
}

AugmentConfig plain() {
  AugmentConfig config;
  config.hflip = 0;
  return config;
}

constexpr int64_t kImages = 4000;

// Checks the share of many images that comes out as the expected one, within five standard deviations.
void expect_share(const AugmentConfig& config, double wanted, const Image& image, const Image& expected) {
  const Augmenter augmenter(config, of_side(image.height), image.channels, 3);
  int64_t found = 0;
  for (int64_t position = 0; position < kImages; ++position) {
    const Image varied = augmenter.vary(image, 1, position);
    const bool is_expected = varied.pixels == expected.pixels;
    ASSERT_TRUE(is_expected || varied.pixels == image.pixels) << position;
    found += is_expected;
  }
  EXPECT_NEAR(static_cast<double>(found) / kImages, wanted,
              5 * std::sqrt(wanted * (1 - wanted) / static_cast<double>(kImages)));
}

TEST(Augmenter, WhatHasAProbabilityHappensThatOften) {
  const Image image = test::scene(8, 8, 3, 2);
  const struct {
    const char* name;
    double probability;
    std::function<void(AugmentConfig&)> set;
    std::function<void(Image&)> done;
  } rows[] = {
      {"hflip", 0.3, [](auto& c) { c.hflip = 0.3; }, flip_horizontal},
      {"vflip", 0.8, [](auto& c) { c.vflip = 0.8; }, flip_vertical},
      {"grayscale", 0.25, [](auto& c) { c.grayscale = 0.25; }, make_grey},
      {"blur", 0.6,
       [](auto& c) {
         c.blur = 0.6, c.blur_sigma = {1.5, 1.5};
       },
       [](Image& i) { gaussian_blur(i, 1.5); }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    AugmentConfig config = plain();
    row.set(config);
    Image expected = image;
    row.done(expected);
    ASSERT_NE(expected.pixels, image.pixels);
    expect_share(config, row.probability, image, expected);
  }
}

TEST(Augmenter, JitterHappensAsOftenAsAsked) {
  const Image image = test::scene(8, 8, 3, 2);
  AugmentConfig config = plain();
  config.colour_jitter = {0.5, 0.5, 0.5, 0.2};
  config.colour_jitter_prob = 0.4;
  const Augmenter augmenter(config, of_side(8), 3, 3);
  int64_t changed = 0;
  for (int64_t position = 0; position < kImages; ++position)
    changed += augmenter.vary(image, 1, position).pixels != image.pixels;
  EXPECT_NEAR(static_cast<double>(changed) / kImages, 0.4, 5 * std::sqrt(0.24 / kImages));
}

// A single strength is brightness, contrast and saturation alike, and no hue.
TEST(Augmenter, OneStrengthIsThree) {
  const Image image = test::scene(8, 8, 3, 2);
  AugmentConfig one = plain(), three = plain();
  one.colour_jitter = {0.4};
  three.colour_jitter = {0.4, 0.4, 0.4};
  const Augmenter first(one, of_side(8), 3, 3), second(three, of_side(8), 3, 3);
  for (int64_t position = 0; position < 20; ++position)
    EXPECT_EQ(first.vary(image, 1, position).pixels, second.vary(image, 1, position).pixels);
}

// The peak of a blurred point falls with the standard deviation: its distribution is that of uniformly
// distributed deviations.
TEST(Augmenter, BlursOverTheRangeAsked) {
  Image point = Image::blank(25, 25, 1);
  point.row(12)[12] = 255;
  AugmentConfig config = plain();
  config.blur = 1;
  config.blur_sigma = {0.5, 2.5};
  PreprocessConfig preprocess = of_side(25);
  preprocess.mean = preprocess.std = {0.5};
  const Augmenter augmenter(config, preprocess, 1, 3);
  std::vector<int> peaks, wanted;
  for (int64_t i = 0; i < 1000; ++i) {
    peaks.push_back(augmenter.vary(point, 0, i).row(12)[12]);
    Image blurred = point;
    gaussian_blur(blurred, 0.5 + 2 * (static_cast<double>(i) + 0.5) / 1000);
    wanted.push_back(blurred.row(12)[12]);
  }
  std::sort(peaks.begin(), peaks.end());
  std::sort(wanted.begin(), wanted.end());
  for (const size_t at : {50u, 250u, 500u, 750u, 950u})  // a share of 0.08 is five deviations
    EXPECT_TRUE(peaks[at] >= wanted[at > 80 ? at - 80 : 0] &&
                peaks[at] <= wanted[std::min<size_t>(at + 80, 999)])
        << at << ": " << peaks[at] << " for " << wanted[at];
}

// The order matters: later operations see the result of earlier ones.
TEST(Augmenter, FlipsThenJittersThenGreysThenBlurs) {
  const Image image = test::scene(8, 8, 3, 2);
  AugmentConfig config = plain();
  config.hflip = config.vflip = config.grayscale = config.blur = 1;
  config.colour_jitter = {0.5, 0, 0};
  config.blur_sigma = {1, 1};
  const Augmenter augmenter(config, of_side(8), 3, 3);
  AugmentConfig jitter_only = plain();
  jitter_only.colour_jitter = config.colour_jitter;
  const Augmenter jitter(jitter_only, of_side(8), 3, 3);
  for (int64_t position = 0; position < 20; ++position) {
    Image expected = image;
    flip_horizontal(expected);
    flip_vertical(expected);
    expected = jitter.vary(expected, 0, position);
    make_grey(expected);
    gaussian_blur(expected, 1);
    EXPECT_EQ(augmenter.vary(image, 0, position).pixels, expected.pixels);
  }
}

// Rotation fills the corners with the mean colour.
TEST(Augmenter, PoliciesFillWithTheMeanColour) {
  Image white = Image::blank(8, 8, 3);
  std::fill(white.pixels.begin(), white.pixels.end(), uint8_t{255});
  PreprocessConfig preprocess = of_side(8);
  preprocess.mean = {0.485, 0.456, 0.406};
  preprocess.std = {0.2, 0.2, 0.2};
  AugmentConfig config = plain();
  config.policy = "rand-m10-p1-n1";
  config.interpolation = AugmentInterpolation::kNearest;
  const Augmenter augmenter(config, preprocess, 3, 3);
  const uint8_t fill[] = {124, 116, 104};
  int64_t filled = 0;
  for (int64_t position = 0; position < 400; ++position) {
    const Image varied = augmenter.vary(white, 0, position);
    for (int64_t i = 0; i < 64; ++i) filled += std::equal(fill, fill + 3, varied.pixels.begin() + 3 * i);
  }
  EXPECT_GT(filled, 1000);
}

// Nearest, bilinear and bicubic are known to affine maps; any other is bicubic there.
TEST(Augmenter, PoliciesInterpolateAsTheModelDoes) {
  const Image image = test::scene(8, 8, 3, 2);
  AugmentConfig config = plain();
  config.policy = "rand-m10-p1-n1";
  PreprocessConfig preprocess = of_side(8);
  preprocess.mean = {0.4, 0.5, 0.6};
  for (const auto& [wanted, used] : {std::pair{Interpolation::kNearest, Interpolation::kNearest},
                                     {Interpolation::kBilinear, Interpolation::kBilinear},
                                     {Interpolation::kBicubic, Interpolation::kBicubic},
                                     {Interpolation::kLanczos, Interpolation::kBicubic}}) {
    preprocess.interpolation = wanted;
    const Augmenter augmenter(config, preprocess, 3, 3);
    const PolicyLook look{false, {used, {102, 128, 153}}};
    for (int64_t position = 0; position < 40; ++position) {
      Image expected = image;
      Draw draw(3, 0, position, "policy");
      apply_policy(parse_policy(config.policy), look, draw, expected);
      EXPECT_EQ(augmenter.vary(image, 0, position).pixels, expected.pixels)
          << enum_name(wanted) << " at " << position;
    }
  }
}

// The windows are the same, resampled one way or the other.
TEST(Augmenter, RandomInterpolationIsEitherOfTwoEquallyOften) {
  const Image image = test::scene(20, 26, 3, 2);
  AugmentConfig config = plain();
  config.crop = CropKind::kResized;
  const auto by = [&](AugmentInterpolation interpolation, int64_t position) {
    config.interpolation = interpolation;
    return Augmenter(config, of_side(8), 3, 3).vary(image, 0, position).pixels;
  };
  int64_t bilinear = 0;
  for (int64_t position = 0; position < 400; ++position) {
    const auto drawn = by(AugmentInterpolation::kRandom, position);
    const bool first = drawn == by(AugmentInterpolation::kBilinear, position);
    ASSERT_TRUE(first || drawn == by(AugmentInterpolation::kBicubic, position)) << position;
    bilinear += first;
  }
  EXPECT_NEAR(static_cast<double>(bilinear), 200, 50);
}

// `model` is what preprocessing says.
TEST(Augmenter, InterpolationOfTheModel) {
  const Image image = test::scene(20, 26, 3, 2);
  AugmentConfig config = plain();
  config.crop = CropKind::kResized;
  PreprocessConfig preprocess = of_side(8);
  preprocess.interpolation = Interpolation::kBilinear;
  const Augmenter of_model(config, preprocess, 3, 3);
  config.interpolation = AugmentInterpolation::kBilinear;
  const Augmenter bilinear(config, of_side(8), 3, 3);
  config.interpolation = AugmentInterpolation::kBicubic;
  const Augmenter bicubic(config, of_side(8), 3, 3);
  EXPECT_EQ(of_model.vary(image, 0, 1).pixels, bilinear.vary(image, 0, 1).pixels);
  EXPECT_NE(of_model.vary(image, 0, 1).pixels, bicubic.vary(image, 0, 1).pixels);
}

// An image is made to cover the model's size, its other side rounded down, and cropped anywhere.
TEST(Augmenter, PadCoversTheTarget) {
  for (const auto& [height, width] : {std::pair{12, 20}, {20, 12}}) {
    const Image image = test::scene(height, width, 3, 2);
    AugmentConfig config = plain();
    config.crop = CropKind::kPad;
    config.pad = 0;
    config.interpolation = AugmentInterpolation::kBilinear;
    const Augmenter augmenter(config, of_side(8), 3, 3);
    const bool wide = width > height;  // 8 * 20 / 12 = 13.3
    const Image covering = resize(image, wide ? Size{8, 13} : Size{13, 8}, Interpolation::kBilinear);
    std::set<int64_t> places;
    for (int64_t position = 0; position < 200; ++position) {
      const Image varied = augmenter.vary(image, 0, position);
      int64_t found = -1;
      for (int64_t at = 0; at <= 5; ++at)
        if (varied.pixels == crop_window(covering, {wide ? 0 : at, wide ? at : 0, 8, 8}).pixels) found = at;
      ASSERT_GE(found, 0) << position;
      places.insert(found);
    }
    EXPECT_EQ(places.size(), 6u);
  }
}

// TensorFlow's resamplers are compared bit for bit with what they make of the whole image.
TEST(Augmenter, WithoutACropPillowAloneIsGivenSmallerImages) {
  PreprocessConfig preprocess = of_side(8);
  preprocess.resize = 12;
  preprocess.interpolation = Interpolation::kBilinear;
  const auto least_side = [&](Resampler resampler) {
    preprocess.resampler = resampler;
    return Augmenter(plain(), preprocess, 3, 3).least_side(1, 5);
  };
  EXPECT_EQ(least_side(Resampler::kPillow), 12);
  EXPECT_EQ(least_side(Resampler::kTf), 0);
  EXPECT_EQ(least_side(Resampler::kTfArea), 0);
}

TEST(Augmenter, OnlyMovesWhereNothingTouchesPixels) {
  const auto moves = [](const std::function<void(AugmentConfig&)>& set) {
    AugmentConfig config;
    set(config);
    return Augmenter(config, of_side(8), 3, 3).only_moves();
  };
  EXPECT_TRUE(moves([](auto&) {}));
  EXPECT_TRUE(moves([](auto& c) { c.crop = CropKind::kPad, c.vflip = 0.5, c.erase = 0.5; }));
  EXPECT_FALSE(moves([](auto& c) { c.crop = CropKind::kResized; }));
  EXPECT_FALSE(moves([](auto& c) { c.policy = "3a"; }));
  EXPECT_FALSE(moves([](auto& c) { c.colour_jitter = {0.1}; }));
  EXPECT_FALSE(moves([](auto& c) { c.grayscale = 0.1; }));
  EXPECT_FALSE(moves([](auto& c) { c.blur = 0.1; }));
}

}  // namespace
}  // namespace vitrail
