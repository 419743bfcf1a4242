// Maps drawn over images: heat as colour, and several tiles on one sheet. Knows pixels, and no model.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "image/image.h"
#include "image/preprocess_config.h"

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

struct LabelledMap {
  std::string label;
  std::vector<float> map;  // rows x columns, 0..1
};
struct MapSheet {
  std::vector<Image> overlays;  // one for each map
  Image sheet;                  // the image as the model sees it, then the overlays
};
// Draws maps over the crop of an image that a model sees, enlarged where that is small.
MapSheet draw_maps(const Image& image, const PreprocessConfig& preprocess,
                   const std::vector<LabelledMap>& maps, int64_t rows, int64_t columns);

struct Colour {
  uint8_t red, green, blue;
};
// Returns the colour of a heat from 0 to 1: from black through violet and orange to pale yellow.
Colour heat_colour(float heat);

}  // namespace vitrail
