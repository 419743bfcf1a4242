// Resizes learned positions to another grid, by the interpolation of each library.
#include "io/weight_resize.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace vitrail {

namespace {

// One output position of one axis: the input positions it mixes, from `first` on.
struct Taps {
  int64_t first = 0;
  std::vector<double> weights;
};
using Axis = std::vector<Taps>;

double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

double corner_aligned(int64_t i, int64_t in, int64_t out) {
  return out > 1 ? static_cast<double>(i) * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
}

double half_pixel(int64_t i, int64_t in, int64_t out) {
  return (static_cast<double>(i) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5;
}

// Returns the weights at integer positions around x; those outside the axis go to its edge.
Taps clamped(int64_t lowest, std::span<const double> weights, int64_t in) {
  const int64_t first = std::clamp<int64_t>(lowest, 0, in - 1);
  const int64_t last = std::clamp<int64_t>(lowest + static_cast<int64_t>(weights.size()) - 1, 0, in - 1);
  Taps taps{first, std::vector<double>(static_cast<size_t>(last - first + 1), 0.0)};
  for (size_t k = 0; k < weights.size(); ++k) {
    const int64_t at = std::clamp<int64_t>(lowest + static_cast<int64_t>(k), 0, in - 1);
    taps.weights[static_cast<size_t>(at - first)] += weights[k];
  }
  return taps;
}

Taps bicubic_at(double x, int64_t in) {
  const double floor = std::floor(x), t = x - floor, a = -0.75;
  const double weights[] = {cubic(1 + t, a), cubic(t, a), cubic(1 - t, a), cubic(2 - t, a)};
  return clamped(static_cast<int64_t>(floor) - 1, weights, in);
}

Taps bilinear_at(double x, int64_t in) {
  const double floor = std::floor(x), t = x - floor;
  const double weights[] = {1 - t, t};
  return clamped(static_cast<int64_t>(floor), weights, in);
}

// The kernel widens with the reduction; at the edges its weights are cut and made to sum to one again.
Taps antialiased_bicubic(int64_t i, int64_t in, int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out), stretch = std::max(scale, 1.0);
  const double center = scale * (static_cast<double>(i) + 0.5), support = 2 * stretch;
  const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
  const int64_t end = std::min<int64_t>(static_cast<int64_t>(center + support + 0.5), in);
  Taps taps{first, {}};
  double sum = 0;
  for (int64_t j = first; j < end; ++j) {
    taps.weights.push_back(cubic((static_cast<double>(j) + 0.5 - center) / stretch, -0.5));
    sum += taps.weights.back();
  }
  for (double& weight : taps.weights) weight /= sum;
  return taps;
}

Axis make_axis(PosResize rule, int64_t in, int64_t out) {
  Axis axis;
  for (int64_t i = 0; i < out; ++i) switch (rule) {
      case PosResize::kTimm:
        axis.push_back(antialiased_bicubic(i, in, out));
        break;
      case PosResize::kHf:
        axis.push_back(bicubic_at(half_pixel(i, in, out), in));
        break;
      case PosResize::kTorchvision:
        axis.push_back(bicubic_at(corner_aligned(i, in, out), in));
        break;
      case PosResize::kFlexivit:
        axis.push_back(bilinear_at(half_pixel(i, in, out), in));
        break;
      case PosResize::kJax:
        axis.push_back(bilinear_at(corner_aligned(i, in, out), in));
        break;
    }
  return axis;
}

// Adds weight * row to sum, over `sum.size()` values.
template <typename T>
void accumulate(std::span<double> sum, double weight, const T* row) {
  for (size_t d = 0; d < sum.size(); ++d) sum[d] += weight * static_cast<double>(row[d]);
}

}  // namespace

void resize_positions(PosResize rule, std::span<const float> source, PosGrid from, std::span<float> target,
                      PosGrid to, int64_t prefix, int64_t dim) {
  const auto size = [](int64_t v) { return static_cast<size_t>(v); };
  VT_CHECK(source.size() == size((prefix + from.cells()) * dim) &&
               target.size() == size((prefix + to.cells()) * dim),
           "position tables do not fit their grids");
  std::copy_n(source.begin(), prefix * dim, target.begin());
  const Axis rows = make_axis(rule, from.height, to.height), columns = make_axis(rule, from.width, to.width);
  const float* grid = source.data() + prefix * dim;
  float* out = target.data() + prefix * dim;

  std::vector<double> line(size(from.width * dim)), cell(size(dim));
  for (const Taps& row : rows) {
    std::fill(line.begin(), line.end(), 0.0);
    for (size_t k = 0; k < row.weights.size(); ++k)
      accumulate<float>(line, row.weights[k],
                        grid + (row.first + static_cast<int64_t>(k)) * from.width * dim);
    for (const Taps& column : columns) {
      std::fill(cell.begin(), cell.end(), 0.0);
      for (size_t k = 0; k < column.weights.size(); ++k)
        accumulate<double>(cell, column.weights[k],
                           line.data() + (column.first + static_cast<int64_t>(k)) * dim);
      for (double value : cell) *out++ = static_cast<float>(value);
    }
  }
}

std::vector<double> resize_matrix(PosResize rule, int64_t in, int64_t out) {
  std::vector<double> matrix(static_cast<size_t>(in * out), 0.0);
  auto row = matrix.begin();
  for (const Taps& taps : make_axis(rule, in, out)) {
    std::copy(taps.weights.begin(), taps.weights.end(), row + taps.first);
    row += in;
  }
  return matrix;
}

}  // namespace vitrail
