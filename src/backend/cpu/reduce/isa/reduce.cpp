// Sums and means over rows.
#include "backend/cpu/isa/kernels.h"
#include "backend/cpu/isa/vec.h"

namespace vitrail::cpu::VT_ISA {
namespace {

constexpr int kTogether = 4;  // vectors of columns summed in one pass over the rows

// out[i] = sum over rows of f(row, i), for kWide vectors of columns, each summed in two chains.
template <int kWide, typename F>
inline void sum_columns(int64_t rows, int64_t width, int64_t i, float* out, const F& f) {
  Vec even[kWide] = {}, odd[kWide] = {};
  int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
#pragma GCC unroll 4
    for (int j = 0; j < kWide; ++j) {
      const int64_t column = i + j * kLanes, count = kWide > 1 ? kLanes : width - column;
      even[j] = even[j] + f(r, column, count);
      odd[j] = odd[j] + f(r + 1, column, count);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < kWide; ++j) {
    const int64_t column = i + j * kLanes, count = kWide > 1 ? kLanes : width - column;
    if (r < rows) even[j] = even[j] + f(r, column, count);
    store_up_to(out + column, even[j] + odd[j], count);
  }
}

template <typename F>
inline void sum_all_columns(int64_t rows, int64_t width, float* out, const F& f) {
  int64_t i = 0;
  for (; i + kTogether * kLanes <= width; i += kTogether * kLanes)
    sum_columns<kTogether>(rows, width, i, out, f);
  for (; i < width; i += kLanes) sum_columns<1>(rows, width, i, out, f);
}

}  // namespace

void sum_rows(const float* x, const float* y, int64_t stride, int64_t rows, int64_t width, float* out) {
  if (!y)
    return sum_all_columns(rows, width, out, [&](int64_t r, int64_t i, int64_t count) {
      return load_up_to(x + r * stride + i, count);
    });
  sum_all_columns(rows, width, out, [&](int64_t r, int64_t i, int64_t count) {
    return load_up_to(x + r * stride + i, count) * load_up_to(y + r * stride + i, count);
  });
}

void mean_rows(const float* x, int64_t x_stride, int64_t rows, int64_t width, float* y) {
  const Vec inverse = set1(1.0f / static_cast<float>(rows));
  for (int64_t i = 0; i < width; i += kLanes) {
    const int64_t count = min64(kLanes, width - i);
    Vec even{}, odd{};
    for (int64_t r = 0; r < rows; ++r) {
      const Vec v = load_up_to(x + r * x_stride + i, count);
      if (r % 2)
        odd = odd + v;
      else
        even = even + v;
    }
    store_up_to(y + i, (even + odd) * inverse, count);
  }
}

constinit const ReduceTable kReduce = {
    .mean_rows = mean_rows,
    .sum_rows = sum_rows,
};

}  // namespace vitrail::cpu::VT_ISA
