#include "data/decode.h"

#include <malloc.h>

#include <filesystem>

#include "data/image_helpers.h"

namespace vitrail {
namespace {

using test::sample;

TEST(Decode, EqualsPillowBitForBit) {
  test::for_each_line("samples.txt", [](std::istringstream& fields) {
    std::string file, crc;
    int64_t width, height;
    int orientation;
    fields >> file >> width >> height >> orientation >> crc;
    DecodeReport report;
    const Image image = decode_image(sample(file), {}, &report);
    EXPECT_EQ(image.width, width);
    EXPECT_EQ(image.height, height);
    EXPECT_EQ(image.channels, 3);
    EXPECT_EQ(test::crc(image), crc);
    EXPECT_EQ(report.exif_orientation, orientation);
    EXPECT_EQ(report.warnings, 0) << report.first_warning;
  });
}

// A decoder that kept a kilobyte of each image would take gigabytes in a long run. Where malloc is not
// glibc's own, under sanitizers, the figure stays 0.
TEST(Decode, KeepsNoMemoryOfImagesThatAreDone) {
  for (const char* file : {"ycbcr_420.jpg", "cmyk_adobe.jpg", "rgb16_interlaced.png", "lossy.webp"}) {
    decode_image(sample(file), {});
    const auto held = [] { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; };
    const size_t before = held();
    for (int i = 0; i < 32; ++i) decode_image(sample(file), {});
    EXPECT_LT(held(), before + 32 * 256) << file;
  }
}

TEST(Decode, ReportsWhatWasStored) {
  const struct {
    const char *file, *format, *colour;
    int bits;
  } cases[] = {
      {"grey2.png", "PNG", "grey", 2},         {"greyalpha16.png", "PNG", "grey+alpha", 16},
      {"palette4.png", "PNG", "palette", 4},   {"rgb16_interlaced.png", "PNG", "rgb", 16},
      {"rgba8.png", "PNG", "rgba", 8},         {"grey.jpg", "JPEG", "grey", 8},
      {"ycbcr_420.jpg", "JPEG", "ycbcr", 8},   {"stored_rgb.jpg", "JPEG", "rgb", 8},
      {"cmyk_adobe.jpg", "JPEG", "cmyk", 8},   {"ycck.jpg", "JPEG", "ycck", 8},
      {"lossy.webp", "WebP", "ycbcr", 8},      {"lossless.webp", "WebP", "rgb", 8},
      {"lossy_alpha.webp", "WebP", "rgba", 8},
  };
  for (const auto& c : cases) {
    DecodeReport report;
    decode_image(sample(c.file), {}, &report);
    EXPECT_EQ(report.format, c.format) << c.file;
    EXPECT_EQ(report.colour, c.colour) << c.file;
    EXPECT_EQ(report.bits, c.bits) << c.file;
  }
}

TEST(Decode, RefusesOtherFormatsByName) {
  const struct {
    std::string content;
    const char* name;
  } cases[] = {
      {"", "an empty file"},
      {"GIF89a......", "a GIF"},
      {"BM\x10\x20\x30\x40......", "a BMP"},
      {std::string("II*\0\x08\0\0\0", 8), "a TIFF"},
      {std::string("MM\0*\0\0\0\x08", 8), "a TIFF"},
      {std::string("\0\0\0\x1c", 4) + "ftypavif", "an AVIF"},
      {std::string("\0\0\0\x1c", 4) + "ftypheic", "a HEIC"},
      {std::string("\0\0\0\x0c", 4) + "JXL \r\n", "a JPEG XL"},
      {"\n  <!DOCTYPE HTML><html><body>404", "an HTML page"},
      {"<HTML>", "an HTML page"},
      {"<?xml version=\"1.0\"?><svg/>", "SVG or XML"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00", "a git-lfs pointer"},
      {"%PDF-1.7", "a PDF"},
      {"hello", "a text file"},
      {"hello\x01", "unknown format (it starts with 68 65 6c 6c 6f 01)"},
      {"hello\x7f", "unknown format (it starts with 68 65 6c 6c 6f 7f)"},
      {std::string(64, '\0'), "unknown format (it starts with 00 00 00 00 00 00 00 00)"},
  };
  for (const auto& c : cases) {
    const Error error = test::error_of([&] { decode_image(test::bytes_of(c.content)); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(error.message().find(c.name), std::string::npos) << error.what();
  }
  const Error animated = test::error_of([] { decode_image(sample("animated.webp")); });
  EXPECT_NE(animated.message().find("animated WebP"), std::string::npos) << animated.what();
}

TEST(Decode, EveryLimitIsHeldAndNamed) {
  const auto refused = [](const DecodeLimits& limits, const char* file, const char* word) {
    const Error error = test::error_of([&] { decode_image(sample(file), limits); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(error.message().find(word), std::string::npos) << error.what();
  };
  for (const char* file : {"rgb8.png", "grey.jpg", "lossy.webp"}) {
    DecodeLimits limits;
    limits.max_pixels = 76;
    refused(limits, file, "the limit is 76 pixels");
    limits = {};
    limits.max_decoded_bytes = 230;
    refused(limits, file, "would decode to");
    limits = {};
    limits.max_side = 10;
    refused(limits, file, "over the limit of 10");
  }
  DecodeLimits limits;
  limits.max_scans = 3;
  refused(limits, "ycbcr_420_progressive.jpg", "more than 3 scans");
  EXPECT_EQ(decode_image(sample("ycbcr_420.jpg"), limits).width, 27);  // one scan
}

TEST(LoadImage, NamesThePath) {
  const std::string path = test::golden("ycbcr_444.jpg");
  EXPECT_EQ(load_image(path).pixels, decode_image(sample("ycbcr_444.jpg")).pixels);
  const std::string folder = std::filesystem::temp_directory_path();
  for (const std::string& bad :
       {folder + "/there-is-no-such-image.png", folder, test::golden("samples.txt")}) {
    const Error error = test::error_of([&] { load_image(bad); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find(bad), std::string::npos) << error.what();
  }
  DecodeLimits limits;
  limits.max_file_bytes = 100;
  EXPECT_THROW(load_image(path, limits), Error);
}

}  // namespace
}  // namespace vitrail
