// Maps drawn over images: heat as colour, and several tiles on one sheet. Knows pixels only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "image/image.h"

namespace vitrail {

// `map` (rows x columns, 0..1) smoothly enlarged over an RGB image: cold parts darken and lose colour,
// hot parts glow.
Image heat_overlay(const Image& image, std::span<const float> map, int64_t rows, int64_t columns);

struct Tile {
  std::string label;  // lowercase letters and digits, see data/tiny_font.h
  Image image;
};
// Tiles of one size under their labels, `per_row` in a row, on a dark ground; letters of 5 x 7 dots, each
// `label_scale` pixels wide.
Image contact_sheet(const std::vector<Tile>& tiles, int64_t per_row, int64_t label_scale = 3);

struct Colour {
  uint8_t red, green, blue;
};
// From black through violet and orange to pale yellow.
Colour heat_colour(float heat);

}  // namespace vitrail
