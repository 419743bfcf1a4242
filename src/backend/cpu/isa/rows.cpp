// Row-wise and elementwise kernels.
#include "backend/cpu/isa/rows.h"

#include "backend/cpu/isa/kernels.h"

namespace vitrail::VT_ISA {

void layernorm_rows(const NormRows& a) {
  for (int64_t r = 0; r < a.rows; ++r) {
    const float* x = a.x + r * a.x_stride;
    const float width = static_cast<float>(a.width);
    const Vec mean = set1(sum_row(x, a.width, [](Vec v) { return v; }) / width);
    const float var = sum_row(x, a.width, [&](Vec v) { return (v - mean) * (v - mean); }) / width;
    const Vec rstd = set1(1.0f / __builtin_sqrtf(var + a.eps));
    map_row(x, a.width, a.y + r * a.y_stride, [&](Vec v, int64_t i, int64_t count) {
      return fmadd((v - mean) * rstd, load_up_to(a.gamma + i, count), load_up_to(a.beta + i, count));
    });
  }
}

void softmax_rows(const float* x, int64_t rows, int64_t width, float* y) {
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    const float sum = exp_row(x, width, max_row(x, width), 1.0f, y);
    const Vec inverse = set1(1.0f / sum);
    map_row(y, width, y, [&](Vec v, int64_t, int64_t) { return v * inverse; });
  }
}

void activate(Activation act, const float* x, int64_t count, float* y) {
  with_activation(act, [&]<Activation kAct>() {
    map_row(x, count, y, [](Vec v, int64_t, int64_t) { return apply<kAct>(v); });
  });
}

void add(const float* a, const float* b, int64_t count, float* y) {
  map_row(a, count, y, [&](Vec v, int64_t i, int64_t n) { return v + load_up_to(b + i, n); });
}

void add_row(const float* x, const float* row, int64_t rows, int64_t width, float* y) {
  for (int64_t r = 0; r < rows; ++r) add(x + r * width, row, width, y + r * width);
}

void scale_row(const float* x, const float* row, int64_t rows, int64_t width, float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    map_row(x + r * width, width, y + r * width,
            [&](Vec v, int64_t i, int64_t n) { return v * load_up_to(row + i, n); });
  }
}

void mean_rows(const float* x, int64_t x_stride, int64_t rows, int64_t width, float* y) {
  const Vec inverse = set1(1.0f / static_cast<float>(rows));
  for (int64_t i = 0; i < width; i += kLanes) {
    const int64_t count = min64(kLanes, width - i);
    Vec even{}, odd{};
    for (int64_t r = 0; r < rows; ++r) {
      const Vec v = load_up_to(x + r * x_stride + i, count);
      r % 2 ? odd = odd + v : even = even + v;
    }
    store_up_to(y + i, (even + odd) * inverse, count);
  }
}

}  // namespace vitrail::VT_ISA
