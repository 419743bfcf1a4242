// The activations other than the gelu, and their gradients: dx from x and dy.
#pragma once

#include "ops/act_kind.h"

namespace vitrail::cuda {

constexpr float kQuickGelu = 1.702f, kLeak = 0.01f;

__device__ inline float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}
__device__ inline float softplus(float x) {
  return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
}
// The derivative of x sigmoid(b x).
__device__ inline float swish_slope(float x, float b) {
  const float s = sigmoid(b * x);
  return s + b * x * s * (1.0f - s);
}
__device__ inline float mish_slope(float x) {
  const float t = tanhf(softplus(x));
  return t + x * (1.0f - t * t) * sigmoid(x);
}

struct Activate {
  ActKind act;

  __device__ float operator()(float x) const {
    switch (act) {
      default:
        break;  // the gelu is an op of its own, what else is missing runs on CPUs alone
      case ActKind::kRelu:
        return fmaxf(x, 0.0f);
      case ActKind::kRelu6:
        return fminf(fmaxf(x, 0.0f), 6.0f);
      case ActKind::kLeakyRelu:
        return x > 0 ? x : kLeak * x;
      case ActKind::kElu:
        return x > 0 ? x : expm1f(x);
      case ActKind::kSilu:
        return x * sigmoid(x);
      case ActKind::kMish:
        return x * tanhf(softplus(x));
      case ActKind::kQuickGelu:
        return x * sigmoid(kQuickGelu * x);
      case ActKind::kHardSwish:
        return x * fminf(fmaxf(x + 3.0f, 0.0f), 6.0f) / 6.0f;
      case ActKind::kTanh:
        return tanhf(x);
      case ActKind::kSigmoid:
        return sigmoid(x);
    }
    return x;
  }
};

struct ActivateGrad {
  ActKind act;

  __device__ float slope(float x) const {
    switch (act) {
      default:
        break;
      case ActKind::kRelu:
        return x > 0 ? 1.0f : 0.0f;
      case ActKind::kRelu6:
        return x > 0 && x < 6 ? 1.0f : 0.0f;
      case ActKind::kLeakyRelu:
        return x > 0 ? 1.0f : kLeak;
      case ActKind::kElu:
        return x > 0 ? 1.0f : expf(x);
      case ActKind::kSilu:
        return swish_slope(x, 1.0f);
      case ActKind::kMish:
        return mish_slope(x);
      case ActKind::kQuickGelu:
        return swish_slope(x, kQuickGelu);
      case ActKind::kHardSwish:
        return x <= -3 ? 0.0f : x >= 3 ? 1.0f : x / 3.0f + 0.5f;
      case ActKind::kTanh:
        return 1.0f - tanhf(x) * tanhf(x);
      case ActKind::kSigmoid:
        return sigmoid(x) * (1.0f - sigmoid(x));
    }
    return 1.0f;
  }
  __device__ float operator()(float x, float dy) const { return slope(x) * dy; }
};

}  // namespace vitrail::cuda
