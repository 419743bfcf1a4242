// Colour augmentations, bit-equal to Pillow's ImageEnhance and, for hue, to torchvision on Pillow images. A
// factor of 1 (hue: a shift of 0) leaves the image unchanged. Grey images have neither saturation nor hue.
#pragma once

#include <array>
#include <vector>

#include "data/augment/draw.h"
#include "image/image.h"

namespace vitrail {

void adjust_brightness(Image& image, double factor);
void adjust_contrast(Image& image, double factor);
void adjust_saturation(Image& image, double factor);
void adjust_sharpness(Image& image, double factor);

// Rotates the hue by `shift` of a full circle, -0.5..0.5.
void adjust_hue(Image& image, double shift);

// Writes the luma to all channels.
void make_grey(Image& image);

// The draw of torchvision's ColorJitter: factors from [max(0, 1 - strength), 1 + strength], in random order.
// `strengths`: brightness, contrast, saturation and perhaps hue (from [-strength, strength]).
struct JitterDraw {
  std::array<int, 4> order = {0, 1, 2, 3};  // of brightness, contrast, saturation, hue
  std::array<double, 4> factor = {1, 1, 1, 0};
};
JitterDraw draw_jitter(const std::vector<double>& strengths, Draw& draw);
void colour_jitter(Image& image, const std::vector<double>& strengths, Draw& draw);

}  // namespace vitrail
