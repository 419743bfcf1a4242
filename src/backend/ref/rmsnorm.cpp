// Reference loops of RMSNorm and of its simple form, of both over queries and keys, and of their gradients.
#include "ops/rmsnorm.h"

#include <algorithm>
#include <cmath>

#include "backend/ref/loops.h"
#include "ops/qk_rmsnorm.h"

namespace vitrail::ref {

namespace {

// How one row is normalised: y = x * inverse * weight, where inverse is of the mean of (x - mean)^2 over
// `count`.
struct RmsRow {
  double mean = 0, inverse = 0, count = 0;
};

RmsRow measure_row(const double* x, int64_t width, double eps, bool simple) {
  RmsRow row{.count = static_cast<double>(simple ? width - 1 : width)};
  for (int64_t i = 0; simple && i < width; ++i) row.mean += x[i] / static_cast<double>(width);
  double squares = 0;
  for (int64_t i = 0; i < width; ++i) squares += (x[i] - row.mean) * (x[i] - row.mean);
  row.inverse = 1.0 / std::sqrt(squares / row.count + eps);
  return row;
}

template <typename NormOp>
void scale_row(const NormOp& op, const double* x, const double* weight, int64_t width, double* y) {
  const RmsRow row = measure_row(x, width, op.eps(), op.simple());
  for (int64_t i = 0; i < width; ++i) y[i] = x[i] * row.inverse * weight[i];
}

// Writes dx of one row, and adds its share of dweight where that is wanted.
template <typename GradOp>
void scale_row_grad(const GradOp& op, const double* x, const double* weight, const double* dy, int64_t width,
                    double* dx, double* dweight) {
  const RmsRow row = measure_row(x, width, op.eps(), op.simple());
  double sum = 0;  // of the gradient of the normalised row times the row
  for (int64_t i = 0; i < width; ++i) sum += dy[i] * weight[i] * x[i] * row.inverse;
  const double mean = sum / row.count;
  for (int64_t i = 0; i < width; ++i) {
    dx[i] = row.inverse * (dy[i] * weight[i] - (x[i] - row.mean) * row.inverse * mean);
    if (dweight) dweight[i] += dy[i] * x[i] * row.inverse;
  }
}

void rmsnorm(const KernelArgs& args) {
  const int64_t width = args.ins[1].desc().elems(), rows = args.ins[0].desc().elems() / width;
  for (int64_t row = 0; row < rows; ++row)
    scale_row(static_cast<const RmsnormOp&>(args.op), args.ins[0].as<double>() + row * width,
              args.ins[1].as<double>(), width, args.outs[0].as<double>() + row * width);
}

void rmsnorm_grad(const KernelArgs& args) {
  const int64_t width = args.ins[1].desc().elems(), rows = args.ins[0].desc().elems() / width;
  double* dweight = cleared_sums(args, 1);
  for (int64_t row = 0; row < rows; ++row)
    scale_row_grad(static_cast<const RmsnormGradOp&>(args.op), args.ins[0].as<double>() + row * width,
                   args.ins[1].as<double>(), args.ins[2].as<double>() + row * width, width,
                   args.outs[0].as<double>() + row * width, dweight);
}

void qk_rmsnorm(const KernelArgs& args) {
  const int64_t heads = args.ins[0].shape().local('H'), width = args.ins[0].shape().local('E');
  const int64_t rows = args.ins[0].desc().elems() / width;  // over B N T H
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t part = row / heads % 3;
    const double* x = args.ins[0].as<double>() + row * width;
    double* y = args.outs[0].as<double>() + row * width;
    if (part == 2)
      std::copy_n(x, width, y);
    else
      scale_row(static_cast<const QkRmsnormOp&>(args.op), x, args.ins[1 + part].as<double>(), width, y);
  }
}

void qk_rmsnorm_grad(const KernelArgs& args) {
  const int64_t heads = args.ins[0].shape().local('H'), width = args.ins[0].shape().local('E');
  const int64_t rows = args.ins[0].desc().elems() / width;
  double* sums[] = {cleared_sums(args, 1), cleared_sums(args, 2)};
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t part = row / heads % 3;
    const double *x = args.ins[0].as<double>() + row * width, *dy = args.ins[3].as<double>() + row * width;
    double* dx = args.outs[0].as<double>() + row * width;
    if (part == 2)
      std::copy_n(dy, width, dx);
    else
      scale_row_grad(static_cast<const QkRmsnormGradOp&>(args.op), x, args.ins[1 + part].as<double>(), dy,
                     width, dx, sums[part]);
  }
}

}  // namespace

std::vector<OpKernels> rmsnorm_kernels() {
  return {
      in_double<RmsnormOp, rmsnorm>(),
      in_double<RmsnormGradOp, rmsnorm_grad>(),
      in_double<QkRmsnormOp, qk_rmsnorm>(),
      in_double<QkRmsnormGradOp, qk_rmsnorm_grad>(),
  };
}

}  // namespace vitrail::ref
