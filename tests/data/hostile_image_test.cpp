// Images made to break a reader: decompression bombs, truncations, false headers.
#include <algorithm>
#include <cstring>

#include "data/decode.h"
#include "data/image_helpers.h"

namespace vitrail {
namespace {

using Bytes = std::vector<uint8_t>;
using test::sample;

void put_u32(Bytes& bytes, size_t at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<uint8_t>(value >> (24 - 8 * i));
}

void append_chunk(Bytes& png, const char* kind, const Bytes& body) {
  const size_t start = png.size();
  png.resize(start + 8);
  put_u32(png, start, static_cast<uint32_t>(body.size()));
  std::memcpy(png.data() + start + 4, kind, 4);
  png.insert(png.end(), body.begin(), body.end());
  const auto sum =
      static_cast<uint32_t>(crc32(0, png.data() + start + 4, static_cast<uInt>(body.size() + 4)));
  png.resize(png.size() + 4);
  put_u32(png, png.size() - 4, sum);
}

Bytes deflated(size_t zeros) {
  const Bytes plain(zeros);
  uLongf size = compressBound(static_cast<uLong>(zeros));
  Bytes packed(size);
  EXPECT_EQ(compress2(packed.data(), &size, plain.data(), static_cast<uLong>(zeros), 9), Z_OK);
  packed.resize(size);
  return packed;
}

struct PngShape {
  uint32_t width, height;
  uint8_t depth, colour;
};

// Makes a PNG of zeros whose header states `shape` and whose data holds `zeros` bytes; `extra` goes before
// the data.
Bytes png_of_zeros(const PngShape& shape, size_t zeros, const char* extra = nullptr, const Bytes& body = {}) {
  Bytes png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  Bytes header(13);
  put_u32(header, 0, shape.width);
  put_u32(header, 4, shape.height);
  header[8] = shape.depth;
  header[9] = shape.colour;
  append_chunk(png, "IHDR", header);
  if (extra) append_chunk(png, extra, body);
  append_chunk(png, "IDAT", deflated(zeros));
  append_chunk(png, "IEND", {});
  return png;
}

std::string refusal(const Bytes& bytes, const DecodeLimits& limits = {}) {
  const Error error = test::error_of([&] { decode_image(bytes, limits); });
  EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
  return error.message();
}

// The position of the two bytes of a JPEG's height (the width follows).
size_t frame_size_at(const Bytes& jpeg) {
  for (size_t i = 2; i + 4 < jpeg.size();) {
    const uint8_t marker = jpeg[i + 1];
    if (marker >= 0xc0 && marker <= 0xc2) return i + 5;
    i += 2 + jpeg[i + 2] * 256u + jpeg[i + 3];
  }
  ADD_FAILURE() << "no frame header";
  return 0;
}

Bytes jpeg_claiming(const char* file, uint16_t width, uint16_t height) {
  Bytes jpeg = sample(file);
  const size_t at = frame_size_at(jpeg);
  const uint8_t sides[4] = {static_cast<uint8_t>(height >> 8), static_cast<uint8_t>(height),
                            static_cast<uint8_t>(width >> 8), static_cast<uint8_t>(width)};
  std::copy_n(sides, 4, jpeg.begin() + static_cast<ptrdiff_t>(at));
  return jpeg;
}

TEST(HostileImage, EveryTruncationIsReported) {
  for (const std::string& name : test::sample_names()) {
    const Bytes whole = sample(name);
    for (size_t length = 0; length < whole.size(); ++length) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length));
      EXPECT_THROW(decode_image(cut), Error) << name << " cut to " << length << " of " << whole.size();
      DecodeReport report;  // a training set keeps what can be kept, and knows
      try {
        decode_image(cut, DecodeLimits::for_datasets(), &report);
        EXPECT_GT(report.warnings, 0) << name << " cut to " << length << " of " << whole.size();
        EXPECT_FALSE(report.first_warning.empty());
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kData);
      }
    }
  }
}

TEST(HostileImage, ATruncatedJpegKeepsItsFirstRowsForADataset) {
  const Bytes whole = sample("ycbcr_444.jpg");
  const Bytes cut(whole.begin(), whole.end() - 60);
  DecodeReport report;
  const Image image = decode_image(cut, DecodeLimits::for_datasets(), &report);
  const Image full = decode_image(whole);
  EXPECT_NE(report.first_warning.find("Premature end"), std::string::npos) << report.first_warning;
  EXPECT_TRUE(std::equal(full.row(0), full.row(1), image.row(0)));
}

TEST(HostileImage, PngBombsAreRefusedByTheirHeader) {
  EXPECT_NE(refusal(png_of_zeros({20000, 20000, 8, 2}, 1000)).find("20000 x 20000"), std::string::npos);
  EXPECT_NE(refusal(png_of_zeros({10000, 10000, 8, 0}, 1000)).find("10000 x 10000"), std::string::npos);
  EXPECT_NE(refusal(png_of_zeros({0x7fffffff, 1, 8, 2}, 1000)).find("over the limit"), std::string::npos);
  // The size is within the limits, but the file is too short to hold the data.
  EXPECT_NE(refusal(png_of_zeros({7000, 7000, 8, 2}, 1000)).find("cannot hold"), std::string::npos);
  refusal(png_of_zeros({0, 5, 8, 2}, 100));
  refusal(png_of_zeros({5, 0, 8, 2}, 100));
}

TEST(HostileImage, PngThatLiesIsRefused) {
  EXPECT_EQ(decode_image(png_of_zeros({8, 8, 8, 2}, 8 * 25)).width, 8);
  refusal(png_of_zeros({8, 8, 8, 2}, 8 * 25 - 1));  // too little data
  refusal(png_of_zeros({8, 8, 8, 3}, 8 * 9));       // a palette without PLTE
  refusal(png_of_zeros({8, 8, 7, 2}, 8 * 25));      // no such depth
  refusal(png_of_zeros({8, 8, 8, 5}, 8 * 25));      // no such colour type
  Bytes flipped = sample("rgb8.png");
  flipped[flipped.size() - 20] ^= 0x10;  // inside IDAT: its checksum no longer fits
  refusal(flipped);
  Bytes palette = {1, 2, 3};
  const Bytes outside = png_of_zeros({8, 8, 8, 3}, 8 * 9, "PLTE", palette);
  EXPECT_EQ(decode_image(outside).pixels[2], 3);
}

TEST(HostileImage, PngAncillaryBombsAreNotUnpacked) {
  Bytes text = {'k', 0, 0};
  const Bytes bomb = deflated(64 << 20);
  text.insert(text.end(), bomb.begin(), bomb.end());
  for (const char* kind : {"zTXt", "iCCP"}) {
    const Bytes png = png_of_zeros({8, 8, 8, 2}, 8 * 25, kind, text);
    EXPECT_EQ(decode_image(png).height, 8) << kind;
  }
}

TEST(HostileImage, JpegHeadersThatLieAreRefused) {
  refusal(jpeg_claiming("grey.jpg", 65535, 65535));
  refusal(jpeg_claiming("grey.jpg", 65500, 65500));
  refusal(jpeg_claiming("grey.jpg", 0, 19));
  refusal(jpeg_claiming("grey.jpg", 27, 0));
  // A few hundred bytes that claim 49 million pixels: refused at the first missing byte.
  refusal(jpeg_claiming("grey.jpg", 7000, 7000));
  refusal(jpeg_claiming("ycbcr_420_progressive.jpg", 7000, 7000));
  DecodeLimits small = DecodeLimits::for_datasets();
  small.max_decoded_bytes = 3 * 7000 * 1000;
  small.max_pixels = 7000 * 1000;
  refusal(jpeg_claiming("ycbcr_444_progressive.jpg", 7000, 7000), small);
}

// The last scan of a progressive image repeated: each repetition is another pass over all of it.
Bytes with_scans(size_t count) {
  Bytes jpeg = sample("ycbcr_444_progressive.jpg");
  const uint8_t mark[] = {0xff, 0xda};
  const auto last = std::find_end(jpeg.begin(), jpeg.end(), std::begin(mark), std::end(mark));
  const Bytes scan(last, jpeg.end() - 2);
  jpeg.resize(jpeg.size() - 2);
  for (size_t i = 0; i < count; ++i) jpeg.insert(jpeg.end(), scan.begin(), scan.end());
  jpeg.insert(jpeg.end(), {0xff, 0xd9});
  return jpeg;
}

TEST(HostileImage, TooManyScansAreRefused) {
  DecodeLimits lenient = DecodeLimits::for_datasets();
  EXPECT_EQ(decode_image(with_scans(50), lenient).width, 27);
  EXPECT_NE(refusal(with_scans(600), lenient).find("more than 500 scans"), std::string::npos);
  lenient.max_pixels = 27 * 19;  // an image of the largest size: 20 passes
  EXPECT_NE(refusal(with_scans(50), lenient).find("more than 20 scans"), std::string::npos);
}

TEST(HostileImage, EveryByteFlippedIsSurvived) {
  for (const char* name : {"ycbcr_420.jpg", "ycck.jpg", "ycbcr_422_progressive.jpg", "rgb16_interlaced.png",
                           "palette_transparent.png", "lossy_alpha.webp", "lossless_alpha.webp"}) {
    const Bytes whole = sample(name);
    DecodeLimits limits = DecodeLimits::for_datasets();
    limits.max_pixels = 100'000;
    for (size_t i = 0; i < whole.size(); ++i) {
      Bytes broken = whole;
      broken[i] ^= static_cast<uint8_t>(1 << (i % 8));
      try {
        const Image image = decode_image(broken, limits);
        ASSERT_EQ(static_cast<int64_t>(image.pixels.size()), image.width * image.height * 3);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace vitrail
