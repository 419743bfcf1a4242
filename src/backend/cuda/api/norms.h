// Norms and softmaxes over rows, as program and plugin agree on them.
#pragma once

#include "backend/cuda/api/session.h"

namespace vitrail::cuda {

// Which rows are normalised. Heads 0: all, by the first weight. Otherwise rows lie as [tokens][q k v][heads]:
// q is normalised by the first weight, k by the second, v copied.
struct NormRows {
  int64_t rows = 0;  // of one part
  int64_t width = 0;
  int64_t heads = 0;
  float eps = 0;

  int parts() const { return heads > 0 ? 3 : 1; }
};

struct NormCall {
  NormRows rows;
  Operand x, y;
  Operand weight[2] = {}, bias[2] = {};
};

// dx, to which `residual` is added where there is one, and sums over rows where they are wanted (null: not).
// The sums are made in `blocks` shares of the rows, each a row of as many floats as there are sums to make;
// q's come before k's.
struct NormGradCall {
  NormRows rows;
  Operand x, dy, dx, residual = {};
  Operand weight[2] = {}, dweight[2] = {}, dbias[2] = {};
  Operand column_sums = {};  // of dx with the residual; of a plain norm alone
  float* partials = nullptr;
  int64_t blocks = 1;
};

// x and y of the forward op; y, dy and dx of its gradient.
struct SoftmaxCall {
  Operand x = {}, y = {}, dy = {}, dx = {};
  int64_t rows = 0, width = 0;
};

// The norm by the root of the mean square, x and y; of the gradient dy, dx and, where wanted, dweight, with
// room for one float a row.
struct RmsCall {
  int64_t rows = 0, width = 0;
  float eps = 0;
  Operand x, weight, y = {}, dy = {}, dx = {}, dweight = {};
  float* inverse = nullptr;
};

struct NormsApi {
  void (*norm)(Session&, const NormCall&);
  void (*norm_grad)(Session&, const NormGradCall&);
  void (*rms)(Session&, const RmsCall&);
  void (*rms_grad)(Session&, const RmsCall&);
  void (*softmax)(Session&, const SoftmaxCall&);
  void (*softmax_grad)(Session&, const SoftmaxCall&);
};

}  // namespace vitrail::cuda
