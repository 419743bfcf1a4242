// Sizes that decoding and resizing allow, met exactly, and what is said of files that are no image.
#include <gtest/gtest.h>

#include "data/codecs.h"
#include "data/datasets/formats.h"
#include "data/decode.h"
#include "data/image_helpers.h"
#include "data/resize.h"
#include "data/said_by.h"

namespace vitrail {
namespace {

using test::error_of;
using test::said_by;

TEST(DecodeLimitsFacts, SizesMetExactly) {
  DecodeLimits limits;
  const auto said = [&](int64_t width, int64_t height) {
    return said_by([&] { codecs::check_size("PNG", width, height, limits); });
  };
  limits.max_side = 100, limits.max_pixels = 600, limits.max_decoded_bytes = 1 << 20;
  EXPECT_EQ(said(100, 6), "");
  EXPECT_EQ(said(6, 100), "");
  EXPECT_EQ(said(101, 5), "data: PNG of 101 x 5 pixels: a side is over the limit of 100");
  EXPECT_EQ(said(5, 101), "data: PNG of 5 x 101 pixels: a side is over the limit of 100");
  EXPECT_EQ(said(0, 5), "data: PNG of 0 x 5 pixels: a side is 0");
  EXPECT_EQ(said(5, 0), "data: PNG of 5 x 0 pixels: a side is 0");
  EXPECT_EQ(said(86, 7),
            "data: PNG of 86 x 7 pixels would decode to 0 MiB: the limit is 600 pixels and 1 MiB");
  limits.max_pixels = 1 << 30, limits.max_side = 1 << 20, limits.max_decoded_bytes = 3 << 20;
  EXPECT_EQ(said(1024, 1024), "");
  EXPECT_EQ(
      said(1024, 1025),
      "data: PNG of 1024 x 1025 pixels would decode to 3 MiB: the limit is 1073741824 pixels and 3 MiB");
  const DecodeLimits usual, datasets = DecodeLimits::for_datasets();
  EXPECT_EQ(usual.max_file_bytes, 256 << 20);
  EXPECT_EQ(usual.max_side, 65535);
  EXPECT_EQ(usual.max_pixels, 50'000'000);
  EXPECT_EQ(usual.max_decoded_bytes, 256 << 20);
  EXPECT_EQ(usual.max_scans, 100);
  EXPECT_TRUE(usual.strict);
  EXPECT_EQ(datasets.max_scans, 500);
  EXPECT_FALSE(datasets.strict);
}

TEST(DecodeLimitsFacts, EveryFormatIsRefusedWithWhatToDo) {
  const char* const convert = "convert it to PNG or JPEG first";
  const char* const no_image = "it is no image, whatever its name says; fetch the file again";
  const std::tuple<std::string, const char*, const char*> rows[] = {
      {"GIF87a", "a GIF", convert},
      {"BM", "a BMP", convert},
      {std::string("II+\0", 4), "a TIFF", convert},
      {"1234ftypavis", "an AVIF", convert},
      {"1234ftypmif1", "a HEIC", convert},
      {"1234ftypmsf1", "a HEIC", convert},
      {"\xff\x0a", "a JPEG XL", convert},
      {std::string("\0\0\0\x0cjP  ", 8), "a JPEG 2000", convert},
      {"8BPS", "a Photoshop document", convert},
      {"%PDF", "a PDF", convert},
      {"PK\x03\x04", "a zip archive", "unpack it first"},
      {"\x1f\x8b", "a gzip file", "unpack it first"},
      {"version https://git-lfs", "a git-lfs pointer", "fetch the file itself: git lfs pull"},
      {"<!doctype html", "an HTML page", no_image},
      {" <hTmL", "an HTML page", no_image},
      {"<?xml", "an SVG or XML file", convert},
      {"\n<SVG", "an SVG or XML file", convert},
  };
  for (const auto& [content, name, hint] : rows) {
    const Error error = error_of([&, &text = content] { decode_image(test::bytes_of(text)); });
    EXPECT_EQ(error.message(), strf("expected a JPEG, PNG or WebP image, found %s", name));
    EXPECT_EQ(error.hint(), hint) << name;
  }
  EXPECT_EQ(error_of([] { codecs::refuse("PNG", "why"); }).message(), "broken PNG: why");
  std::string long_text(256, 'x');
  EXPECT_TRUE(looks_like_text(test::bytes_of(long_text + '\1'))) << "256 bytes are looked at";
  long_text.back() = '\1';
  EXPECT_FALSE(looks_like_text(test::bytes_of(long_text)));
  EXPECT_FALSE(looks_like_text({}));
}

TEST(DecodeLimitsFacts, WhatEndsTooEarlySaysSo) {
  std::vector<uint8_t> png = test::sample("rgb8.png");
  png.resize(png.size() - 20);
  const Error error = error_of([&] { decode_image(png); });
  EXPECT_EQ(error.message(), "broken PNG: the file ends too early");
  EXPECT_EQ(error.hint(), "fetch the file again, or open it in an image editor and save it anew");
}

TEST(ResizeLimits, SidesMetExactly) {
  const auto said = [](Size size) {
    return said_by([&] { check_resize(Image::blank(2, 3, 3), size, {0, 0, 1, 1}); });
  };
  EXPECT_EQ(said({1 << 28, 1}), "");
  EXPECT_EQ(said({1, 1 << 28}), "");
  EXPECT_EQ(
      said({1, (1 << 28) + 1}),
      "data: an image of 3 x 2 pixels would be resized to 268435457 x 1: sides must be in 1..268435456");
  EXPECT_EQ(
      said({(1 << 28) + 1, 1}),
      "data: an image of 3 x 2 pixels would be resized to 1 x 268435457: sides must be in 1..268435456");
  EXPECT_EQ(said_by([] {
              check_resize(Image::blank(0, 3, 3), {1, 1}, {0, 0, 1, 1});
            }),
            "data: an image of 3 x 0 pixels has no content");
}

TEST(FormatNames, EndingsOfImages) {
  for (const char* name : {"a.jpg", "a.JPEG", "a.png", "a.webp", "a.bmp", "a.gif", "a.tif", "a.tiff", "a.ppm",
                           "a.pgm", "a.avif", "a.heic", ".png"})
    EXPECT_TRUE(formats::has_image_ending(name)) << name;
  for (const char* name : {"a.txt", "png", "a.jpgs", "a.png.gz", "a."})
    EXPECT_FALSE(formats::has_image_ending(name)) << name;
}

}  // namespace
}  // namespace vitrail
