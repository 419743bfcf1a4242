#include "data/augment/geometry.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numbers>
#include <utility>

namespace vitrail {
namespace {

// The interpolation cell that Pillow's filters share: the position is rounded down, and neighbours outside
// repeat the border.
struct Cell {
  int64_t x, y;
  double dx, dy;
};

int64_t floor_of(double v) {
  return v < 0 ? static_cast<int64_t>(std::floor(v)) : static_cast<int64_t>(v);
}

Cell cell_of(double x, double y) {
  x -= 0.5;
  y -= 0.5;
  const int64_t left = floor_of(x), top = floor_of(y);
  return {left, top, x - static_cast<double>(left), y - static_cast<double>(top)};
}

double lerp(double a, double b, double d) {
  return a + (b - a) * d;
}

// Keys' cubic with a = -1, as in Pillow's affine maps; its resize has a = -1/2.
double cubic(double v1, double v2, double v3, double v4, double d) {
  const double p2 = -v1 + v3, p3 = 2 * (v1 - v2) + v3 - v4, p4 = -v1 + v2 - v3 + v4;
  return v2 + d * (p2 + d * (p3 + d * p4));
}

void read_bilinear(const Image& image, double x, double y, uint8_t* target) {
  const Cell cell = cell_of(x, y);
  const int64_t left = std::clamp<int64_t>(cell.x, 0, image.width - 1) * image.channels;
  const int64_t right = std::clamp<int64_t>(cell.x + 1, 0, image.width - 1) * image.channels;
  const uint8_t* above = image.row(std::clamp<int64_t>(cell.y, 0, image.height - 1));
  const uint8_t* below = image.row(std::clamp<int64_t>(cell.y + 1, 0, image.height - 1));
  for (int64_t c = 0; c < image.channels; ++c) {
    const double upper = lerp(above[left + c], above[right + c], cell.dx);
    const double lower = lerp(below[left + c], below[right + c], cell.dx);
    target[c] = static_cast<uint8_t>(lerp(upper, lower, cell.dy));
  }
}

void read_bicubic(const Image& image, double x, double y, uint8_t* target) {
  const Cell cell = cell_of(x, y);
  int64_t columns[4];
  const uint8_t* rows[4];
  for (int64_t i = 0; i < 4; ++i) {
    columns[i] = std::clamp<int64_t>(cell.x - 1 + i, 0, image.width - 1) * image.channels;
    rows[i] = image.row(std::clamp<int64_t>(cell.y - 1 + i, 0, image.height - 1));
  }
  for (int64_t c = 0; c < image.channels; ++c) {
    double v[4];
    for (int i = 0; i < 4; ++i)
      v[i] = cubic(rows[i][columns[0] + c], rows[i][columns[1] + c], rows[i][columns[2] + c],
                   rows[i][columns[3] + c], cell.dx);
    target[c] = static_cast<uint8_t>(std::clamp(cubic(v[0], v[1], v[2], v[3], cell.dy), 0.0, 255.0));
  }
}

template <typename Read>
void affine_exact(const Image& image, const std::array<double, 6>& m, const Read& read, Image& result) {
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x) {
      const double px = static_cast<double>(x) + 0.5, py = static_cast<double>(y) + 0.5;
      const double from_x = m[0] * px + m[1] * py + m[2], from_y = m[3] * px + m[4] * py + m[5];
      if (from_x < 0 || from_x >= width || from_y < 0 || from_y >= height) continue;
      read(image, from_x, from_y, result.row(y) + x * image.channels);
    }
}

// Pillow steps through the source in 16.16 fixed point.
void affine_nearest(const Image& image, const std::array<double, 6>& m, Image& result) {
  const auto fixed = [](double v) { return floor_of(v * 65536.0 + 0.5); };
  int64_t row_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5), row_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  for (int64_t y = 0; y < image.height; ++y, row_x += fixed(m[1]), row_y += fixed(m[4])) {
    int64_t at_x = row_x, at_y = row_y;
    for (int64_t x = 0; x < image.width; ++x, at_x += fixed(m[0]), at_y += fixed(m[3])) {
      const int64_t from_x = at_x >> 16, from_y = at_y >> 16;
      if (from_x < 0 || from_x >= image.width || from_y < 0 || from_y >= image.height) continue;
      std::copy_n(image.row(from_y) + from_x * image.channels, image.channels,
                  result.row(y) + x * image.channels);
    }
  }
}

// Computes Python's round(x, 15).
double rounded15(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.15f", x);
  return std::strtod(text, nullptr);
}

}  // namespace

void flip_horizontal(Image& image) {
  for (int64_t y = 0; y < image.height; ++y) {
    uint8_t *left = image.row(y), *right = left + (image.width - 1) * image.channels;
    for (; left < right; left += image.channels, right -= image.channels)
      std::swap_ranges(left, left + image.channels, right);
  }
}

void flip_vertical(Image& image) {
  const int64_t row = image.width * image.channels;
  for (int64_t y = 0; y < image.height / 2; ++y)
    std::swap_ranges(image.row(y), image.row(y) + row, image.row(image.height - 1 - y));
}

Image crop_window(const Image& image, const Window& window, bool mirror) {
  Image result = Image::blank(window.height, window.width, image.channels);
  const int64_t left = std::max<int64_t>(window.left, 0);
  const int64_t right = std::min(window.left + window.width, image.width);
  for (int64_t y = 0; y < window.height; ++y) {
    const int64_t from_y = window.top + y;
    if (!mirror && (from_y < 0 || from_y >= image.height)) continue;
    const uint8_t* from = image.row(mirrored(from_y, image.height));
    uint8_t* to = result.row(y);
    if (right > left)
      std::memcpy(to + (left - window.left) * image.channels, from + left * image.channels,
                  static_cast<size_t>((right - left) * image.channels));
    if (!mirror) continue;
    for (int64_t x = 0; x < window.width; ++x) {
      const int64_t from_x = window.left + x;
      if (from_x < 0 || from_x >= image.width)
        std::copy_n(from + mirrored(from_x, image.width) * image.channels, image.channels,
                    to + x * image.channels);
    }
  }
  return result;
}

void affine(Image& image, const std::array<double, 6>& map, const Sampling& sampling) {
  Image result = Image::blank(image.height, image.width, image.channels);
  for (size_t i = 0; i < result.pixels.size(); ++i)
    result.pixels[i] = sampling.fill[i % static_cast<size_t>(image.channels)];
  switch (sampling.interpolation) {
    case Interpolation::kNearest:
      affine_nearest(image, map, result);
      break;
    case Interpolation::kBilinear:
      affine_exact(image, map, read_bilinear, result);
      break;
    default:
      affine_exact(image, map, read_bicubic, result);
      break;
  }
  image = std::move(result);
}

void rotate(Image& image, double degrees, const Sampling& sampling) {
  degrees = std::fmod(degrees, 360);
  if (degrees < 0) degrees += 360;
  if (degrees == 0) return;
  const double angle = -degrees * (std::numbers::pi / 180);
  const double cos = rounded15(std::cos(angle)), sin = rounded15(std::sin(angle));
  const double cx = static_cast<double>(image.width) / 2, cy = static_cast<double>(image.height) / 2;
  affine(image, {cos, sin, cos * -cx + sin * -cy + cx, -sin, cos, -sin * -cx + cos * -cy + cy}, sampling);
}

}  // namespace vitrail
