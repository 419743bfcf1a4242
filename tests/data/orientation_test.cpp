#include "data/decode.h"

#include <gtest/gtest.h>

namespace vitrail {
namespace {

// What Pillow's ImageOps.exif_transpose makes of the rows "abc", "def".
TEST(Orientation, TurnsAsPillowDoes) {
  const std::pair<int, std::vector<std::string>> rows[] = {
      {0, {"abc", "def"}},     {1, {"abc", "def"}},     {2, {"cba", "fed"}},     {3, {"fed", "cba"}},
      {4, {"def", "abc"}},     {5, {"ad", "be", "cf"}}, {6, {"da", "eb", "fc"}}, {7, {"fc", "eb", "da"}},
      {8, {"cf", "be", "ad"}}, {9, {"abc", "def"}}};
  for (const auto& [orientation, expected] : rows) {
    SCOPED_TRACE(orientation);
    Image image = Image::blank(2, 3, 1);
    for (size_t i = 0; i < 6; ++i) image.pixels[i] = static_cast<uint8_t>('a' + i);
    const Image turned = turned_upright(image, orientation);
    ASSERT_EQ(turned.height, static_cast<int64_t>(expected.size()));
    for (int64_t y = 0; y < turned.height; ++y)
      EXPECT_EQ(std::string(turned.row(y), turned.row(y) + turned.width), expected[static_cast<size_t>(y)]);
  }
}

}  // namespace
}  // namespace vitrail
