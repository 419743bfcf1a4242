// Operations that map the levels of a channel by a table: auto-contrast, equalize, posterize, solarize.
#include "data/augment/pixel_ops.h"

#include <algorithm>
#include <array>

namespace vitrail {
namespace {

using Table = std::array<uint8_t, 256>;
using Histogram = std::array<int64_t, 256>;

Histogram histogram_of(const Image& image, int64_t channel) {
  Histogram counts{};
  for (size_t i = static_cast<size_t>(channel); i < image.pixels.size();
       i += static_cast<size_t>(image.channels))
    ++counts[image.pixels[i]];
  return counts;
}

template <typename Level>
Table make_table(const Level& level) {
  Table table;
  for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = static_cast<uint8_t>(level(i));
  return table;
}

Table identity() {
  return make_table([](int i) { return i; });
}

void map_channel(Image& image, int64_t channel, const Table& table) {
  for (size_t i = static_cast<size_t>(channel); i < image.pixels.size();
       i += static_cast<size_t>(image.channels))
    image.pixels[i] = table[image.pixels[i]];
}

void map_all(Image& image, const Table& table) {
  for (uint8_t& pixel : image.pixels) pixel = table[pixel];
}

Table stretched(const Histogram& counts) {
  int low = 0, high = 255;
  while (low < 255 && counts[static_cast<size_t>(low)] == 0) ++low;
  while (high > 0 && counts[static_cast<size_t>(high)] == 0) --high;
  if (high <= low) return identity();
  const double scale = 255.0 / (high - low), offset = -low * scale;
  return make_table([&](int i) { return std::clamp(static_cast<int>(i * scale + offset), 0, 255); });
}

Table flattened(const Histogram& counts) {
  int64_t total = 0, last = 0, used = 0;
  for (int64_t count : counts) {
    total += count;
    if (count > 0) last = count;
    used += count > 0;
  }
  const int64_t step = (total - last) / 255;
  if (used <= 1 || step == 0) return identity();
  int64_t below = step / 2;
  // The result cannot exceed 255: all counts but the last level's amount to less than 256 steps.
  return make_table([&](int i) {
    const int64_t level = below / step;
    below += counts[static_cast<size_t>(i)];
    return std::min<int64_t>(level, 255);
  });
}

}  // namespace

void auto_contrast(Image& image) {
  for (int64_t c = 0; c < image.channels; ++c) map_channel(image, c, stretched(histogram_of(image, c)));
}

void equalize(Image& image) {
  for (int64_t c = 0; c < image.channels; ++c) map_channel(image, c, flattened(histogram_of(image, c)));
}

void invert(Image& image) {
  for (uint8_t& pixel : image.pixels) pixel = static_cast<uint8_t>(255 - pixel);
}

void posterize(Image& image, int64_t bits) {
  if (bits >= 8) return;
  const int mask = bits <= 0 ? 0 : 0xFF << (8 - bits);
  map_all(image, make_table([&](int i) { return i & mask; }));
}

void solarize(Image& image, double threshold) {
  map_all(image, make_table([&](int i) { return i < threshold ? i : 255 - i; }));
}

void solarize_add(Image& image, int64_t amount) {
  map_all(image, make_table([&](int i) { return i < 128 ? std::clamp<int64_t>(i + amount, 0, 255) : i; }));
}

}  // namespace vitrail
