// Gradients of the row-wise and elementwise kernels.
#include "backend/cpu/isa/kernels.h"
#include "backend/cpu/isa/math_grad.h"
#include "backend/cpu/isa/rows.h"

namespace vitrail::VT_ISA {
namespace {

constexpr int kTogether = 4;  // vectors of columns summed in one pass over the rows

// out[i] = sum over rows of f(row, i), for kWide vectors of columns; two chains each.
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

// What the gradient of one row needs: x and dy at a column, as (x - mean) / deviation and dy * gamma.
struct NormRow {
  const float *x, *dy, *gamma;
  Vec mean, rstd;

  Vec normal(int64_t i, int64_t count) const { return (load_up_to(x + i, count) - mean) * rstd; }
  Vec weighted(int64_t i, int64_t count) const {
    return load_up_to(dy + i, count) * load_up_to(gamma + i, count);
  }
};

// Sums over the row of the weighted gradient, and of it times the normalised value.
inline void row_sums(const NormRow& row, int64_t width, float& plain, float& by_normal) {
  Vec sum{}, product{};
  for (int64_t i = 0; i < width; i += kLanes) {
    const int64_t count = width - i;
    const Vec g = row.weighted(i, count);  // 0 past the end
    sum = sum + g;
    product = fmadd(g, row.normal(i, count), product);
  }
  plain = sum_lanes(sum), by_normal = sum_lanes(product);
}

inline void add_parameters(const NormRow& row, int64_t width, float* dgamma, float* dbeta) {
  for (int64_t i = 0; i < width; i += kLanes) {
    const int64_t count = width - i;
    const Vec g = load_up_to(row.dy + i, count);
    store_up_to(dgamma + i, fmadd(g, row.normal(i, count), load_up_to(dgamma + i, count)), count);
    store_up_to(dbeta + i, load_up_to(dbeta + i, count) + g, count);
  }
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

// dx = (g - mean(g) - n mean(g n)) / deviation with g = dy gamma and n the normalised row.
void layernorm_grad_rows(const NormGradRows& a) {
  const float width = static_cast<float>(a.width);
  for (int64_t r = 0; r < a.rows; ++r) {
    const float* x = a.x + r * a.stride;
    const Vec mean = set1(sum_row(x, a.width, [](Vec v) { return v; }) / width);
    const float var = sum_row(x, a.width, [&](Vec v) { return (v - mean) * (v - mean); }) / width;
    const NormRow row{x, a.dy + r * a.stride, a.gamma, mean, set1(1.0f / __builtin_sqrtf(var + a.eps))};
    float plain, by_normal;
    row_sums(row, a.width, plain, by_normal);
    if (a.dgamma) add_parameters(row, a.width, a.dgamma, a.dbeta);
    const Vec shift = set1(plain / width), tilt = set1(by_normal / width);
    const auto dx = [&](int64_t i, int64_t count) {
      return (row.weighted(i, count) - shift - row.normal(i, count) * tilt) * row.rstd;
    };
    const float* residual = a.residual ? a.residual + r * a.stride : nullptr;
    if (residual)
      map_row(x, a.width, a.dx + r * a.stride,
              [&](Vec, int64_t i, int64_t count) { return load_up_to(residual + i, count) + dx(i, count); });
    else
      map_row(x, a.width, a.dx + r * a.stride, [&](Vec, int64_t i, int64_t count) { return dx(i, count); });
  }
}

void activate_grad(Activation act, const float* x, const float* dy, int64_t count, float* dx) {
  with_activation(act, [&]<Activation kAct>() {
    map_row(x, count, dx,
            [&](Vec v, int64_t i, int64_t n) { return load_up_to(dy + i, n) * slope<kAct>(v); });
  });
}

void tanh_grad(const float* y, const float* dy, int64_t count, float* dx) {
  map_row(y, count, dx,
          [&](Vec v, int64_t i, int64_t n) { return load_up_to(dy + i, n) * (set1(1.0f) - v * v); });
}

}  // namespace vitrail::VT_ISA
