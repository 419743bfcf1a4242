#include "backend/ref/rounded_gemm.h"

#include <cmath>

#include "tensor/dtype.h"
#include "tensor/narrow.h"

namespace vitrail::ref {

namespace {
// The largest magnitude of a row. If the row has a value that is not finite, that value is returned.
float largest_of(const double* row, int64_t width) {
  float largest = 0;
  for (int64_t i = 0; i < width; ++i) {
    const float magnitude = std::fabs(static_cast<float>(row[i]));
    if (!(magnitude <= largest)) largest = magnitude;
    if (!std::isfinite(magnitude)) break;
  }
  return largest;
}

// Holds what a row is divided by, and the inverse, which it is multiplied by.
struct Scale {
  float scale, inverse;
};
Scale int8_scale(float largest) {
  constexpr float kMost = 127;
  return {largest / kMost, kMost / largest};
}
// The least power of two that brings the largest magnitude to that of a code or less.
Scale e4m3_scale(float largest) {
  int exponent = 0;
  if (std::frexp(largest / kLargestE4M3, &exponent) == 0.5f) --exponent;
  return {std::ldexp(1.0f, exponent), std::ldexp(1.0f, -exponent)};
}
}  // namespace

template <typename ScaleOf, typename Round>
void RoundedRows::scale_rows(const double* rows, int64_t count, int64_t width, const ScaleOf& scale_of,
                             const Round& round) {
  kept_scales_.assign(static_cast<size_t>(count), 0.0f);
  for (int64_t r = 0; r < count; ++r) {
    const float largest = largest_of(rows + r * width, width);
    if (largest < 0x1p-116f) continue;  // its inverse would not be a float
    const Scale by = scale_of(largest);
    kept_scales_[static_cast<size_t>(r)] = std::isfinite(largest) ? by.scale : NAN;
    if (!std::isfinite(largest)) continue;
    for (int64_t i = r * width; i < (r + 1) * width; ++i)
      rounded_[static_cast<size_t>(i)] = round(static_cast<float>(rows[i]) * by.inverse);
  }
  scales = kept_scales_.data();
}

RoundedRows::RoundedRows(const double* rows, int64_t count, int64_t width, Arithmetic arithmetic)
    : values(rows) {
  if (arithmetic == Arithmetic::kExact) return;
  rounded_.resize(static_cast<size_t>(count * width));
  values = rounded_.data();
  const auto each = [&](const auto& round) {
    for (size_t i = 0; i < rounded_.size(); ++i) rounded_[i] = round(static_cast<float>(rows[i]));
  };
  if (arithmetic == Arithmetic::kBF16)
    each([](float x) { return bf16_to_f32(f32_to_bf16(x)); });
  else if (arithmetic == Arithmetic::kTF32)
    each(round_to_tf32);
  else if (arithmetic == Arithmetic::kInt8)
    scale_rows(rows, count, width, int8_scale, [](float x) { return std::nearbyint(x); });
  else
    scale_rows(rows, count, width, e4m3_scale, [](float x) { return e4m3_to_f32(f32_to_e4m3(x)); });
}

void multiply_rows(ThreadPool& pool, Arithmetic arithmetic, const MatmulExtents& e, const double* x,
                   const double* w, double* out) {
  const RoundedRows a(x, e.m, e.k, arithmetic), b(w, e.n, e.k, arithmetic);
  pool.run(e.m, [&](int64_t m, int) {
    for (int64_t n = 0; n < e.n; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < e.k; ++k) sum += a.values[m * e.k + k] * b.values[n * e.k + k];
      out[m * e.n + n] = a.scales ? static_cast<float>(sum) * a.scales[m] * b.scales[n] : sum;
    }
  });
}

}  // namespace vitrail::ref
