// The arguments of norms and softmaxes over rows, as program and plugin agree on them.
#pragma once

#include "backend/cuda/api/session.h"

namespace vitrail::cuda {

// Says which rows are normalised. With heads 0 all rows are, by the first weight. Otherwise rows are stored
// as [tokens][q k v][heads]: q is normalised by the first weight, k by the second, v is copied.
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
  bool early = false;  // weight and bias may be read before the launch before this one is done
};

// dx, to which `residual` is added where there is one, and sums over rows where they are wanted (null: not).
// The rows are divided among `blocks` blocks, each of which writes one row of partial sums; q's sums come
// before k's.
struct NormGradCall {
  NormRows rows;
  Operand x, dy, dx, residual = {};
  Operand weight[2] = {}, dweight[2] = {}, dbias[2] = {};
  Operand column_sums = {};  // of dx with the residual; for a plain norm only
  Operand copy = {};         // dx once more, in another type; for a plain norm only
  float* partials = nullptr;
  int64_t blocks = 1;
};

// The forward op reads x and writes y; its gradient reads y and dy and writes dx.
struct SoftmaxCall {
  Operand x = {}, y = {}, dy = {}, dx = {};
  int64_t rows = 0, width = 0;
};

// RMSNorm reads x and writes y; its gradient reads dy and writes dx and, where wanted, dweight, for which
// `inverse` has one float per row.
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
