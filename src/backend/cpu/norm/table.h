// The table of the vector functions of layernorm and softmax at one instruction set, and their arguments.
// isa/norm.cpp has the bodies and fills the table.
#pragma once

#include <cstdint>

namespace vitrail::cpu {

// y = (x - mean) / sqrt(var + eps) * gamma + beta over rows of `width`; y may be x.
struct NormRows {
  const float* x = nullptr;
  int64_t x_stride = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  int64_t rows = 0, width = 0;
  const float *gamma = nullptr, *beta = nullptr;
  float eps = 0;
};

// The gradient of layernorm: dx of every row is written; dgamma and dbeta [width] are added to, null: not
// wanted.
struct NormGradRows {
  const float *x = nullptr, *dy = nullptr;
  float* dx = nullptr;
  int64_t stride = 0;  // elements between rows of all three
  int64_t rows = 0, width = 0;
  const float* gamma = nullptr;
  float eps = 0;
  float *dgamma = nullptr, *dbeta = nullptr;
  const float* residual = nullptr;  // added to dx, which may lie there too
};

struct NormTable {
  void (*layernorm_rows)(const NormRows&);
  void (*softmax_rows)(const float* x, int64_t rows, int64_t width, float* y);  // contiguous; y may be x
  void (*layernorm_grad_rows)(const NormGradRows&);
};

}  // namespace vitrail::cpu
