// The rates of a step with which a parameter's elements are updated. Means move by rate * (new - old), and
// weights by a difference that is subtracted: a factor such as 0.9999 would lose its last digits in f32.
#pragma once

#include "backend/cuda/device/segments.cuh"

namespace vitrail::cuda {

struct UpdateRates {
  bool skip;
  float factor;
  float m_rate, v_rate;         // the weight of a new value in each mean
  float correction, root, eps;  // corrections of m and of the root of v, which start at zero
  float coupled, shrink, lr;    // of one parameter
};

// The rates that all parameters of a step share, for all threads of the block; one thread computes them in
// double.
__device__ __forceinline__ UpdateRates block_rates(const UpdateRule& rule, bool corrects) {
  __shared__ UpdateRates shared;
  if (threadIdx.x == 0) {
    const StepNumbers& step = *rule.step;
    shared = {.skip = step.skip != 0,
              .factor = static_cast<float>(step.grad_factor),
              .m_rate = static_cast<float>(1 - rule.beta1),
              .v_rate = static_cast<float>(1 - rule.beta2),
              .correction = 1,
              .root = 1,
              .eps = static_cast<float>(rule.eps)};
    if (corrects && rule.corrected) {
      shared.correction = static_cast<float>(1 / (1 - pow(rule.beta1, step.step)));
      shared.root = static_cast<float>(1 / sqrt(1 - pow(rule.beta2, step.step)));
    }
  }
  __syncthreads();
  return shared;
}

// Sets the rates of one parameter.
__device__ __forceinline__ void fit_rates(UpdateRates& rates, const StepNumbers& step,
                                          const UpdateSegment& segment) {
  rates.coupled = static_cast<float>(segment.coupled * step.decay);
  rates.shrink = static_cast<float>(segment.shrink * step.lr * step.decay);
  rates.lr = static_cast<float>(segment.lr * step.lr);
}

__device__ __forceinline__ float towards(float mean, float value, float rate) {
  return fmaf(value - mean, rate, mean);
}

// Zeroes a chunk's gradient sums.
__device__ __forceinline__ void clear_sums(const UpdateSegment& segment, int64_t chunk) {
  each_group(segment, chunk, [&](const auto& at) { write_group(segment.sum, at, Group{}); });
}

// Computes the moments' new values for gradients g, and returns the direction they give. The direction is
// that of the values before they are rounded to their stored type.
__device__ __forceinline__ Group renew_moments(const UpdateRates& rates, const Group& g, Group& m, Group& v) {
  Group direction;
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    m[j] = towards(m[j], g[j], rates.m_rate);
    v[j] = towards(v[j], g[j] * g[j], rates.v_rate);
    direction[j] = m[j] * rates.correction / fmaf(sqrtf(v[j]), rates.root, rates.eps);
  }
  return direction;
}

}  // namespace vitrail::cuda
