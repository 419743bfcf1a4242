// Random erasing: boxes of a preprocessed image filled with zeros, a colour or noise.
#include "data/augment/windows.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace vitrail {
namespace {

constexpr int kEraseAttempts = 10;
constexpr double kLeastRatio = 0.3;

void fill_box(std::span<float> image, Size size, const Window& box, EraseMode mode, Draw& draw) {
  const int64_t plane = size.height * size.width;
  const auto planes = static_cast<int64_t>(image.size()) / plane;
  for (int64_t c = 0; c < planes; ++c) {
    const float colour = mode == EraseMode::kRand ? static_cast<float>(draw.normal()) : 0.0f;
    for (int64_t y = 0; y < box.height; ++y) {
      float* row = image.data() + c * plane + (box.top + y) * size.width + box.left;
      if (mode == EraseMode::kPixel)
        std::generate_n(row, box.width, [&] { return static_cast<float>(draw.normal()); });
      else
        std::fill_n(row, box.width, colour);
    }
  }
}

}  // namespace

void draw_erased(Size size, const AugmentConfig& config, Draw& draw,
                 const std::function<void(const Window&)>& erase) {
  if (!draw.chance(config.erase)) return;
  const double area = static_cast<double>(size.height) * static_cast<double>(size.width);
  const int64_t count = draw.integer(1, config.erase_count);
  for (int64_t i = 0; i < count; ++i)
    for (int attempt = 0; attempt < kEraseAttempts; ++attempt) {
      const double target =
          draw.uniform(config.erase_area[0], config.erase_area[1]) * area / static_cast<double>(count);
      const double ratio = std::exp(draw.uniform(std::log(kLeastRatio), -std::log(kLeastRatio)));
      const int64_t height = round_half_even(std::sqrt(target * ratio));
      const int64_t width = round_half_even(std::sqrt(target / ratio));
      if (width >= size.width || height >= size.height) continue;
      const int64_t top = draw.integer(0, size.height - height);
      const int64_t left = draw.integer(0, size.width - width);
      erase({top, left, height, width});
      break;
    }
}

void random_erase(std::span<float> image, Size size, const AugmentConfig& config, Draw& draw) {
  draw_erased(size, config, draw,
              [&](const Window& box) { fill_box(image, size, box, config.erase_mode, draw); });
}

}  // namespace vitrail
