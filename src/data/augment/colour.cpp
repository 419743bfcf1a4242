#include "data/augment/colour.h"

#include <algorithm>
#include <array>
#include <utility>

#include "data/preprocess.h"

namespace vitrail {
namespace {

// Computes Pillow's Image.blend of two levels: `plain` at alpha 0, `level` at 1, and beyond; in float32,
// truncated.
uint8_t blended(int plain, int level, float alpha) {
  const float mixed = static_cast<float>(plain) + alpha * static_cast<float>(level - plain);
  return static_cast<uint8_t>(std::clamp(mixed, 0.0f, 255.0f));
}

void blend_from_level(Image& image, double factor, int plain) {
  std::array<uint8_t, 256> table;
  for (int level = 0; level < 256; ++level)
    table[static_cast<size_t>(level)] = blended(plain, level, static_cast<float>(factor));
  for (uint8_t& pixel : image.pixels) pixel = table[pixel];
}

// Applies Pillow's SMOOTH filter: 1/13 of the eight neighbours and 5/13 of the pixel; border pixels stay. The
// sum is never exactly at one half, so integers give the same as Pillow's float32.
Image smoothed(const Image& image) {
  Image result = image;
  const int64_t step = image.channels;
  for (int64_t y = 1; y + 1 < image.height; ++y) {
    const uint8_t *above = image.row(y - 1), *here = image.row(y), *below = image.row(y + 1);
    uint8_t* out = result.row(y);
    for (int64_t i = step; i < (image.width - 1) * step; ++i) {
      int sum = 4 * here[i];
      for (int64_t j : {i - step, i, i + step}) sum += above[j] + here[j] + below[j];
      out[i] = static_cast<uint8_t>((2 * sum + 13) / 26);
    }
  }
  return result;
}

struct Hsv {
  uint8_t hue = 0, saturation = 0, value = 0;
};

// The mixture of float32 and f64 is Pillow's; it matters at the borders of levels.
Hsv to_hsv(const uint8_t* rgb) {
  const int r = rgb[0], g = rgb[1], b = rgb[2];
  const int high = std::max({r, g, b}), low = std::min({r, g, b});
  if (high == low) return {0, 0, static_cast<uint8_t>(high)};
  const auto range = static_cast<float>(high - low);
  const float saturation = range / static_cast<float>(high);
  const float rc = static_cast<float>(high - r) / range, gc = static_cast<float>(high - g) / range,
              bc = static_cast<float>(high - b) / range;
  float hue = r == high ? bc - gc : 0.0f;
  if (r != high) hue = static_cast<float>(g == high ? 2.0 + rc - bc : 4.0 + gc - rc);
  const double turned = hue / 6.0 + 1.0;  // below 2
  hue = static_cast<float>(turned < 1.0 ? turned : turned - 1.0);
  return {static_cast<uint8_t>(hue * 255.0), static_cast<uint8_t>(saturation * 255.0),
          static_cast<uint8_t>(high)};
}

void to_rgb(const Hsv& hsv, uint8_t* rgb) {
  const uint8_t v = hsv.value;
  const double turned = static_cast<float>(hsv.hue) * 6.0 / 255.0;
  const int sector = static_cast<int>(turned);
  const auto rest = static_cast<float>(turned - sector);
  const auto share = static_cast<float>(hsv.saturation / 255.0);
  const auto level = [&](double keep) { return static_cast<uint8_t>(v * keep + 0.5); };
  const uint8_t p = level(1.0 - share), q = level(1.0 - share * rest), t = level(1.0 - share * (1.0 - rest));
  const uint8_t wheel[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
  std::copy_n(wheel[sector % 6], 3, rgb);
}

}  // namespace

void adjust_brightness(Image& image, double factor) {
  blend_from_level(image, factor, 0);
}

void adjust_contrast(Image& image, double factor) {
  const Image luma = image.channels == 1 ? Image{} : to_luma(image);
  const std::vector<uint8_t>& levels = image.channels == 1 ? image.pixels : luma.pixels;
  if (levels.empty()) return;
  int64_t sum = 0;
  for (uint8_t level : levels) sum += level;
  const int mean = static_cast<int>(static_cast<double>(sum) / static_cast<double>(levels.size()) + 0.5);
  blend_from_level(image, factor, mean);
}

void adjust_saturation(Image& image, double factor) {
  if (image.channels == 1 || factor == 1) return;
  const Image luma = to_luma(image);
  const auto alpha = static_cast<float>(factor);
  for (size_t i = 0; i < luma.pixels.size(); ++i)
    for (size_t c = 3 * i; c < 3 * i + 3; ++c)
      image.pixels[c] = blended(luma.pixels[i], image.pixels[c], alpha);
}

void adjust_sharpness(Image& image, double factor) {
  if (factor == 1) return;
  const Image smooth = smoothed(image);
  const auto alpha = static_cast<float>(factor);
  for (size_t i = 0; i < smooth.pixels.size(); ++i)
    image.pixels[i] = blended(smooth.pixels[i], image.pixels[i], alpha);
}

void adjust_hue(Image& image, double shift) {
  if (image.channels == 1) return;
  const auto turn = static_cast<uint8_t>(static_cast<int>(shift * 255));
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    Hsv hsv = to_hsv(&image.pixels[i]);
    hsv.hue = static_cast<uint8_t>(hsv.hue + turn);
    if (hsv.saturation == 0)
      std::fill_n(&image.pixels[i], 3, hsv.value);
    else
      to_rgb(hsv, &image.pixels[i]);
  }
}

void make_grey(Image& image) {
  if (image.channels == 1) return;
  const Image luma = to_luma(image);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = luma.pixels[i / 3];
}

JitterDraw draw_jitter(const std::vector<double>& strengths, Draw& draw) {
  JitterDraw drawn;
  for (size_t i = 3; i > 0; --i)
    std::swap(drawn.order[i], drawn.order[static_cast<size_t>(draw.integer(0, static_cast<int64_t>(i)))]);
  for (size_t i = 0; i < strengths.size(); ++i)
    drawn.factor[i] = i == 3 ? draw.uniform(-strengths[i], strengths[i])
                             : draw.uniform(std::max(0.0, 1 - strengths[i]), 1 + strengths[i]);
  return drawn;
}

void colour_jitter(Image& image, const std::vector<double>& strengths, Draw& draw) {
  constexpr void (*kAdjust[])(Image&, double) = {adjust_brightness, adjust_contrast, adjust_saturation,
                                                 adjust_hue};
  const JitterDraw drawn = draw_jitter(strengths, draw);
  for (int adjustment : drawn.order) {
    const auto at = static_cast<size_t>(adjustment);
    if (at < strengths.size() && strengths[at] != 0) kAdjust[at](image, drawn.factor[at]);
  }
}

}  // namespace vitrail
