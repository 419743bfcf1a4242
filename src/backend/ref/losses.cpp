// Reference loops of the losses, dropout and the ops that write persistent values.
#include <algorithm>
#include <cmath>

#include "backend/ref/drop_mask.h"
#include "backend/ref/loops.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/persistent.h"

namespace vitrail::ref {

namespace {

double log_sum_exp(const double* x, int64_t width) {
  const double top = *std::max_element(x, x + width);
  double total = 0;
  for (int64_t i = 0; i < width; ++i) total += std::exp(x[i] - top);
  return top + std::log(total);
}

// The derivative of softplus, without overflow.
double stable_sigmoid(double x) {
  return x >= 0 ? 1.0 / (1.0 + std::exp(-x)) : std::exp(x) / (1.0 + std::exp(x));
}

double row_loss(LossKind kind, const double* x, const double* t, int64_t width) {
  double loss = 0;
  if (kind == LossKind::kSoftmax || kind == LossKind::kDivergence) {
    const double norm = log_sum_exp(x, width);
    for (int64_t i = 0; i < width; ++i) loss += t[i] * (norm - x[i]);
    for (int64_t i = 0; kind == LossKind::kDivergence && i < width; ++i)
      if (t[i] > 0) loss += t[i] * std::log(t[i]);
    return loss;
  }
  for (int64_t i = 0; i < width; ++i) loss += softplus(x[i]) - t[i] * x[i];
  return kind == LossKind::kSigmoidMean ? loss / static_cast<double>(width) : loss;
}

void row_grad(LossKind kind, const double* x, const double* t, double dloss, int64_t width, double* dx) {
  if (kind == LossKind::kSoftmax || kind == LossKind::kDivergence) {
    const double norm = log_sum_exp(x, width);
    double mass = 0;
    for (int64_t i = 0; i < width; ++i) mass += t[i];
    for (int64_t i = 0; i < width; ++i) dx[i] = dloss * (mass * std::exp(x[i] - norm) - t[i]);
    return;
  }
  const double share = kind == LossKind::kSigmoidMean ? dloss / static_cast<double>(width) : dloss;
  for (int64_t i = 0; i < width; ++i) dx[i] = share * (stable_sigmoid(x[i]) - t[i]);
}

void cross_entropy(const KernelArgs& args) {
  const LossKind kind = static_cast<const CrossEntropyOp&>(args.op).loss();
  const int64_t width = args.ins[0].shape().local('K');
  for (int64_t b = 0; b < args.outs[0].desc().elems(); ++b)
    args.outs[0].as<double>()[b] =
        row_loss(kind, args.ins[0].as<double>() + b * width, args.ins[1].as<double>() + b * width, width);
}

void cross_entropy_grad(const KernelArgs& args) {
  const LossKind kind = static_cast<const CrossEntropyGradOp&>(args.op).loss();
  const int64_t width = args.ins[0].shape().local('K');
  for (int64_t b = 0; b < args.ins[2].desc().elems(); ++b)
    row_grad(kind, args.ins[0].as<double>() + b * width, args.ins[1].as<double>() + b * width,
             args.ins[2].as<double>()[b], width, args.outs[0].as<double>() + b * width);
}

void loss_sum(const KernelArgs& args) {
  const double *losses = args.ins[1].as<double>(), *weights = args.ins[2].as<double>();
  for (int64_t b = 0; b < args.ins[0].desc().elems(); ++b)
    if (weights[b] > 0) args.ins[0].as<double>()[b] += losses[b] * weights[b];
}

void dropout(const KernelArgs& args) {
  const DropMask drop(static_cast<const DropoutOp&>(args.op), args.ins[0].shape(), args.ins[1]);
  const double* x = args.ins[0].as<double>();
  double* y = args.outs[0].as<double>();
  for (int64_t i = 0, count = args.ins[0].desc().elems(); i < count; ++i) y[i] = drop(i, x[i]);
}

void multiply(const KernelArgs& args) {
  const double factor = static_cast<const MultiplyOp&>(args.op).factor();
  for (int64_t i = 0, count = args.outs[0].desc().elems(); i < count; ++i)
    args.outs[0].as<double>()[i] = args.ins[0].as<double>()[i] * factor;
}

void scale_by(const KernelArgs& args) {
  const double factor = args.ins[1].as<double>()[0];
  for (int64_t i = 0, count = args.outs[0].desc().elems(); i < count; ++i)
    args.outs[0].as<double>()[i] = args.ins[0].as<double>()[i] * factor;
}

void cast(const KernelArgs& args) {
  std::copy_n(args.ins[0].as<double>(), args.ins[0].desc().elems(), args.outs[0].as<double>());
}

void accumulate(const KernelArgs& args) {
  for (int64_t i = 0, count = args.ins[0].desc().elems(); i < count; ++i)
    args.ins[0].as<double>()[i] += args.ins[1].as<double>()[i];
}

}  // namespace

void copy_into(const KernelArgs& args) {
  std::copy_n(args.ins[1].as<double>(), args.ins[1].desc().elems(), args.ins[0].as<double>());
}

std::vector<OpKernels> losses_kernels() {
  return {
      in_double<CrossEntropyOp, cross_entropy>(),
      in_double<CrossEntropyGradOp, cross_entropy_grad>(),
      in_double<LossSumOp, loss_sum>(),
      in_double<DropoutOp, dropout>(),
      in_double<MultiplyOp, multiply>(),
      in_double<ScaleByOp, scale_by>(),
      in_double<CastOp, cast>(),
      in_double<AccumulateOp, accumulate>(),
      in_double<CopyIntoOp, copy_into>(),
  };
}

}  // namespace vitrail::ref
