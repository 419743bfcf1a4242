#include <cmath>

#include "data/augment/augmenter.h"
#include "data/augment/windows.h"
#include "data/fake_dataset.h"

namespace vitrail {
namespace {

PreprocessConfig squares_of(int64_t side) {
  PreprocessConfig config;
  config.height = config.width = config.resize = side;
  config.mean = {0.485, 0.456, 0.406};
  config.std = {0.229, 0.224, 0.225};
  return config;
}

TEST(AugmentConfig, RefusesByKeyAndRule) {
  const struct {
    const char* named;
    std::function<void(AugmentConfig&)> change;
  } cases[] = {
      {"crop_scale",
       [](AugmentConfig& c) {
         c.crop_scale = {0.5, 0.2};
       }},
      {"crop_scale",
       [](AugmentConfig& c) {
         c.crop_scale = {0, 1};
       }},
      {"crop_ratio", [](AugmentConfig& c) { c.crop_ratio = {1}; }},
      {"pad", [](AugmentConfig& c) { c.pad = -1; }},
      {"hflip", [](AugmentConfig& c) { c.hflip = 1.5; }},
      {"vflip", [](AugmentConfig& c) { c.vflip = std::nan(""); }},
      {"policy", [](AugmentConfig& c) { c.policy = "randy"; }},
      {"colour_jitter",
       [](AugmentConfig& c) {
         c.colour_jitter = {0.4, 0.4};
       }},
      {"colour_jitter[3]",
       [](AugmentConfig& c) {
         c.colour_jitter = {0, 0, 0, 0.6};
       }},
      {"blur_sigma",
       [](AugmentConfig& c) {
         c.blur_sigma = {2, 1e9};
       }},
      {"erase_count", [](AugmentConfig& c) { c.erase_count = 0; }},
      {"mixup", [](AugmentConfig& c) { c.mixup = -0.1; }},
      {"mix_group", [](AugmentConfig& c) { c.mix_group = 5; }},
      {"repeats", [](AugmentConfig& c) { c.repeats = 0; }},
  };
  validate(AugmentConfig{});
  for (const auto& c : cases) {
    SCOPED_TRACE(c.named);
    AugmentConfig config;
    c.change(config);
    const Error error = test::error_of([&] { validate(config); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(error.message().find(std::string("augment.") + c.named), std::string::npos) << error.message();
  }
}

TEST(AugmentConfig, ListsEveryField) {
  std::set<std::string> names;
  const AugmentConfig config;
  AugmentConfig::fields(config, [&](const char* name, const auto&, const char* help) {
    EXPECT_GT(std::string(help).size(), 0u);
    names.insert(name);
  });
  EXPECT_EQ(names.size(), 24u);
}

TEST(ResizedCrop, KeepsToAreaAndShape) {
  const AugmentConfig config;
  for (int64_t position = 0; position < 500; ++position) {
    Draw draw(1, 0, position, "crop");
    const Window w = resized_crop({300, 400}, config, draw);
    ASSERT_TRUE(w.top >= 0 && w.left >= 0 && w.top + w.height <= 300 && w.left + w.width <= 400);
    const double area = static_cast<double>(w.height * w.width) / (300 * 400);
    const double ratio = static_cast<double>(w.width) / static_cast<double>(w.height);
    EXPECT_GT(area, 0.078);
    EXPECT_LE(area, 1);
    EXPECT_GT(ratio, 0.74);
    EXPECT_LT(ratio, 1.35);
  }
}

// timm falls back to the centre, with the nearest allowed shape.
TEST(ResizedCrop, FallsBackToTheCentre) {
  AugmentConfig config;
  config.crop_scale = {0.9, 1};
  const struct {
    Size image;
    Window expected;
  } cases[] = {{{10, 1000}, {0, 493, 10, 13}}, {{1000, 10}, {493, 0, 13, 10}}, {{1, 1}, {0, 0, 1, 1}}};
  for (const auto& c : cases) {
    Draw draw(1, 0, 0, "crop");
    const Window w = resized_crop(c.image, config, draw);
    EXPECT_EQ(w.top, c.expected.top);
    EXPECT_EQ(w.left, c.expected.left);
    EXPECT_EQ(w.height, c.expected.height);
    EXPECT_EQ(w.width, c.expected.width);
  }
}

// Whatever is cropped of an image of that size is not enlarged (but for the rounding of sides).
TEST(ResizedCrop, LeastSideIsEnough) {
  const AugmentConfig config;
  for (int64_t position = 0; position < 300; ++position) {
    const int64_t side = resized_crop_least_side({64, 64}, config, Draw(2, 0, position, "crop"));
    Draw draw(2, 0, position, "crop");
    const Window w = resized_crop({side, side * 5 / 4}, config, draw);
    EXPECT_GE(w.height, 63);
    EXPECT_GE(w.width, 63);
  }
}

TEST(PaddedCrop, ReachesEveryPlace) {
  std::set<std::pair<int64_t, int64_t>> places;
  for (int64_t position = 0; position < 2000; ++position) {
    Draw draw(3, 0, position, "crop");
    const Window w = padded_crop({8, 9}, {8, 8}, 2, draw);
    EXPECT_EQ(w.height, 8);
    EXPECT_EQ(w.width, 8);
    places.insert({w.top, w.left});
  }
  EXPECT_EQ(places.size(), 5u * 6u);
  EXPECT_EQ(*places.begin(), std::make_pair(int64_t{-2}, int64_t{-2}));
  EXPECT_EQ(*places.rbegin(), std::make_pair(int64_t{2}, int64_t{3}));
}

TEST(Augmenter, WithoutAugmentationIsPreprocessing) {
  AugmentConfig config;
  config.hflip = 0;
  PreprocessConfig preprocessing = squares_of(16);
  for (const int64_t resize : {16, 20}) {
    preprocessing.resize = resize;
    const Augmenter augmenter(config, preprocessing, 3, 1);
    for (const Image& image : {test::scene(16, 16, 3, 2), test::scene(40, 31, 3, 3)}) {
      std::vector<float> plain(3 * 16 * 16), varied(plain.size());
      preprocess(image, preprocessing, plain);
      augmenter.fill(image, 0, 0, varied);
      EXPECT_EQ(varied, plain);
    }
  }
}

AugmentConfig everything() {
  AugmentConfig config;
  config.crop = CropKind::kResized;
  config.interpolation = AugmentInterpolation::kRandom;
  config.vflip = 0.5;
  config.policy = "rand-m9-mstd0.5-inc1";
  config.colour_jitter = {0.3};
  config.grayscale = 0.2;
  config.blur = 0.5;
  config.erase = 0.25;
  config.erase_mode = EraseMode::kPixel;
  return config;
}

TEST(Augmenter, IsAFunctionOfSeedEpochAndPosition) {
  const Image image = test::scene(40, 50, 3, 4);
  const Augmenter augmenter(everything(), squares_of(24), 3, 1), other(everything(), squares_of(24), 3, 2);
  const auto filled = [&](const Augmenter& by, int64_t epoch, int64_t position) {
    std::vector<float> target(3 * 24 * 24);
    by.fill(image, epoch, position, target);
    return target;
  };
  const auto reference = filled(augmenter, 3, 5);
  EXPECT_EQ(filled(augmenter, 3, 5), reference);
  EXPECT_NE(filled(augmenter, 3, 6), reference);
  EXPECT_NE(filled(augmenter, 4, 5), reference);
  EXPECT_NE(filled(other, 3, 5), reference);
}

TEST(Augmenter, EveryCropGivesTheModelsSize) {
  PreprocessConfig wide = squares_of(24);
  wide.width = 36;
  wide.mean = wide.std = {0.5};
  for (const CropKind crop : {CropKind::kNone, CropKind::kResized, CropKind::kPad})
    for (const PadMode pad : {PadMode::kZero, PadMode::kReflect}) {
      AugmentConfig config = everything();
      config.crop = crop;
      config.pad_mode = pad;
      const Augmenter augmenter(config, wide, 1, 1);
      for (const auto& [height, width] : {std::pair{1, 1}, {24, 36}, {3, 100}, {70, 20}}) {
        const Image varied = augmenter.vary(test::scene(height, width, 1, 2), 0, height);
        EXPECT_EQ(varied.height, 24);
        EXPECT_EQ(varied.width, 36);
      }
    }
}

TEST(Augmenter, FlipsHalfOfTheImages) {
  const Image image = test::scene(8, 8, 3, 1);
  const Augmenter augmenter({}, squares_of(8), 3, 1);
  int flipped = 0;
  for (int64_t position = 0; position < 1000; ++position)
    flipped += augmenter.vary(image, 0, position).pixels != image.pixels;
  EXPECT_NEAR(flipped, 500, 70);
}

TEST(Augmenter, MatchesChannels) {
  const Image grey = test::scene(3, 4, 1, 2);
  const Image colour = with_channels(grey, 3);
  EXPECT_EQ(colour.channels, 3);
  EXPECT_EQ(colour.row(2)[3 * 3 + 2], grey.row(2)[3]);
  EXPECT_EQ(with_channels(colour, 1).pixels, grey.pixels);
  EXPECT_EQ(test::error_of([] { with_channels(test::noise(2, 2, 4, 0), 3); }).kind(), ErrorKind::kData);
}

}  // namespace
}  // namespace vitrail
