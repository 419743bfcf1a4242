// A Gaussian blur as Pillow computes it: three box filters along each axis.
#include "data/augment/pixel_ops.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace vitrail {
namespace {

constexpr int kPasses = 3;

// A box filter of 2 * radius + 1 samples of weight `inner` and one more of weight `outer` at either end.
struct Box {
  int64_t radius;
  uint32_t inner, outer;
};

// Computes formulas 7, 11 and 14 of Gwosdek et al. 2011, in float32 as Pillow does.
Box box_for(double sigma) {
  const auto wanted = static_cast<float>(sigma);
  const float variance = wanted * wanted / kPasses;
  const auto length = static_cast<float>(std::sqrt(12.0 * variance + 1.0));
  const auto whole = static_cast<float>(std::floor((length - 1.0) / 2.0));
  float part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
  part /= 6 * (variance - (whole + 1) * (whole + 1));
  const float radius = whole + part;
  const auto cells = static_cast<int64_t>(radius);
  const auto inner = static_cast<uint32_t>(static_cast<float>(1 << 24) / (radius * 2 + 1));
  return {cells, inner, ((1u << 24) - static_cast<uint32_t>(cells * 2 + 1) * inner) / 2};
}

// `sums` holds the box sum of each column. The results never overlap what is read.
void blur_row(const uint8_t* leaving, const uint8_t* entering, const uint8_t* next, const Box& box,
              int64_t samples, uint32_t* __restrict sums, uint8_t* __restrict target) {
  const uint32_t inner = box.inner, outer = box.outer;
  for (int64_t i = 0; i < samples; ++i) {
    const uint32_t sum = sums[i] + entering[i] - leaving[i];
    const uint32_t ends = static_cast<uint32_t>(leaving[i]) + next[i];
    sums[i] = sum;
    target[i] = static_cast<uint8_t>((sum * inner + ends * outer + (1u << 23)) >> 24);
  }
}

// Filters down every column at once; rows outside repeat the border.
void blur_down(const Image& image, const Box& box, std::vector<uint32_t>& sums, Image& result) {
  const auto row = [&](int64_t y) { return image.row(std::clamp<int64_t>(y, 0, image.height - 1)); };
  const int64_t samples = image.width * image.channels;
  sums.assign(static_cast<size_t>(samples), 0);
  for (int64_t y = -box.radius - 1; y < box.radius; ++y) {
    const uint8_t* entering = row(y);
    for (int64_t i = 0; i < samples; ++i) sums[static_cast<size_t>(i)] += entering[i];
  }
  for (int64_t y = 0; y < image.height; ++y)
    blur_row(row(y - box.radius - 1), row(y + box.radius), row(y + box.radius + 1), box, samples, sums.data(),
             result.row(y));
}

Image transposed(const Image& image) {
  Image result = Image::blank(image.width, image.height, image.channels);
  const int64_t height = image.height, width = image.width, channels = image.channels;
  const uint8_t* from = image.pixels.data();
  for (int64_t y = 0; y < height; ++y) {
    uint8_t* to = result.pixels.data() + y * channels;
    for (int64_t x = 0; x < width; ++x, from += channels, to += height * channels)
      for (int64_t c = 0; c < channels; ++c) to[c] = from[c];
  }
  return result;
}

}  // namespace

void gaussian_blur(Image& image, double sigma) {
  if (sigma <= 0 || image.pixels.empty()) return;
  const Box box = box_for(sigma);
  std::vector<uint32_t> sums;
  // Rows are filtered first: the order matters, because results are rounded to 8 bits between the passes.
  for (const bool along_rows : {true, false}) {
    Image from = along_rows ? transposed(image) : std::move(image);
    Image to = Image::blank(from.height, from.width, from.channels);
    for (int pass = 0; pass < kPasses; ++pass) {
      blur_down(from, box, sums, to);
      std::swap(from, to);
    }
    image = along_rows ? transposed(from) : std::move(from);
  }
}

}  // namespace vitrail
