// Reference loops of the activations other than the gelu: each activation and its derivative.
#include "ops/activate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "backend/ref/loops.h"

namespace vitrail::ref {

double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

namespace {

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}
// x sigmoid(b x)
double swish(double x, double b) {
  return x * sigmoid(b * x);
}
double swish_slope(double x, double b) {
  const double s = sigmoid(b * x);
  return s + b * x * s * (1.0 - s);
}
double mish_slope(double x) {
  const double t = std::tanh(softplus(x));
  return t + x * (1.0 - t * t) * sigmoid(x);
}

double hard_mish_slope(double x) {
  return x < -2 ? 0 : x <= 0 ? x + 1 : 1;
}
// The share of a normal distribution below x, and its density.
double below(double x) {
  return 0.5 * std::erfc(-x * std::numbers::sqrt2 / 2);
}
double density(double x) {
  return std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2;
}
// The root of the softplus has half the slope that its logarithm has, times itself.
double sqrt_softplus_slope(double x) {
  const double root = std::sqrt(softplus(x));
  return root > 0 ? 0.5 * sigmoid(x) / root : 0;
}

constexpr double kQuick = 1.702, kLeak = 0.01;
constexpr double kSeluScale = 1.0507009873554804934, kSeluAlpha = 1.6732632423543772848;
constexpr double kLaplaceMean = 0.707107, kLaplaceDeviation = 0.282095;  // as transformers writes them

double laplace(double x) {
  return (x - kLaplaceMean) / kLaplaceDeviation;
}

double value(ActKind act, double x) {
  switch (act) {
    case ActKind::kGelu:
      break;
    case ActKind::kRelu:
      return std::max(x, 0.0);
    case ActKind::kRelu6:
      return std::clamp(x, 0.0, 6.0);
    case ActKind::kLeakyRelu:
      return x > 0 ? x : kLeak * x;
    case ActKind::kElu:
      return x > 0 ? x : std::expm1(x);
    case ActKind::kSilu:
      return swish(x, 1);
    case ActKind::kMish:
      return x * std::tanh(softplus(x));
    case ActKind::kQuickGelu:
      return swish(x, kQuick);
    case ActKind::kHardSwish:
      return x * std::clamp(x + 3, 0.0, 6.0) / 6;
    case ActKind::kTanh:
      return std::tanh(x);
    case ActKind::kSigmoid:
      return sigmoid(x);
    case ActKind::kSelu:
      return kSeluScale * (x > 0 ? x : kSeluAlpha * std::expm1(x));
    case ActKind::kHardSigmoid:
      return std::clamp(x + 3, 0.0, 6.0) / 6;
    case ActKind::kHardMish:
      return 0.5 * x * std::clamp(x + 2, 0.0, 2.0);
    case ActKind::kIdentity:
      return x;
    case ActKind::kLaplace:
      return below(laplace(x));
    case ActKind::kRelu2:
      return x > 0 ? x * x : 0;
    case ActKind::kSqrtSoftplus:
      return std::sqrt(softplus(x));
    case ActKind::kGelu10:
      return std::min(x * below(x), 10.0);
  }
  throw Error(ErrorKind::kInternal, "no such activation");
}

double slope(ActKind act, double x) {
  switch (act) {
    case ActKind::kGelu:
      break;
    case ActKind::kRelu:
      return x > 0 ? 1 : 0;
    case ActKind::kRelu6:
      return x > 0 && x < 6 ? 1 : 0;
    case ActKind::kLeakyRelu:
      return x > 0 ? 1 : kLeak;
    case ActKind::kElu:
      return x > 0 ? 1 : std::exp(x);
    case ActKind::kSilu:
      return swish_slope(x, 1);
    case ActKind::kMish:
      return mish_slope(x);
    case ActKind::kQuickGelu:
      return swish_slope(x, kQuick);
    case ActKind::kHardSwish:
      return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
    case ActKind::kTanh:
      return 1.0 - std::tanh(x) * std::tanh(x);
    case ActKind::kSigmoid:
      return sigmoid(x) * (1.0 - sigmoid(x));
    case ActKind::kSelu:
      return kSeluScale * (x > 0 ? 1 : kSeluAlpha * std::exp(x));
    case ActKind::kHardSigmoid:
      return x > -3 && x < 3 ? 1.0 / 6 : 0;
    case ActKind::kHardMish:
      return hard_mish_slope(x);
    case ActKind::kIdentity:
      return 1;
    case ActKind::kLaplace:
      return density(laplace(x)) / kLaplaceDeviation;
    case ActKind::kRelu2:
      return x > 0 ? 2 * x : 0;
    case ActKind::kSqrtSoftplus:
      return sqrt_softplus_slope(x);
    case ActKind::kGelu10:
      return x * below(x) < 10 ? below(x) + x * density(x) : 0;
  }
  throw Error(ErrorKind::kInternal, "no such activation");
}

void activate(const KernelArgs& args) {
  const ActKind act = static_cast<const ActivateOp&>(args.op).act();
  const double* x = args.ins[0].as<double>();
  double* y = args.outs[0].as<double>();
  for (int64_t i = 0, count = args.outs[0].desc().elems(); i < count; ++i) y[i] = value(act, x[i]);
}

void activate_grad(const KernelArgs& args) {
  const ActKind act = static_cast<const ActivateGradOp&>(args.op).act();
  const double *x = args.ins[0].as<double>(), *dy = args.ins[1].as<double>();
  double* dx = args.outs[0].as<double>();
  for (int64_t i = 0, count = args.outs[0].desc().elems(); i < count; ++i) dx[i] = slope(act, x[i]) * dy[i];
}

}  // namespace

std::vector<OpKernels> activate_kernels() {
  return {
      in_double<ActivateOp, activate>(),
      in_double<ActivateGradOp, activate_grad>(),
  };
}

}  // namespace vitrail::ref
