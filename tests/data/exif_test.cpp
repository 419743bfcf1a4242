// Where files store their orientation: entries of a TIFF directory, chunks of WebP and PNG, markers of JPEG.
#include <string>

#include "data/codecs.h"
#include "data/decode.h"
#include "data/image_helpers.h"

namespace vitrail {
namespace {

constexpr int kOrientation = 0x0112, kMake = 0x010f, kShort = 3, kLong = 4;

std::string number(uint32_t value, int bytes, bool big) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * (big ? bytes - 1 - i : i)));
  return text;
}

struct Entry {
  int tag, type, value;
};

// Makes a TIFF header and a directory after `gap` unused bytes, which announces `missing` entries more than
// it has.
std::string tiff(const std::vector<Entry>& entries, bool big = false, int gap = 0, int missing = 0) {
  std::string text = (big ? std::string("MM\0*", 4) : std::string("II*\0", 4)) +
                     number(static_cast<uint32_t>(8 + gap), 4, big) +
                     std::string(static_cast<size_t>(gap), '\xff') +
                     number(static_cast<uint32_t>(entries.size()) + static_cast<uint32_t>(missing), 2, big);
  for (const Entry& entry : entries)
    text += number(static_cast<uint32_t>(entry.tag), 2, big) +
            number(static_cast<uint32_t>(entry.type), 2, big) + number(1, 4, big) +
            number(static_cast<uint32_t>(entry.value), 2, big) + std::string(2, '\0');
  return text;
}

int orientation(const std::string& block) {
  return codecs::exif_orientation(test::bytes_of(block));
}

TEST(Exif, OrientationsAreReadInBothByteOrders) {
  for (const bool big : {false, true})
    for (int value = 0; value <= 9; ++value)
      EXPECT_EQ(orientation(tiff({{kOrientation, kShort, value}}, big)), value <= 8 ? value : 0);
}

TEST(Exif, TheEntryMayStandAnywhereInTheDirectory) {
  const Entry make{kMake, 2, 5}, turned{kOrientation, kShort, 6}, other{kOrientation, kShort, 3};
  EXPECT_EQ(orientation(tiff({make, make, turned})), 6) << "the last";
  EXPECT_EQ(orientation(tiff({turned, make, make})), 6) << "the first";
  EXPECT_EQ(orientation(tiff({turned}, true, 13)), 6) << "a directory further on";
  EXPECT_EQ(orientation(tiff({turned, other})), 6) << "the first of two counts";
  EXPECT_EQ(orientation(tiff({{kOrientation, kLong, 3}, turned})), 6) << "no short";
  EXPECT_EQ(orientation(tiff({make, turned}, false, 0, 4)), 6) << "fewer entries than it says";
  EXPECT_EQ(orientation(tiff({make}, false, 0, 4)), 0);
  EXPECT_EQ(orientation(tiff({})), 0);
}

TEST(Exif, BlocksCutShortAreNoOrientation) {
  const std::string whole = tiff({{kOrientation, kShort, 6}});
  for (size_t length = 0; length < whole.size(); ++length) EXPECT_EQ(orientation(whole.substr(0, length)), 0);
  EXPECT_EQ(orientation(whole), 6);
  EXPECT_EQ(orientation("XX" + whole.substr(2)), 0);
}

std::string chunk(const std::string& name, const std::string& body) {
  std::string text = name + number(static_cast<uint32_t>(body.size()), 4, false) + body;
  if (body.size() % 2) text += '\0';
  return text;
}

// The image of lossless.webp in an extended file, with chunks before and after it.
int webp_orientation(const std::string& before, const std::string& after) {
  const std::vector<uint8_t> plain = test::sample("lossless.webp");
  const std::string image(plain.begin() + 12, plain.end());
  const std::string size("\x08\0\0\0\x1a\0\0\x12\0\0", 10);  // EXIF to come; 27 x 19
  const std::string body = "WEBP" + chunk("VP8X", size) + before + image + after;
  DecodeReport report;
  const Image decoded = decode_image(
      test::bytes_of("RIFF" + number(static_cast<uint32_t>(body.size()), 4, false) + body), {}, &report);
  EXPECT_EQ(decoded.pixels, decode_image(plain).pixels);
  return report.exif_orientation;
}

TEST(Exif, ChunksOfOddLengthArePaddedInWebp) {
  const std::string exif = chunk("EXIF", tiff({{kOrientation, kShort, 6}}));
  EXPECT_EQ(webp_orientation("", exif), 6);
  EXPECT_EQ(webp_orientation("", chunk("abcd", "odd") + exif), 6);
  EXPECT_EQ(webp_orientation("", chunk("abcd", "even") + exif), 6);
  EXPECT_EQ(webp_orientation(chunk("ICCP", "a") + chunk("abcd", "abc"), exif), 6);
  EXPECT_EQ(webp_orientation("", ""), 0);
  const std::string marked = chunk("EXIF", std::string("Exif\0\0", 6) + tiff({{kOrientation, kShort, 8}}));
  EXPECT_EQ(webp_orientation("", marked), 8) << "with JPEG's mark before it";
}

TEST(Exif, PngChunksAreWalkedOverTheirChecksums) {
  const std::vector<uint8_t> plain = test::sample("rgb8.png");
  const auto with = [&](const std::string& chunks) {
    std::string file(plain.begin(), plain.end());
    file.insert(8 + 8 + 13 + 4, chunks);  // after the signature and IHDR
    DecodeReport report;
    decode_image(test::bytes_of(file), {}, &report);
    return report.exif_orientation;
  };
  const auto png_chunk = [](const std::string& name, const std::string& body) {
    const std::string covered = name + body;
    const auto sum =
        crc32(0, reinterpret_cast<const Bytef*>(covered.data()), static_cast<uInt>(covered.size()));
    return number(static_cast<uint32_t>(body.size()), 4, true) + covered +
           number(static_cast<uint32_t>(sum), 4, true);
  };
  const std::string exif = png_chunk("eXIf", tiff({{kOrientation, kShort, 5}}, true));
  EXPECT_EQ(with(exif), 5);
  EXPECT_EQ(with(png_chunk("tEXt", std::string("a\0b", 3)) + exif), 5);
  EXPECT_EQ(with(""), 0);
}

}  // namespace
}  // namespace vitrail
