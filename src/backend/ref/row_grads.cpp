// Reference loops of the gradients of row-wise and elementwise ops.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/ref/loops.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/gelu.h"
#include "ops/gelu_slope.h"
#include "ops/layernorm.h"
#include "ops/qk_norm.h"
#include "ops/scale.h"
#include "ops/softmax.h"

namespace vitrail::ref {

namespace {

// Computes dx of one normalised row, and adds the row's contribution to dweight and dbias where they are
// wanted.
void normalise_grad(const double* x, const double* weight, const double* dy, double eps, int64_t width,
                    double* dx, double* dweight, double* dbias) {
  const auto count = static_cast<double>(width);
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < width; ++i) mean += x[i] / count;
  for (int64_t i = 0; i < width; ++i) variance += (x[i] - mean) * (x[i] - mean) / count;
  const double inverse = 1.0 / std::sqrt(variance + eps);
  double mean_dn = 0, mean_dn_n = 0;  // of the gradient of the normalised row, and of it times the row
  for (int64_t i = 0; i < width; ++i) {
    const double n = (x[i] - mean) * inverse, dn = dy[i] * weight[i];
    mean_dn += dn / count;
    mean_dn_n += dn * n / count;
    if (dweight) {
      dweight[i] += dy[i] * n;
      dbias[i] += dy[i];
    }
  }
  for (int64_t i = 0; i < width; ++i)
    dx[i] = inverse * (dy[i] * weight[i] - mean_dn - (x[i] - mean) * inverse * mean_dn_n);
}

// Writes the sums over rows of the first output to output number `sums`.
void sum_rows_of_first(const KernelArgs& args, size_t sums) {
  double* target = cleared_sums(args, sums);
  const int64_t width = args.outs[sums].desc().elems(), count = args.outs[0].desc().elems();
  for (int64_t i = 0; i < count; ++i) target[i % width] += args.outs[0].as<double>()[i];
}

// dx[i] = f(saved[i], dy[i])
template <typename F>
void map_grad(const KernelArgs& args, F&& f) {
  const double *saved = args.ins[0].as<double>(), *dy = args.ins[1].as<double>();
  double* dx = args.outs[0].as<double>();
  for (int64_t i = 0, count = args.outs[0].desc().elems(); i < count; ++i) dx[i] = f(saved[i], dy[i]);
}

double gelu_erf_slope(double x) {
  return 0.5 * (1.0 + std::erf(x * M_SQRT1_2)) + x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * M_PI);
}

double gelu_tanh_slope(double x) {
  const double root = std::sqrt(2.0 / M_PI), t = std::tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * root * (1.0 + 3 * 0.044715 * x * x);
}

void layernorm_grad(const KernelArgs& args) {
  const auto& op = static_cast<const LayernormGradOp&>(args.op);
  const double eps = op.eps();
  const int64_t width = args.ins[1].desc().elems(), rows = args.ins[0].desc().elems() / width;
  const bool trained = op.parameters();
  double *dweight = trained ? cleared_sums(args, 1) : nullptr,
         *dbias = trained ? cleared_sums(args, 2) : nullptr;
  const double* residual = args.ins.size() > 3 ? args.ins[3].as<double>() : nullptr;
  std::vector<double> own(static_cast<size_t>(width));  // dx may lie where the residual does
  for (int64_t row = 0; row < rows; ++row) {
    normalise_grad(args.ins[0].as<double>() + row * width, args.ins[1].as<double>(),
                   args.ins[2].as<double>() + row * width, eps, width, own.data(), dweight, dbias);
    double* dx = args.outs[0].as<double>() + row * width;
    for (int64_t i = 0; i < width; ++i) dx[i] = own[i] + (residual ? residual[row * width + i] : 0);
  }
  if (op.row_sums()) sum_rows_of_first(args, op.sums_at());
  if (op.copy()) std::copy_n(args.outs[0].as<double>(), rows * width, args.outs[op.copy_at()].as<double>());
}

void qk_norm_grad(const KernelArgs& args) {
  const double eps = static_cast<const QkNormGradOp&>(args.op).eps();
  const Shape& shape = args.ins[0].shape();
  const int64_t heads = shape.local('H'), width = shape.local('E');
  const int64_t rows = args.ins[0].desc().elems() / width;  // over B N T H
  double* sums[] = {cleared_sums(args, 1), cleared_sums(args, 2), cleared_sums(args, 3),
                    cleared_sums(args, 4)};
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t part = row / heads % 3;
    const double *x = args.ins[0].as<double>() + row * width, *dy = args.ins[3].as<double>() + row * width;
    double* dx = args.outs[0].as<double>() + row * width;
    if (part == 2)
      std::copy_n(dy, width, dx);
    else
      normalise_grad(x, args.ins[1 + part].as<double>(), dy, eps, width, dx, sums[2 * part],
                     sums[2 * part + 1]);
  }
}

void softmax_grad(const KernelArgs& args) {
  const int64_t width = args.ins[0].shape().local('K'), rows = args.ins[0].desc().elems() / width;
  for (int64_t row = 0; row < rows; ++row) {
    const double *y = args.ins[0].as<double>() + row * width, *dy = args.ins[1].as<double>() + row * width;
    double* dx = args.outs[0].as<double>() + row * width;
    double mean = 0;
    for (int64_t i = 0; i < width; ++i) mean += y[i] * dy[i];
    for (int64_t i = 0; i < width; ++i) dx[i] = y[i] * (dy[i] - mean);
  }
}

void gelu_grad(const KernelArgs& args) {
  const bool tanh_form = static_cast<const GeluGradOp&>(args.op).tanh_form();
  map_grad(args,
           [&](double x, double dy) { return dy * (tanh_form ? gelu_tanh_slope(x) : gelu_erf_slope(x)); });
  if (args.outs.size() > 1) sum_rows_of_first(args, 1);
}

void gelu_slope(const KernelArgs& args) {
  const GeluOp plain(static_cast<const GeluSlopeOp&>(args.op).tanh_form());
  gelu({plain, args.ins, args.outs.first(1), args.scratch, args.context});
  const double* x = args.ins[0].as<double>();
  double* slope = args.outs[1].as<double>();
  for (int64_t i = 0, count = args.outs[1].desc().elems(); i < count; ++i)
    slope[i] = plain.tanh_form() ? gelu_tanh_slope(x[i]) : gelu_erf_slope(x[i]);
}

void gelu_slope_grad(const KernelArgs& args) {
  map_grad(args, [](double slope, double dy) { return slope * dy; });
  if (args.outs.size() > 1) sum_rows_of_first(args, 1);
}

void tanh_grad(const KernelArgs& args) {
  map_grad(args, [](double y, double dy) { return dy * (1.0 - y * y); });
}

void scale_dw(const KernelArgs& args) {
  const double *x = args.ins[0].as<double>(), *dy = args.ins[1].as<double>();
  double* sum = cleared_sums(args, 0);
  const int64_t width = args.outs[0].desc().elems();
  for (int64_t i = 0, count = args.ins[0].desc().elems(); i < count; ++i) sum[i % width] += x[i] * dy[i];
}

}  // namespace

double* cleared_sums(const KernelArgs& args, size_t out) {
  if (out >= args.outs.size()) return nullptr;
  std::fill_n(args.outs[out].as<double>(), args.outs[out].desc().elems(), 0.0);
  return args.outs[out].as<double>();
}

void sum_rows(const KernelArgs& args) {
  const double* x = args.ins[0].as<double>();
  double* sum = cleared_sums(args, 0);
  const int64_t width = args.outs[0].desc().elems();
  for (int64_t i = 0, count = args.ins[0].desc().elems(); i < count; ++i) sum[i % width] += x[i];
}

std::vector<OpKernels> row_grads_kernels() {
  return {
      in_double<LayernormGradOp, layernorm_grad>(),
      in_double<QkNormGradOp, qk_norm_grad>(),
      in_double<SoftmaxGradOp, softmax_grad>(),
      in_double<GeluGradOp, gelu_grad>(),
      in_double<GeluSlopeOp, gelu_slope>(),
      in_double<GeluSlopeGradOp, gelu_slope_grad>(),
      in_double<TanhGradOp, tanh_grad>(),
      in_double<SumRowsOp, sum_rows>(),
      in_double<ScaleDwOp, scale_dw>(),
  };
}

}  // namespace vitrail::ref
