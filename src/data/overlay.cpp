#include "data/overlay.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "data/preprocess.h"
#include "data/tiny_font.h"

namespace vitrail {

namespace {
// Lightness rises evenly along the stops.
constexpr std::array<Colour, 7> kStops = {{{4, 4, 20},
                                           {58, 14, 96},
                                           {124, 30, 109},
                                           {190, 52, 85},
                                           {236, 104, 41},
                                           {250, 176, 46},
                                           {253, 248, 176}}};
constexpr int64_t kGap = 8;
constexpr uint8_t kGround = 24, kInk = 220;
constexpr int64_t kLabelDots = 12;  // of a label's line, the letters in its middle

// The map at a point, between the centres of its cells; flat beyond the outermost centres.
float sample(std::span<const float> map, int64_t rows, int64_t columns, double y, double x) {
  y = std::clamp(y - 0.5, 0.0, static_cast<double>(rows - 1));
  x = std::clamp(x - 0.5, 0.0, static_cast<double>(columns - 1));
  const auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
  const int64_t bottom = std::min(top + 1, rows - 1), right = std::min(left + 1, columns - 1);
  const auto smooth = [](double t) { return static_cast<float>(t * t * (3 - 2 * t)); };
  const float down = smooth(y - static_cast<double>(top)), along = smooth(x - static_cast<double>(left));
  const auto cell = [&](int64_t r, int64_t c) { return map[static_cast<size_t>(r * columns + c)]; };
  const float upper = cell(top, left) + along * (cell(top, right) - cell(top, left));
  const float lower = cell(bottom, left) + along * (cell(bottom, right) - cell(bottom, left));
  return upper + down * (lower - upper);
}

uint8_t blend(float grey, uint8_t own, uint8_t heat, float amount) {
  // Half the image's colour stays, so that one still sees what it is.
  const float base = 0.55f * (0.5f * grey + 0.5f * static_cast<float>(own));
  return static_cast<uint8_t>(
      std::clamp(base + amount * (static_cast<float>(heat) - 0.35f * base), 0.0f, 255.0f));
}
}  // namespace

Colour heat_colour(float heat) {
  const float at = std::clamp(heat, 0.0f, 1.0f) * static_cast<float>(kStops.size() - 1);
  const size_t stop = std::min(static_cast<size_t>(at), kStops.size() - 2);
  const float part = at - static_cast<float>(stop);
  const auto mix = [&](uint8_t a, uint8_t b) {
    return static_cast<uint8_t>(std::lround(static_cast<float>(a) + part * static_cast<float>(b - a)));
  };
  const Colour &low = kStops[stop], &high = kStops[stop + 1];
  return {mix(low.red, high.red), mix(low.green, high.green), mix(low.blue, high.blue)};
}

Image heat_overlay(const Image& image, std::span<const float> map, int64_t rows, int64_t columns) {
  VT_CHECK(image.channels == 3 && map.size() == static_cast<size_t>(rows * columns));
  Image out = Image::blank(image.height, image.width, 3);
  const double per_row = static_cast<double>(rows) / static_cast<double>(image.height);
  const double per_column = static_cast<double>(columns) / static_cast<double>(image.width);
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      const uint8_t* from = image.row(y) + 3 * x;
      uint8_t* to = out.row(y) + 3 * x;
      const float heat = sample(map, rows, columns, (static_cast<double>(y) + 0.5) * per_row,
                                (static_cast<double>(x) + 0.5) * per_column);
      const float grey = 0.299f * from[0] + 0.587f * from[1] + 0.114f * from[2];
      const Colour colour = heat_colour(heat);
      const float amount = 0.15f + 0.6f * heat;
      to[0] = blend(grey, from[0], colour.red, amount);
      to[1] = blend(grey, from[1], colour.green, amount);
      to[2] = blend(grey, from[2], colour.blue, amount);
    }
  }
  return out;
}

Image contact_sheet(const std::vector<Tile>& tiles, int64_t per_row, int64_t label_scale) {
  VT_CHECK(!tiles.empty() && per_row > 0 && label_scale > 0);
  const int64_t label_height = kLabelDots * label_scale;
  const int64_t count = static_cast<int64_t>(tiles.size()), across = std::min(count, per_row);
  const int64_t height = tiles[0].image.height, width = tiles[0].image.width;
  const int64_t step = label_height + height + kGap, down = ceil_div(count, per_row);
  Image sheet = Image::blank(down * step + kGap, across * (width + kGap) + kGap, 3);
  std::fill(sheet.pixels.begin(), sheet.pixels.end(), kGround);
  for (int64_t i = 0; i < count; ++i) {
    const auto& [label, tile] = tiles[static_cast<size_t>(i)];
    VT_CHECK(tile.height == height && tile.width == width && tile.channels == 3);
    const int64_t top = kGap + i / per_row * step, left = kGap + i % per_row * (width + kGap);
    draw_tiny_text(label, top + (label_height - kTinyHeight * label_scale) / 2, left, label_scale, kInk,
                   sheet);
    for (int64_t y = 0; y < height; ++y)
      std::copy_n(tile.row(y), 3 * width, sheet.row(top + label_height + y) + 3 * left);
  }
  return sheet;
}

namespace {

constexpr int64_t kSmallestOverlay = 448;  // pixels; an overlay of a smaller crop is drawn enlarged

// Returns a config with the same framing and more pixels.
PreprocessConfig enlarged(PreprocessConfig config) {
  const int64_t side = std::min(config.height, config.width);
  const int64_t scale = std::max<int64_t>(1, ceil_div(kSmallestOverlay, side));
  config.height *= scale;
  config.width *= scale;
  config.pad_rows *= scale;
  config.pad_columns *= scale;
  config.resize *= scale;
  config.resize_longer *= scale;
  return config;
}

Image as_rgb(Image image) {
  if (image.channels == 3) return image;
  Image rgb = Image::blank(image.height, image.width, 3);
  for (size_t i = 0; i < rgb.pixels.size(); ++i)
    rgb.pixels[i] = image.pixels[i / 3 * static_cast<size_t>(image.channels)];
  return rgb;
}

// Makes sheets a little wider than high.
int64_t tiles_per_row(size_t tiles) {
  return std::clamp<int64_t>(std::lround(std::sqrt(1.5 * static_cast<double>(tiles))), 3, 6);
}

}  // namespace

MapSheet draw_maps(const Image& image, const PreprocessConfig& preprocess,
                   const std::vector<LabelledMap>& maps, int64_t rows, int64_t columns) {
  const Image crop = as_rgb(crop_for_display(image, enlarged(preprocess)));
  MapSheet drawn;
  std::vector<Tile> tiles = {{"image", crop}};
  for (const LabelledMap& one : maps) {
    tiles.push_back({one.label, heat_overlay(crop, one.map, rows, columns)});
    drawn.overlays.push_back(tiles.back().image);
  }
  drawn.sheet = contact_sheet(tiles, tiles_per_row(tiles.size()));
  return drawn;
}

}  // namespace vitrail
