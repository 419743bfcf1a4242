// Windows of an image that are cropped: a random resized crop, and a random crop of a padded image.
#include "data/augment/windows.h"

#include <algorithm>
#include <cmath>

namespace vitrail {
namespace {

constexpr int kAttempts = 10;

struct Attempt {
  double area, ratio;  // share of the image's area; width / height
};

Attempt draw_attempt(const AugmentConfig& config, Draw& draw) {
  const double area = draw.uniform(config.crop_scale[0], config.crop_scale[1]);
  const double log_ratio = draw.uniform(std::log(config.crop_ratio[0]), std::log(config.crop_ratio[1]));
  return {area, std::exp(log_ratio)};
}

Window central(Size image, const AugmentConfig& config) {
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  Size crop = image;
  if (width / height < config.crop_ratio[0]) crop.height = round_half_even(width / config.crop_ratio[0]);
  if (width / height > config.crop_ratio[1]) crop.width = round_half_even(height * config.crop_ratio[1]);
  crop = {std::clamp<int64_t>(crop.height, 1, image.height), std::clamp<int64_t>(crop.width, 1, image.width)};
  return {(image.height - crop.height) / 2, (image.width - crop.width) / 2, crop.height, crop.width};
}

}  // namespace

Window resized_crop(Size image, const AugmentConfig& config, Draw& draw) {
  const double area = static_cast<double>(image.height) * static_cast<double>(image.width);
  for (int i = 0; i < kAttempts; ++i) {
    const Attempt attempt = draw_attempt(config, draw);
    const int64_t width = round_half_even(std::sqrt(attempt.area * area * attempt.ratio));
    const int64_t height = round_half_even(std::sqrt(attempt.area * area / attempt.ratio));
    if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
    const int64_t top = draw.integer(0, image.height - height);
    return {top, draw.integer(0, image.width - width), height, width};
  }
  return central(image, config);
}

int64_t resized_crop_least_side(Size target, const AugmentConfig& config, Draw draw) {
  double least = 0;
  for (int i = 0; i < kAttempts; ++i) {
    // For an image whose shorter side is s, the crop has at least s * sqrt(area * ratio) columns and s *
    // sqrt(area / ratio) rows.
    const Attempt attempt = draw_attempt(config, draw);
    least = std::max({least, static_cast<double>(target.width) / std::sqrt(attempt.area * attempt.ratio),
                      static_cast<double>(target.height) / std::sqrt(attempt.area / attempt.ratio)});
  }
  return static_cast<int64_t>(std::ceil(least));
}

Window padded_crop(Size image, Size target, int64_t pad, Draw& draw) {
  const int64_t top = draw.integer(-pad, image.height + pad - target.height);
  return {top, draw.integer(-pad, image.width + pad - target.width), target.height, target.width};
}

ImageBox box_of(const Window& window) {
  return {static_cast<int32_t>(window.top), static_cast<int32_t>(window.left),
          static_cast<int32_t>(window.height), static_cast<int32_t>(window.width)};
}

}  // namespace vitrail
