#include "data/resize.h"

#include "data/image_helpers.h"

namespace vitrail {
namespace {

using test::noise;

Interpolation parse(const std::string& name) {
  const auto interpolation = enum_from_name<Interpolation>(name);
  EXPECT_TRUE(interpolation) << name;
  return interpolation.value_or(Interpolation::kNearest);
}

// 0 levels of difference: the checksum is that of Pillow's own result.
TEST(Resize, EqualsPillowBitForBit) {
  test::for_each_line("resize.txt", [](std::istringstream& fields) {
    std::string name, crc;
    uint32_t seed;
    int64_t channels, width, height, width2, height2;
    fields >> name >> seed >> channels >> width >> height >> width2 >> height2 >> crc;
    const Image result = resize(noise(height, width, channels, seed), {height2, width2}, parse(name));
    EXPECT_EQ(result.height, height2);
    EXPECT_EQ(result.width, width2);
    for (size_t i = 0; i < 4; ++i) {
      int value;
      fields >> value;
      EXPECT_EQ(result.pixels[i * result.pixels.size() / 4], value);
    }
    EXPECT_EQ(test::crc(result), crc);
  });
}

TEST(Resize, AWindowHoldsThePixelsOfTheWhole) {
  const Image image = noise(53, 71, 3, 8);
  for (const char* name : EnumNames<Interpolation>::names)
    for (const Size size : {Size{31, 90}, Size{53, 40}, Size{20, 71}, Size{53, 71}, Size{100, 100}}) {
      SCOPED_TRACE(strf("%s to %lld x %lld", name, static_cast<long long>(size.width),
                        static_cast<long long>(size.height)));
      const Image whole = resize(image, size, parse(name));
      const Window window{7, 5, size.height - 11, size.width - 9};
      const Image part = resize(image, size, window, parse(name));
      for (int64_t y = 0; y < window.height; ++y)
        for (int64_t i = 0; i < window.width * 3; ++i)
          ASSERT_EQ(part.row(y)[i], whole.row(y + window.top)[window.left * 3 + i]) << y << " " << i;
    }
}

TEST(Resize, FourChannelsAreResampledAlike) {
  const Image rgba = noise(20, 30, 4, 6);
  Image first = Image::blank(20, 30, 1);
  for (size_t i = 0; i < first.pixels.size(); ++i) first.pixels[i] = rgba.pixels[i * 4];
  const Image big = resize(rgba, {33, 17}, Interpolation::kBicubic);
  const Image plane = resize(first, {33, 17}, Interpolation::kBicubic);
  for (size_t i = 0; i < plane.pixels.size(); ++i) ASSERT_EQ(big.pixels[i * 4], plane.pixels[i]);
}

TEST(Resize, TfBilinearBlendsHalfPixelCentres) {
  const Image image{1, 2, 1, {10, 20}};
  const FloatImage up = resize_tf_bilinear(image, {1, 4}, {0, 0, 1, 4});
  EXPECT_EQ(up.pixels, (std::vector<float>{10, 12.5f, 17.5f, 20}));
  const Image row{1, 4, 1, {0, 100, 200, 40}};
  const FloatImage down = resize_tf_bilinear(row, {1, 1}, {0, 0, 1, 1});
  EXPECT_EQ(down.pixels, std::vector<float>{150});  // no antialias: only the two middle pixels count
}

TEST(Resize, TfAreaWeighsByCoverAndTruncates) {
  const Image row{1, 3, 1, {0, 100, 201}};
  const Image half = resize_tf_area(row, {1, 2}, {0, 0, 1, 2});
  EXPECT_EQ(half.pixels, (std::vector<uint8_t>{33, 167}));  // 33.3 and 167.3
  EXPECT_EQ(resize_tf_area({1, 2, 1, {0, 255}}, {1, 1}, {0, 0, 1, 1}).pixels[0], 127);
}

TEST(Resize, TfAreaRepeatsWhatLiesInsideOneCell) {
  const Image large = resize_tf_area({1, 2, 1, {60, 200}}, {1, 6}, {0, 0, 1, 6});
  for (int64_t x = 0; x < 6; ++x) EXPECT_NEAR(large.pixels[static_cast<size_t>(x)], x < 3 ? 60 : 200, 1) << x;
}

TEST(Resize, RefusesSidesThatCannotBe) {
  const Image image = noise(4, 4, 3, 0);
  for (const Size size : {Size{0, 4}, Size{4, -1}, Size{int64_t{1} << 40, 1}}) {
    const Error error = test::error_of([&] { resize(image, size, Interpolation::kBox); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
  }
  EXPECT_THROW(resize(Image{}, {2, 2}, Interpolation::kBox), Error);
}

}  // namespace
}  // namespace vitrail
