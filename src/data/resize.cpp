#include "data/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/error.h"

namespace vitrail {
namespace {

// 8 bits of pixel and 2 of headroom for kernels with negative lobes leave 22 of 32 for the weights.
constexpr int kPrecisionBits = 22;
constexpr int32_t kHalf = 1 << (kPrecisionBits - 1);

double box_kernel(double x) {
  return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

double triangle_kernel(double x) {
  return std::max(0.0, 1.0 - std::abs(x));
}

// Keys' cubic with a = -1/2, factored so that it rounds as Pillow's does.
double cubic_kernel(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos_kernel(double x) {
  return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

// Pillow's constants are floats.
double hamming_kernel(double x) {
  return -1.0 < x && x < 1.0 ? sinc(x) * (0.54f + 0.46f * std::cos(std::numbers::pi * x)) : 0.0;
}

struct Kernel {
  double (*weight)(double);
  double support;
};

Kernel kernel_of(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kBilinear:
      return {triangle_kernel, 1.0};
    case Interpolation::kBicubic:
      return {cubic_kernel, 2.0};
    case Interpolation::kLanczos:
      return {lanczos_kernel, 3.0};
    case Interpolation::kHamming:
      return {hamming_kernel, 1.0};
    case Interpolation::kBox:
      return {box_kernel, 0.5};
    case Interpolation::kNearest:
      break;
  }
  VT_CHECK(false, "nearest has no kernel");
  return {};
}

// The source positions of which an output position is a weighted sum.
struct Taps {
  int64_t first = 0, count = 0;
  const int32_t* weights = nullptr;
};

// The taps of output positions [begin, begin + length) when `in` positions become `out`.
class TapTable {
 public:
  TapTable(int64_t in, int64_t out, int64_t begin, int64_t length, const Kernel& kernel) {
    const double scale = static_cast<double>(in) / static_cast<double>(out);
    const double filter_scale = std::max(scale, 1.0);
    const double support = kernel.support * filter_scale;
    const auto stride = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
    weights_.resize(static_cast<size_t>(length * stride));
    taps_.reserve(static_cast<size_t>(length));
    std::vector<double> exact(static_cast<size_t>(stride));
    for (int64_t i = 0; i < length; ++i) {
      const double center = (static_cast<double>(begin + i) + 0.5) * scale;
      const auto first = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
      const int64_t end = std::min(static_cast<int64_t>(center + support + 0.5), in);
      int32_t* weights = weights_.data() + i * stride;
      fill(exact, first, end - first, center, 1.0 / filter_scale, kernel, weights);
      taps_.push_back({first, end - first, weights});
    }
  }

  int64_t size() const { return static_cast<int64_t>(taps_.size()); }
  // The source positions that any of the outputs needs: [first, first + span).
  int64_t first() const { return taps_.front().first; }
  int64_t span() const { return taps_.back().first + taps_.back().count - first(); }
  const Taps& operator[](int64_t i) const { return taps_[static_cast<size_t>(i)]; }

 private:
  static void fill(std::vector<double>& exact, int64_t first, int64_t count, double center, double shrink,
                   const Kernel& kernel, int32_t* weights) {
    double sum = 0.0;
    for (int64_t x = 0; x < count; ++x) {
      const double weight = kernel.weight((static_cast<double>(x + first) - center + 0.5) * shrink);
      exact[static_cast<size_t>(x)] = weight;
      sum += weight;
    }
    for (int64_t x = 0; x < count; ++x) {
      const double weight = sum != 0.0 ? exact[static_cast<size_t>(x)] / sum : exact[static_cast<size_t>(x)];
      const double fixed = weight * (1 << kPrecisionBits);
      weights[x] = static_cast<int32_t>(weight < 0 ? fixed - 0.5 : fixed + 0.5);
    }
  }

  std::vector<int32_t> weights_;
  std::vector<Taps> taps_;
};

uint8_t clip8(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kPrecisionBits, 0, 255));
}

template <int C>
void resample_row(const uint8_t* source, const TapTable& table, uint8_t* target) {
  for (int64_t x = 0; x < table.size(); ++x, target += C) {
    const Taps& taps = table[x];
    const uint8_t* from = source + (taps.first - table.first()) * C;
    int32_t sums[C];
    for (int c = 0; c < C; ++c) sums[c] = kHalf;
    for (int64_t t = 0; t < taps.count; ++t)
      for (int c = 0; c < C; ++c) sums[c] += from[t * C + c] * taps.weights[t];
    for (int c = 0; c < C; ++c) target[c] = clip8(sums[c]);
  }
}

// Both passes read `part` of the image; the side they resample starts where the table's taps start.
Image horizontal_pass(const Image& image, const Window& part, const TapTable& table) {
  Image result = Image::blank(part.height, table.size(), image.channels);
  for (int64_t y = 0; y < part.height; ++y) {
    const uint8_t* source = image.row(part.top + y) + part.left * image.channels;
    switch (image.channels) {
      case 1:
        resample_row<1>(source, table, result.row(y));
        break;
      case 3:
        resample_row<3>(source, table, result.row(y));
        break;
      default:
        resample_row<4>(source, table, result.row(y));
        break;
    }
  }
  return result;
}

Image vertical_pass(const Image& image, const Window& part, const TapTable& table) {
  Image result = Image::blank(table.size(), part.width, image.channels);
  const int64_t samples = part.width * image.channels;
  std::vector<int32_t> sums(static_cast<size_t>(samples));
  for (int64_t y = 0; y < table.size(); ++y) {
    const Taps& taps = table[y];
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int64_t t = 0; t < taps.count; ++t) {
      const int64_t row = part.top + taps.first - table.first() + t;
      const uint8_t* from = image.row(row) + part.left * image.channels;
      const int32_t weight = taps.weights[t];
      for (int64_t i = 0; i < samples; ++i) sums[static_cast<size_t>(i)] += from[i] * weight;
    }
    uint8_t* target = result.row(y);
    for (int64_t i = 0; i < samples; ++i) target[i] = clip8(sums[static_cast<size_t>(i)]);
  }
  return result;
}

Image resample(const Image& image, Size size, const Window& window, const Kernel& kernel) {
  const TapTable rows(image.height, size.height, window.top, window.height, kernel);
  const TapTable columns(image.width, size.width, window.left, window.width, kernel);
  if (size.height == image.height)
    return horizontal_pass(image, {window.top, columns.first(), window.height, columns.span()}, columns);
  if (size.width == image.width)
    return vertical_pass(image, {rows.first(), window.left, rows.span(), window.width}, rows);

  const Window source{rows.first(), columns.first(), rows.span(), columns.span()};
  // The order of the passes follows Pillow's rule since version 13; before, the horizontal pass always came
  // first. The rounding to 8 bits between the passes makes the order visible in the result.
  const int64_t rows_lost = image.height - size.height, columns_lost = image.width - size.width;
  if (rows_lost > 0 && rows_lost > 2 * columns_lost) {
    const Image low = vertical_pass(image, source, rows);
    return horizontal_pass(low, {0, 0, low.height, low.width}, columns);
  }
  const Image narrow = horizontal_pass(image, source, columns);
  return vertical_pass(narrow, {0, 0, narrow.height, narrow.width}, rows);
}

// Pillow accumulates the step instead of multiplying, and the sum's rounding matters at the borders of cells.
std::vector<int64_t> nearest_positions(int64_t in, int64_t out, int64_t begin, int64_t length) {
  const double step = static_cast<double>(in) / static_cast<double>(out);
  double at = step * 0.5;
  for (int64_t i = 0; i < begin; ++i) at += step;
  std::vector<int64_t> positions(static_cast<size_t>(length));
  for (int64_t& position : positions) {
    position = std::min(static_cast<int64_t>(at), in - 1);
    at += step;
  }
  return positions;
}

Image nearest(const Image& image, Size size, const Window& window) {
  const auto rows = nearest_positions(image.height, size.height, window.top, window.height);
  const auto columns = nearest_positions(image.width, size.width, window.left, window.width);
  Image result = Image::blank(window.height, window.width, image.channels);
  uint8_t* target = result.pixels.data();
  for (int64_t y : rows)
    for (int64_t x : columns)
      for (int64_t c = 0; c < image.channels; ++c) *target++ = image.row(y)[x * image.channels + c];
  return result;
}

Image crop(const Image& image, const Window& window) {
  Image result = Image::blank(window.height, window.width, image.channels);
  const auto row_bytes = static_cast<size_t>(window.width * image.channels);
  for (int64_t y = 0; y < window.height; ++y)
    std::memcpy(result.row(y), image.row(window.top + y) + window.left * image.channels, row_bytes);
  return result;
}

}  // namespace

int64_t round_half_even(double x) {
  return static_cast<int64_t>(std::nearbyint(x));
}

void check_resize(const Image& image, Size size, const Window& window) {
  constexpr int64_t kMaxSide = int64_t{1} << 28;
  VT_REQUIRE(image.height > 0 && image.width > 0, ErrorKind::kData,
             "an image of %lld x %lld pixels has no content", static_cast<long long>(image.width),
             static_cast<long long>(image.height));
  VT_REQUIRE(size.height > 0 && size.width > 0 && size.height <= kMaxSide && size.width <= kMaxSide,
             ErrorKind::kData,
             "an image of %lld x %lld pixels would be resized to %lld x %lld: sides must be in 1..%lld",
             static_cast<long long>(image.width), static_cast<long long>(image.height),
             static_cast<long long>(size.width), static_cast<long long>(size.height),
             static_cast<long long>(kMaxSide));
  VT_CHECK(image.channels == 1 || image.channels == 3 || image.channels == 4, "%lld channels",
           static_cast<long long>(image.channels));
  VT_CHECK(static_cast<int64_t>(image.pixels.size()) == image.height * image.width * image.channels,
           "%zu bytes of pixels", image.pixels.size());
  VT_CHECK(window.top >= 0 && window.left >= 0 && window.height > 0 && window.width > 0 &&
               window.top + window.height <= size.height && window.left + window.width <= size.width,
           "the window lies outside of the image");
}

Image resize(const Image& image, Size size, Interpolation interpolation) {
  return resize(image, size, {0, 0, size.height, size.width}, interpolation);
}

Image resize(const Image& image, Size size, const Window& window, Interpolation interpolation) {
  check_resize(image, size, window);
  if (size == Size{image.height, image.width}) return crop(image, window);
  if (interpolation == Interpolation::kNearest) return nearest(image, size, window);
  return resample(image, size, window, kernel_of(interpolation));
}

}  // namespace vitrail
