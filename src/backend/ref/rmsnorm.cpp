// Reference loops of RMSNorm and its gradient.
#include "ops/rmsnorm.h"

#include <algorithm>
#include <cmath>

#include "backend/ref/loops.h"

namespace vitrail::ref {

namespace {

double inverse_root(const double* x, int64_t width, double eps) {
  double squares = 0;
  for (int64_t i = 0; i < width; ++i) squares += x[i] * x[i];
  return 1.0 / std::sqrt(squares / static_cast<double>(width) + eps);
}

void rmsnorm(const KernelArgs& args) {
  const double eps = static_cast<const RmsnormOp&>(args.op).eps(), *weight = args.ins[1].as<double>();
  const int64_t width = args.ins[1].desc().elems(), rows = args.ins[0].desc().elems() / width;
  for (int64_t row = 0; row < rows; ++row) {
    const double* x = args.ins[0].as<double>() + row * width;
    double* y = args.outs[0].as<double>() + row * width;
    const double inverse = inverse_root(x, width, eps);
    for (int64_t i = 0; i < width; ++i) y[i] = x[i] * inverse * weight[i];
  }
}

void rmsnorm_grad(const KernelArgs& args) {
  const auto& op = static_cast<const RmsnormGradOp&>(args.op);
  const double* weight = args.ins[1].as<double>();
  const int64_t width = args.ins[1].desc().elems(), rows = args.ins[0].desc().elems() / width;
  double* dweight = op.parameters() ? args.outs[1].as<double>() : nullptr;
  if (dweight) std::fill_n(dweight, width, 0.0);
  for (int64_t row = 0; row < rows; ++row) {
    const double *x = args.ins[0].as<double>() + row * width, *dy = args.ins[2].as<double>() + row * width;
    double* dx = args.outs[0].as<double>() + row * width;
    const double inverse = inverse_root(x, width, op.eps());
    double mean = 0;  // of the gradient of the normalised row times the row
    for (int64_t i = 0; i < width; ++i) mean += dy[i] * weight[i] * x[i] * inverse;
    mean /= static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i) {
      dx[i] = inverse * (dy[i] * weight[i] - x[i] * inverse * mean);
      if (dweight) dweight[i] += dy[i] * x[i] * inverse;
    }
  }
}

}  // namespace

std::vector<OpKernels> rmsnorm_kernels() {
  return {
      in_double<RmsnormOp, rmsnorm>(),
      in_double<RmsnormGradOp, rmsnorm_grad>(),
  };
}

}  // namespace vitrail::ref
