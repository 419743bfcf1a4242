// The two TensorFlow resamplings follow TensorFlow's CPU kernels down to the order of the float operations.
#include <algorithm>
#include <cmath>

#include "data/resize.h"

namespace vitrail {
namespace {

float tf_scale(int64_t in, int64_t out) {
  return static_cast<float>(in) / static_cast<float>(out);
}

struct Blend {
  int64_t lower = 0, upper = 0;
  float fraction = 0;
};

std::vector<Blend> blends(int64_t in, int64_t out, int64_t begin, int64_t length) {
  const float scale = tf_scale(in, out);
  std::vector<Blend> result(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) {
    const float at = (static_cast<float>(begin + i) + 0.5f) * scale - 0.5f;
    const float floor = std::floor(at);
    const auto lower = std::clamp<int64_t>(static_cast<int64_t>(floor), 0, in - 1);
    const auto upper = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(at)), 0, in - 1);
    result[static_cast<size_t>(i)] = {lower, upper, at - floor};
  }
  return result;
}

float lerp(float a, float b, float fraction) {
  return a + (b - a) * fraction;
}

// The source cells [first, end) that an output cell covers; only the two outermost may be covered in part.
struct Cover {
  int64_t first = 0, end = 0;
  float first_share = 1, last_share = 1;
};

float share_of(int64_t cell, float from, float to, float scale) {
  const auto start = static_cast<float>(cell);
  if (start < from) return start + 1 > to ? scale : start + 1 - from;
  return start + 1 > to ? to - start : 1.0f;
}

std::vector<Cover> covers(int64_t in, int64_t out, int64_t begin, int64_t length) {
  const float scale = tf_scale(in, out);
  std::vector<Cover> result(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) {
    const float from = static_cast<float>(begin + i) * scale, to = static_cast<float>(begin + i + 1) * scale;
    const auto first = static_cast<int64_t>(std::floor(from)), end = static_cast<int64_t>(std::ceil(to));
    result[static_cast<size_t>(i)] = {first, end, share_of(first, from, to, scale),
                                      share_of(end - 1, from, to, scale)};
  }
  return result;
}

float share(const Cover& cover, int64_t cell) {
  if (cell == cover.first) return cover.first_share;
  return cell == cover.end - 1 ? cover.last_share : 1.0f;
}

float covered_sum(const Image& image, const Cover& rows, const Cover& columns, int64_t channel) {
  float sum = 0;
  for (int64_t y = rows.first; y < rows.end; ++y) {
    const uint8_t* row = image.row(std::min(y, image.height - 1)) + channel;
    float row_sum = 0;
    for (int64_t x = columns.first; x < columns.end; ++x)
      row_sum += static_cast<float>(row[std::min(x, image.width - 1) * image.channels]) * share(columns, x);
    sum += row_sum * share(rows, y);
  }
  return sum;
}

}  // namespace

FloatImage resize_tf_bilinear(const Image& image, Size size, const Window& window) {
  check_resize(image, size, window);
  const auto rows = blends(image.height, size.height, window.top, window.height);
  const auto columns = blends(image.width, size.width, window.left, window.width);
  const int64_t channels = image.channels;
  FloatImage result{window.height, window.width, channels, {}};
  result.pixels.reserve(static_cast<size_t>(window.height * window.width * channels));
  for (const Blend& y : rows) {
    const uint8_t *upper_row = image.row(y.lower), *lower_row = image.row(y.upper);
    for (const Blend& x : columns)
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t left = x.lower * channels + c, right = x.upper * channels + c;
        const float top = lerp(upper_row[left], upper_row[right], x.fraction);
        const float bottom = lerp(lower_row[left], lower_row[right], x.fraction);
        result.pixels.push_back(lerp(top, bottom, y.fraction));
      }
  }
  return result;
}

Image resize_tf_area(const Image& image, Size size, const Window& window) {
  check_resize(image, size, window);
  const auto rows = covers(image.height, size.height, window.top, window.height);
  const auto columns = covers(image.width, size.width, window.left, window.width);
  const float normal = 1.0f / (tf_scale(image.height, size.height) * tf_scale(image.width, size.width));
  Image result = Image::blank(window.height, window.width, image.channels);
  uint8_t* target = result.pixels.data();
  for (const Cover& y : rows)
    for (const Cover& x : columns)
      for (int64_t c = 0; c < image.channels; ++c)
        *target++ = static_cast<uint8_t>(std::clamp(covered_sum(image, y, x, c) * normal, 0.0f, 255.0f));
  return result;
}

}  // namespace vitrail
