#include "data/preprocess.h"

#include <cmath>

#include "data/image_helpers.h"
#include "data/resize.h"

namespace vitrail {
namespace {

using test::noise;

std::vector<double> numbers(const std::string& text) {
  std::vector<double> values;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) values.push_back(std::stod(item));
  return values;
}

PreprocessConfig read_config(std::istringstream& fields, int64_t& channels) {
  PreprocessConfig config;
  std::string mode, interpolation, resampler, odd_margin, mean, std;
  fields >> mode >> interpolation >> resampler >> channels >> config.height >> config.width >>
      config.resize >> config.resize_longer >> odd_margin >> mean >> std;
  config.mode = enum_from_name<ResizeMode>(mode).value();
  config.interpolation = enum_from_name<Interpolation>(interpolation).value();
  config.resampler = enum_from_name<Resampler>(resampler).value();
  config.odd_margin = enum_from_name<OddMargin>(odd_margin).value();
  config.mean = numbers(mean);
  config.std = numbers(std);
  return config;
}

TEST(Preprocess, EqualsTorchvisionTimmTransformersAndTensorFlow) {
  test::for_each_line("preprocess.txt", [](std::istringstream& fields) {
    int64_t channels, width, height;
    uint32_t seed;
    std::string crc;
    const PreprocessConfig config = read_config(fields, channels);
    fields >> seed >> width >> height >> crc;
    const Image image = noise(height, width, 3, seed);
    if (crc != "-") {
      EXPECT_EQ(test::crc(crop_for_display(image, config)), crc);
    }
    std::vector<float> planes(static_cast<size_t>(channels * config.height * config.width), NAN);
    preprocess(image, config, planes);
    for (size_t i = 0; i < 8; ++i) {
      float expected;
      fields >> expected;
      EXPECT_NEAR(planes[i * planes.size() / 8], expected, 1e-6);
    }
    for (float value : planes) ASSERT_TRUE(std::isfinite(value));
  });
}

TEST(Preprocess, AnyShapeOfImageFillsTheTarget) {
  PreprocessConfig config;
  config.resize = 8;
  config.height = config.width = 7;
  std::vector<float> target(3 * 7 * 7);
  const auto check = [&](int64_t height, int64_t width) {
    std::fill(target.begin(), target.end(), NAN);
    preprocess(noise(height, width, 3, static_cast<uint32_t>(height * 64 + width)), config, target);
    for (float value : target) ASSERT_TRUE(value >= -1 && value <= 1) << width << " x " << height;
  };
  for (int64_t height = 1; height <= 64; ++height)
    for (int64_t width = 1; width <= 64; ++width) check(height, width);
  for (int64_t longer : {1000, 5000, 65535}) {
    check(1, longer);
    check(longer, 1);
    check(longer, 7);
  }
}

TEST(Preprocess, SmallImagesGetBlackMargins) {
  PreprocessConfig config;
  config.height = config.width = 9;
  config.resize = 4;
  const Image white{4, 4, 3, std::vector<uint8_t>(48, 255)};
  std::vector<float> target(3 * 81);
  preprocess(white, config, target);
  for (int64_t y = 0; y < 9; ++y)
    for (int64_t x = 0; x < 9; ++x) {
      const bool inside = y >= 2 && y < 6 && x >= 2 && x < 6;  // 2 before, 3 after
      EXPECT_EQ(target[static_cast<size_t>(y * 9 + x)], inside ? 1.0f : -1.0f) << y << " " << x;
    }
  EXPECT_EQ(crop_for_display(white, config).row(2)[2 * 3], 255);
  EXPECT_EQ(crop_for_display(white, config).row(2)[1 * 3], 0);
}

// timm's border: the whole image within the crop, on the 8-bit level nearest to the mean.
TEST(Preprocess, TheLongerSideFitsBetweenBordersOfTheMean) {
  PreprocessConfig config{
      .height = 9, .width = 8, .mode = ResizeMode::kLongerSide, .resize = 8, .resize_longer = 9};
  config.mean = {0.25, 0.5, 0.75};
  const Image white{6, 12, 3, std::vector<uint8_t>(216, 255)};  // becomes 4 x 8
  std::vector<float> target(3 * 72);
  preprocess(white, config, target);
  const Image shown = crop_for_display(white, config);
  const std::vector<LevelTable> table = level_tables(config, 3);
  const uint8_t levels[] = {64, 128, 191};  // 63.75, 127.5 and 191.25: halves to even
  for (size_t i = 0; i < 3 * 72; ++i) {
    const size_t c = i / 72, y = i % 72 / 8;
    const uint8_t level = y >= 2 && y < 6 ? 255 : levels[c];  // 2 before, 3 after
    EXPECT_EQ(target[i], table[c][level]) << i;
    EXPECT_EQ(shown.pixels[i % 72 * 3 + c], level) << i;
  }
}

TEST(Preprocess, TransformersRoundsUpWhereASmallImageStarts) {
  PreprocessConfig config{.height = 4, .width = 9, .mode = ResizeMode::kNone, .resize = 0};
  const Image white{4, 4, 3, std::vector<uint8_t>(48, 255)};
  for (const auto& [margin, first] : {std::pair{OddMargin::kHalfEven, 2}, {OddMargin::kDown, 3}}) {
    config.odd_margin = margin;
    const Image shown = crop_for_display(white, config);
    for (int64_t x = 0; x < 9; ++x)
      EXPECT_EQ(shown.row(0)[3 * x], x >= first && x < first + 4 ? 255 : 0) << x;
  }
}

TEST(Preprocess, NoneCropsTheImageAsItIs) {
  const PreprocessConfig config{
      .height = 5, .width = 9, .mode = ResizeMode::kNone, .resize = 0, .odd_margin = OddMargin::kDown};
  const Image image = noise(8, 6, 3, 7);
  const Image shown = crop_for_display(image, config);
  for (int64_t y = 0; y < 5; ++y)
    for (int64_t x = 0; x < 9; ++x)
      EXPECT_EQ(shown.row(y)[3 * x], x >= 2 && x < 8 ? image.row(y + 1)[3 * (x - 2)] : 0) << y << " " << x;
}

TEST(Preprocess, WhatIsPaddedHoldsTheMean) {
  PreprocessConfig config{
      .height = 8, .width = 12, .mode = ResizeMode::kStretch, .pad_rows = 1, .pad_columns = 2};
  config.mean = {0.4};
  const Image white{5, 5, 3, std::vector<uint8_t>(75, 255)};
  for (const ResizeMode mode : {ResizeMode::kStretch, ResizeMode::kStretchCrop, ResizeMode::kShorterSide}) {
    config.mode = mode;
    config.resize = mode == ResizeMode::kStretch ? 0 : 7;
    config.resize_longer = mode == ResizeMode::kStretch ? 0 : 10;
    std::vector<float> target(3 * 96);
    preprocess(white, config, target);
    const Image shown = crop_for_display(white, config);
    for (size_t i = 0; i < 96; ++i) {
      const bool padded = i / 12 == 7 || i % 12 >= 10;
      EXPECT_NEAR(target[96 + i], padded ? 0.0f : 1.2f, 1e-6) << i;
      EXPECT_EQ(shown.pixels[i * 3], padded ? 102 : 255) << i;
    }
  }
  config.pad_rows = 8;
  std::vector<float> target(3 * 96);
  EXPECT_THROW(preprocess(white, config, target), Error);
}

TEST(Preprocess, TheDisplayedCropIsWhatIsNormalised) {
  PreprocessConfig config;
  config.height = 20;
  config.width = 28;
  config.resize = 24;
  config.mean = {0};
  config.std = {1};
  const Image image = noise(51, 40, 3, 4);
  for (const Resampler resampler : {Resampler::kPillow, Resampler::kTfArea}) {
    config.resampler = resampler;
    std::vector<float> target(3 * 20 * 28);
    preprocess(image, config, target);
    const Image shown = crop_for_display(image, config);
    for (size_t i = 0; i < 20 * 28; ++i)
      for (size_t c = 0; c < 3; ++c)
        ASSERT_EQ(target[c * 20 * 28 + i], static_cast<float>(shown.pixels[i * 3 + c]) / 255.0f);
  }
}

// big_vision's rule takes the shorter side, whatever the crop's shape.
TEST(Preprocess, TensorFlowsShorterSideIsTheCropsShorterOne) {
  PreprocessConfig config{.height = 20, .width = 28, .resize = 24, .resampler = Resampler::kTfArea};
  const Image white{51, 40, 3, std::vector<uint8_t>(51 * 40 * 3, 255)};
  const Image shown = crop_for_display(white, config);  // 31 x 24, so two columns on either side stay black
  EXPECT_EQ(shown.row(0)[3 * 1], 0);
  EXPECT_EQ(shown.row(0)[3 * 2], 255);
  EXPECT_EQ(shown.row(19)[3 * 25], 255);
  EXPECT_EQ(shown.row(19)[3 * 26], 0);
}

TEST(Preprocess, RefusesWhatCannotBeDone) {
  const Image image = noise(8, 8, 3, 0);
  const struct {
    std::function<void(PreprocessConfig&)> spoil;
    size_t channels;
    const char* word;
  } cases[] = {
      {[](PreprocessConfig&) {}, 4, "takes 4 channels"},
      {[](PreprocessConfig& c) {
         c.mean = {0.5, 0.5};
       },
       3, "mean has 2 values"},
      {[](PreprocessConfig& c) { c.std = {}; }, 3, "std 0"},
      {[](PreprocessConfig& c) {
         c.std = {0.5, 0, 0.5};
       },
       3, "std 0 of channel 1"},
      {[](PreprocessConfig& c) { c.mean = {NAN}; }, 3, "finite"},
      {[](PreprocessConfig& c) { c.resize = -1; }, 3, "resize -1"},
      {[](PreprocessConfig& c) { c.resize = 1'000'000'000; }, 3, "expected 0..65536"},
      {[](PreprocessConfig& c) { c.resampler = Resampler::kTf; }, 3, "bilinear only"},
  };
  for (const auto& c : cases) {
    PreprocessConfig config;
    c.spoil(config);
    std::vector<float> target(c.channels * 224 * 224);
    const Error error = test::error_of([&] { preprocess(image, config, target); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(error.message().find(c.word), std::string::npos) << error.what();
  }
  PreprocessConfig empty;
  empty.height = 0;
  EXPECT_THROW(preprocess(image, empty, {}), Error);
  std::vector<float> target(3 * 224 * 224);
  EXPECT_THROW(preprocess(Image{}, PreprocessConfig{}, target), Error);
}

}  // namespace
}  // namespace vitrail
