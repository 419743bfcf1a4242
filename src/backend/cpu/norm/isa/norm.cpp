// Layernorm, softmax and the gradient of layernorm, row by row.
#include "backend/cpu/isa/kernels.h"
#include "backend/cpu/isa/rows.h"

namespace vitrail::cpu::VT_ISA {
namespace {

// Holds what the gradient needs of one row: x and dy at a column, as (x - mean) / deviation and dy * gamma.
struct NormRow {
  const float *x, *dy, *gamma;
  Vec mean, rstd;

  Vec normal(int64_t i, int64_t count) const { return (load_up_to(x + i, count) - mean) * rstd; }
  Vec weighted(int64_t i, int64_t count) const {
    return load_up_to(dy + i, count) * load_up_to(gamma + i, count);
  }
};

// The sum over the row of the weighted gradient, and that of its product with the normalised value.
inline void row_sums(const NormRow& row, int64_t width, float& plain, float& by_normal) {
  Vec sum{}, product{};
  for (int64_t i = 0; i < width; i += kLanes) {
    const int64_t count = width - i;
    const Vec g = row.weighted(i, count);  // 0 past the end
    sum = sum + g;
    product = fmadd(g, row.normal(i, count), product);
  }
  plain = sum_lanes(sum);
  by_normal = sum_lanes(product);
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

constinit const NormTable kNorm = {
    .layernorm_rows = layernorm_rows,
    .softmax_rows = softmax_rows,
    .layernorm_grad_rows = layernorm_grad_rows,
};

}  // namespace vitrail::cpu::VT_ISA
