// Decoding a JPEG at a fraction of its size: when it happens, and how little it changes the shrunk image.
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
// jpeglib.h relies on the ones above.
#include <jpeglib.h>

#include "base/file.h"
#include "data/decode.h"
#include "data/resize.h"
#include "image_helpers.h"
#include "source_root.h"

namespace vitrail {
namespace {

using namespace test;

Image decode(const std::vector<uint8_t>& bytes, int64_t least_side) {
  DecodeLimits limits = DecodeLimits::for_datasets();
  limits.least_side = least_side;
  return decode_image(bytes, limits);
}

std::vector<uint8_t> photograph() {
  return bytes_of(read_file(VT_SOURCE_DIR "/examples/images/rocket.jpg", 1 << 20));
}

std::vector<uint8_t> encode_jpeg(const Image& image) {
  jpeg_compress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &buffer, &size);
  cinfo.image_width = static_cast<JDIMENSION>(image.width);
  cinfo.image_height = static_cast<JDIMENSION>(image.height);
  cinfo.input_components = 3;
  cinfo.in_color_space = JCS_RGB;
  jpeg_set_defaults(&cinfo);
  jpeg_set_quality(&cinfo, 92, TRUE);
  jpeg_start_compress(&cinfo, TRUE);
  for (int64_t y = 0; y < image.height; ++y) {
    JSAMPROW row = const_cast<uint8_t*>(image.row(y));
    jpeg_write_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_compress(&cinfo);
  std::vector<uint8_t> bytes(buffer, buffer + size);
  jpeg_destroy_compress(&cinfo);
  std::free(buffer);
  return bytes;
}

TEST(ScaledJpeg, ChosenFraction) {
  const std::vector<uint8_t> bytes = photograph();
  const Image whole = decode(bytes, 0);
  ASSERT_EQ(whole.height, 427);
  // 427 rows: 1 is added at 1/2 and 1/4, 5 at 1/8.
  const std::pair<int64_t, int64_t> cases[] = {{224, 1}, {54, 1}, {53, 4}, {11, 4}, {10, 8}, {1, 8}};
  for (const auto& [least_side, shrink] : cases) {
    const Image image = decode(bytes, least_side);
    EXPECT_EQ(image.height, (whole.height + shrink - 1) / shrink) << least_side;
    EXPECT_EQ(image.width, (whole.width + shrink - 1) / shrink) << least_side;
  }
  EXPECT_EQ(decode(bytes, 224).pixels, whole.pixels);
}

TEST(ScaledJpeg, AShrunkPhotographDiffersLittle) {
  struct Case {
    int64_t rows, side, shrink;
    double mean;  // of 255
    int worst;
  };
  // 416 rows divide by 8: only the filter differs. 427 rows add an eighth of a pixel of stretching.
  const Case cases[] = {
      {416, 104, 2, 0.6, 16}, {416, 52, 4, 0.6, 16}, {416, 26, 8, 0.6, 16}, {427, 53, 4, 0.8, 32}};
  for (const Case& c : cases) {
    SCOPED_TRACE(strf("%d rows to %d", static_cast<int>(c.rows), static_cast<int>(c.side)));
    Image cropped = decode(photograph(), 0);
    cropped.height = c.rows;
    cropped.pixels.resize(static_cast<size_t>(c.rows * cropped.width * 3));
    const std::vector<uint8_t> bytes = encode_jpeg(cropped);
    const Image whole = decode(bytes, 0), small = decode(bytes, c.side);
    ASSERT_EQ(small.width, whole.width / c.shrink);
    const Size size{c.side, c.side * whole.width / whole.height};
    const Image exact = resize(whole, size, Interpolation::kBicubic);
    const Image quick = resize(small, size, Interpolation::kBicubic);
    double sum = 0;
    int worst = 0;
    for (size_t i = 0; i < exact.pixels.size(); ++i) {
      const int difference = std::abs(exact.pixels[i] - quick.pixels[i]);
      sum += difference;
      worst = std::max(worst, difference);
    }
    EXPECT_LT(sum / static_cast<double>(exact.pixels.size()), c.mean);
    EXPECT_LE(worst, c.worst);
  }
}

TEST(ScaledJpeg, EveryKindOfJpegCanBeShrunk) {
  for (const std::string& name : sample_names()) {
    if (!name.ends_with(".jpg")) continue;
    const Image whole = decode(sample(name), 0), small = decode(sample(name), 1);
    EXPECT_LT(small.width, whole.width) << name;
    EXPECT_EQ(small.channels, 3) << name;
  }
}

}  // namespace
}  // namespace vitrail
