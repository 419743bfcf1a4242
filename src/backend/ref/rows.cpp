// Reference loops of the ops that work on rows or single elements.
#include <algorithm>
#include <cmath>
#include <optional>

#include "backend/ref/drop_mask.h"
#include "backend/ref/loops.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/qk_norm.h"
#include "ops/residual_rows.h"
#include "ops/scale.h"
#include "ops/softmax.h"

namespace vitrail::ref {

namespace {

// y = (x - mean) / sqrt(variance + eps) * weight + bias over one row; y may be x.
void normalise(const double* x, const double* weight, const double* bias, double eps, int64_t width,
               double* y) {
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < width; ++i) mean += x[i];
  mean /= static_cast<double>(width);
  for (int64_t i = 0; i < width; ++i) variance += (x[i] - mean) * (x[i] - mean);
  const double inverse = 1.0 / std::sqrt(variance / static_cast<double>(width) + eps);
  for (int64_t i = 0; i < width; ++i) y[i] = (x[i] - mean) * inverse * weight[i] + bias[i];
}

// y[i] = f(x[i])
template <typename F>
void map_one(const KernelArgs& args, F&& f) {
  const double* x = args.ins[0].as<double>();
  double* y = args.outs[0].as<double>();
  for (int64_t i = 0, count = args.outs[0].desc().elems(); i < count; ++i) y[i] = f(x[i]);
}

// y[i] = f(a[i], b[i]); b repeats where it is shorter than a.
template <typename F>
void map_two(const KernelArgs& args, F&& f) {
  const double *a = args.ins[0].as<double>(), *b = args.ins[1].as<double>();
  double* y = args.outs[0].as<double>();
  const int64_t period = args.ins[1].desc().elems();
  for (int64_t i = 0, count = args.outs[0].desc().elems(); i < count; ++i) y[i] = f(a[i], b[i % period]);
}

double gelu_erf(double x) {
  return 0.5 * x * (1.0 + std::erf(x * M_SQRT1_2));
}
double gelu_tanh(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

void layernorm(const KernelArgs& args) {
  const double eps = static_cast<const LayernormOp&>(args.op).eps();
  const int64_t width = args.ins[1].desc().elems(), rows = args.ins[0].desc().elems() / width;
  for (int64_t row = 0; row < rows; ++row)
    normalise(args.ins[0].as<double>() + row * width, args.ins[1].as<double>(), args.ins[2].as<double>(), eps,
              width, args.outs[0].as<double>() + row * width);
}

void residual_rows(const KernelArgs& args) {
  const auto& op = static_cast<const ResidualRowsOp&>(args.op);
  const int64_t width = args.ins[0].shape().local('D'), count = args.ins[0].desc().elems();
  const auto input = [&](size_t i, int64_t at) { return args.ins[i].as<double>()[at]; };
  std::optional<DropMask> elements, images;
  if (op.form().elements) elements.emplace(*op.form().elements, args.ins[0].shape(), args.ins.back());
  if (op.form().images) images.emplace(*op.form().images, args.ins[0].shape(), args.ins.back());
  double* sum = args.outs[0].as<double>();
  for (int64_t i = 0; i < count; ++i) {
    double x = input(0, i);
    if (op.form().bias) x += input(op.bias_at(), i % width);
    if (elements) x = (*elements)(i, x);
    if (op.form().scale) x *= input(op.scale_at(), i % width);
    if (images) x = (*images)(i, x);
    sum[i] = x + input(op.residual_at(), i);
  }
  for (int64_t at = 0; op.form().norm && at < count; at += width)
    normalise(sum + at, args.ins[op.norm_at()].as<double>(), args.ins[op.norm_at() + 1].as<double>(),
              op.form().eps, width, args.outs[1].as<double>() + at);
}

void qk_norm(const KernelArgs& args) {
  const double eps = static_cast<const QkNormOp&>(args.op).eps();
  const Shape& shape = args.ins[0].shape();
  const int64_t heads = shape.local('H'), width = shape.local('E');
  const int64_t rows = args.ins[0].desc().elems() / width;  // over B N T H
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t part = row / heads % 3;
    const double* x = args.ins[0].as<double>() + row * width;
    double* y = args.outs[0].as<double>() + row * width;
    if (part == 2)
      std::copy_n(x, width, y);
    else
      normalise(x, args.ins[1 + 2 * part].as<double>(), args.ins[2 + 2 * part].as<double>(), eps, width, y);
  }
}

void softmax(const KernelArgs& args) {
  const int64_t width = args.ins[0].shape().local('K'), rows = args.ins[0].desc().elems() / width;
  for (int64_t row = 0; row < rows; ++row) {
    const double* x = args.ins[0].as<double>() + row * width;
    double* y = args.outs[0].as<double>() + row * width;
    double top = -INFINITY, total = 0;
    for (int64_t i = 0; i < width; ++i) top = std::max(top, x[i]);
    for (int64_t i = 0; i < width; ++i) total += std::exp(x[i] - top);
    for (int64_t i = 0; i < width; ++i) y[i] = std::exp(x[i] - top) / total;
  }
}

void tanh(const KernelArgs& args) {
  map_one(args, [](double x) { return std::tanh(x); });
}
void bias(const KernelArgs& args) {
  map_two(args, [](double x, double b) { return x + b; });
}
void scale(const KernelArgs& args) {
  map_two(args, [](double x, double s) { return x * s; });
}
void add(const KernelArgs& args) {
  map_two(args, [](double a, double b) { return a + b; });
}
void average(const KernelArgs& args) {
  map_two(args, [](double a, double b) { return 0.5 * (a + b); });
}

}  // namespace

void gelu(const KernelArgs& args) {
  const bool tanh_form = static_cast<const GeluOp&>(args.op).tanh_form();
  map_one(args, [&](double x) { return tanh_form ? gelu_tanh(x) : gelu_erf(x); });
}

std::vector<OpKernels> rows_kernels() {
  return {
      in_double<LayernormOp, layernorm>(),
      in_double<ResidualRowsOp, residual_rows>(),
      in_double<QkNormOp, qk_norm>(),
      in_double<SoftmaxOp, softmax>(),
      in_double<GeluOp, gelu>(),
      in_double<TanhOp, tanh>(),
      in_double<BiasOp, bias>(),
      in_double<ScaleOp, scale>(),
      in_double<AddOp, add>(),
      in_double<AverageOp, average>(),
  };
}

}  // namespace vitrail::ref
