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
