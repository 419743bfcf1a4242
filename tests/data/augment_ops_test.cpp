#include <map>

#include "data/augment/colour.h"
#include "data/augment/geometry.h"
#include "data/augment/pixel_ops.h"
#include "data/fake_dataset.h"

namespace vitrail {
namespace {

using Op = std::function<Image(Image, double, const Sampling&)>;

Op in_place(void (*op)(Image&)) {
  return [op](Image image, double, const Sampling&) { return op(image), image; };
}

Op in_place(void (*op)(Image&, double)) {
  return [op](Image image, double argument, const Sampling&) { return op(image, argument), image; };
}

Op in_place(void (*op)(Image&, int64_t)) {
  return [op](Image image, double argument, const Sampling&) {
    return op(image, static_cast<int64_t>(argument)), image;
  };
}

Op mapped(std::array<double, 6> (*map)(double)) {
  return [map](Image image, double argument, const Sampling& sampling) {
    return affine(image, map(argument), sampling), image;
  };
}

Op padded(bool mirror) {
  return [mirror](const Image& image, double argument, const Sampling&) {
    const auto pad = static_cast<int64_t>(argument);
    return crop_window(image, {-pad, -pad, image.height + 2 * pad, image.width + 2 * pad}, mirror);
  };
}

const std::map<std::string, Op>& ops() {
  static const std::map<std::string, Op> table = {
      {"auto_contrast", in_place(auto_contrast)},
      {"equalize", in_place(equalize)},
      {"invert", in_place(invert)},
      {"posterize", in_place(posterize)},
      {"solarize", in_place(solarize)},
      {"solarize_add", in_place(solarize_add)},
      {"brightness", in_place(adjust_brightness)},
      {"contrast", in_place(adjust_contrast)},
      {"saturation", in_place(adjust_saturation)},
      {"sharpness", in_place(adjust_sharpness)},
      {"hue", in_place(adjust_hue)},
      {"grey", in_place(make_grey)},
      {"blur", in_place(gaussian_blur)},
      {"flip_horizontal", in_place(flip_horizontal)},
      {"flip_vertical", in_place(flip_vertical)},
      {"pad_reflect", padded(true)},
      {"pad_zero", padded(false)},
      {"rotate", [](Image image, double by, const Sampling& s) { return rotate(image, by, s), image; }},
      {"shear_x", mapped([](double by) { return std::array<double, 6>{1, by, 0, 0, 1, 0}; })},
      {"shear_y", mapped([](double by) { return std::array<double, 6>{1, 0, 0, by, 1, 0}; })},
      {"translate_x", mapped([](double by) { return std::array<double, 6>{1, 0, by, 0, 1, 0}; })},
      {"translate_y", mapped([](double by) { return std::array<double, 6>{1, 0, 0, 0, 1, by}; })},
  };
  return table;
}

// 0 levels of difference: the checksums are those of Pillow's and torchvision's own results.
TEST(AugmentOps, EqualPillowBitForBit) {
  std::set<std::string> seen;
  test::for_each_line("../augment/ops.txt", [&](std::istringstream& fields) {
    std::string name, interpolation, crc;
    double argument;
    uint32_t seed;
    int64_t channels, width, height;
    fields >> name >> argument >> interpolation >> seed >> channels >> width >> height >> crc;
    ASSERT_TRUE(ops().contains(name));
    const Sampling sampling{enum_from_name<Interpolation>(interpolation).value_or(Interpolation::kNearest),
                            {124, 116, 104}};
    EXPECT_EQ(test::crc(ops().at(name)(test::scene(height, width, channels, seed), argument, sampling)), crc);
    seen.insert(name);
  });
  EXPECT_EQ(seen.size(), ops().size());
}

// This is older Pillow's result; Pillow 13 refuses fewer than one bit, which timm's levels can request.
TEST(AugmentOps, PosterizeToNoBitsIsBlack) {
  Image image = test::noise(5, 6, 3, 4);
  posterize(image, 0);
  EXPECT_EQ(image.pixels, std::vector<uint8_t>(90, 0));
}

// 510 pixels below the last level make steps of 2: the lower level begins at 0, the upper after 255 steps.
TEST(AugmentOps, TwoLevelsAreEqualizedAndOneIsNot) {
  Image image = Image::blank(20, 60, 1);
  std::fill(image.pixels.begin(), image.pixels.begin() + 510, uint8_t{100});
  std::fill(image.pixels.begin() + 510, image.pixels.end(), uint8_t{101});
  equalize(image);
  EXPECT_EQ(image.pixels.front(), 0);
  EXPECT_EQ(image.pixels.back(), 255);
  Image plain = Image::blank(20, 60, 1);
  std::ranges::fill(plain.pixels, uint8_t{100});
  equalize(plain);
  EXPECT_EQ(plain.pixels, std::vector<uint8_t>(1200, 100));
}

TEST(AugmentOps, CropWindowMayReachOutside) {
  const Image row{1, 4, 1, {10, 20, 30, 40}};
  EXPECT_EQ(crop_window(row, {0, -2, 1, 8}).pixels, (std::vector<uint8_t>{0, 0, 10, 20, 30, 40, 0, 0}));
  EXPECT_EQ(crop_window(row, {0, -2, 1, 8}, true).pixels,
            (std::vector<uint8_t>{30, 20, 10, 20, 30, 40, 30, 20}));
  EXPECT_EQ(crop_window(row, {-1, 1, 2, 2}).pixels, (std::vector<uint8_t>{0, 0, 20, 30}));
}

TEST(AugmentOps, FlippingTwiceIsNothing) {
  for (int64_t width : {1, 2, 7}) {
    const Image original = test::noise(5, width, 3, 2);
    Image image = original;
    flip_horizontal(image);
    EXPECT_EQ(image.row(2)[0], original.row(2)[(width - 1) * 3]);
    flip_horizontal(image);
    flip_vertical(image);
    EXPECT_EQ(image.row(0)[0], original.row(4)[0]);
    flip_vertical(image);
    EXPECT_EQ(image.pixels, original.pixels);
  }
}

// Every strength and order occurs, and no strength means no change.
TEST(AugmentOps, ColourJitterDrawsFactorsAndOrder) {
  const Image original = test::scene(8, 8, 3, 2);
  std::set<std::string> results;
  for (int64_t position = 0; position < 50; ++position) {
    Image image = original;
    Draw draw(1, 0, position, "jitter");
    colour_jitter(image, {0.4, 0.4, 0.4, 0.1}, draw);
    results.insert(test::crc(image));
    Image still = original;
    colour_jitter(still, {0, 0, 0, 0}, draw);
    EXPECT_EQ(still.pixels, original.pixels);
  }
  EXPECT_EQ(results.size(), 50u);
}

}  // namespace
}  // namespace vitrail
