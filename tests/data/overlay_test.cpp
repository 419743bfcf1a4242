// Maps over images, sheets of tiles, and the font of their labels.
#include "data/overlay.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "data/tiny_font.h"

namespace vitrail {
namespace {

// Cells of eleven pixels: each one's middle shows its own heat alone.
TEST(Overlay, RowsAndColumnsOfTheMapLieAsInTheImage) {
  constexpr int64_t kRows = 2, kColumns = 4, kCell = 11;
  std::vector<float> map(kRows * kColumns, 0.0f);
  map[7] = 1;  // the last of the lower row
  const Image shown = heat_overlay(Image::blank(kRows * kCell, kColumns * kCell, 3), map, kRows, kColumns);
  const auto middle = [&](int64_t row, int64_t column) {
    const uint8_t* pixel = shown.row(row * kCell + kCell / 2) + 3 * (column * kCell + kCell / 2);
    return std::vector<int>{pixel[0], pixel[1], pixel[2]};
  };
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t column = 0; column < kColumns; ++column) {
      const bool hot = row == 1 && column == 3;
      EXPECT_EQ(middle(row, column) == middle(0, 0), !hot) << row << " " << column;
    }
  EXPECT_GT(middle(1, 3)[0], middle(0, 0)[0]);
}

// Between two cells their neighbours are mixed, and no cell that lies further off.
TEST(Overlay, HeatReachesTheNextCellAndNoFurther) {
  constexpr int64_t kCells = 4, kCell = 10;
  std::vector<float> low(kCells * kCells, 0.0f), right = low;
  for (int64_t i = 0; i < kCells; ++i) low[12 + i] = right[4 * i + 3] = 1;
  const Image blank = Image::blank(kCells * kCell, kCells * kCell, 3);
  const Image by_row = heat_overlay(blank, low, kCells, kCells),
              by_column = heat_overlay(blank, right, kCells, kCells);
  for (int64_t edge = 1; edge < kCells; ++edge) {
    const int64_t at = edge * kCell;
    EXPECT_EQ(by_row.row(at)[3 * at] > by_row.row(0)[0], edge == 3) << "below row " << edge;
    EXPECT_EQ(by_column.row(at)[3 * at] > by_column.row(0)[0], edge == 3) << "right of column " << edge;
  }
}

TEST(Overlay, HotPartsAreBrighterThanColdOnes) {
  Image image = Image::blank(32, 48, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{100});
  const std::vector<float> map = {0, 0, 0, 0, 0, 1};
  const Image out = heat_overlay(image, map, 2, 3);
  EXPECT_GT(out.row(31)[3 * 47], out.row(0)[0] + 60);
  EXPECT_LT(out.row(0)[0], 100);
}

TEST(Overlay, HeatRisesInLightness) {
  double last = -1;
  for (int i = 0; i <= 20; ++i) {
    const Colour c = heat_colour(static_cast<float>(i) / 20);
    const double light = 0.299 * c.red + 0.587 * c.green + 0.114 * c.blue;
    EXPECT_GT(light, last);
    last = light;
  }
  EXPECT_EQ(heat_colour(-5).red, heat_colour(0).red);
  EXPECT_EQ(heat_colour(5).red, heat_colour(1).red);
}

TEST(Overlay, SheetHoldsEveryTile) {
  const std::vector<Tile> tiles(5, Tile{"head 3", Image::blank(10, 20, 3)});
  const Image sheet = contact_sheet(tiles, 3);
  EXPECT_EQ(sheet.height, 2 * (36 + 18) + 8);
  EXPECT_EQ(sheet.width, 3 * 28 + 8);
  EXPECT_EQ(sheet.row(8 + 36)[3 * 8], 0);
  EXPECT_NE(sheet.row(0)[0], 0);
}

TEST(TinyFont, DrawsScaledAndClipped) {
  Image image = Image::blank(14, 12, 3);
  draw_tiny_text("l", 0, 0, 2, 200, image);
  // Its first row is .##.., two pixels a dot.
  for (int64_t x = 0; x < 12; ++x) EXPECT_EQ(image.row(1)[3 * x], x >= 2 && x < 6 ? 200 : 0) << x;
  Image edge = Image::blank(4, 4, 3);
  draw_tiny_text("m ?8w", -3, -2, 5, 200, edge);
  draw_tiny_text("0123456789 block head mean rollout", 2, 1, 1, 200, edge);
  EXPECT_NE(std::count(edge.pixels.begin(), edge.pixels.end(), 200), 0);
}

}  // namespace
}  // namespace vitrail
