// A step's numbers as a parameter's elements are updated with them. Means move by rate * (new - old), and
// weights by what is taken off them: a factor such as 0.9999 would lose its last digits in f32.
#pragma once

#include "backend/cuda/device/segments.cuh"

namespace vitrail::cuda {

struct UpdateRates {
  bool skip;
  float factor, coupled, shrink, lr;
  float m_rate, v_rate;         // what a mean takes over of a new value
  float correction, root, eps;  // of the moments' start at zero: of m, and of the root of v
};

// For all threads of the block, made by one in double.
__device__ __forceinline__ UpdateRates block_rates(const UpdateCall& call, const UpdateSegment& segment,
                                                   bool corrects) {
  __shared__ UpdateRates shared;
  if (threadIdx.x == 0) {
    const StepNumbers& step = *call.rule.step;
    shared = {.skip = step.skip != 0,
              .factor = static_cast<float>(step.grad_factor),
              .coupled = static_cast<float>(segment.coupled * step.decay),
              .shrink = static_cast<float>(segment.shrink * step.lr * step.decay),
              .lr = static_cast<float>(segment.lr * step.lr),
              .m_rate = static_cast<float>(1 - call.rule.beta1),
              .v_rate = static_cast<float>(1 - call.rule.beta2),
              .correction = 1,
              .root = 1,
              .eps = static_cast<float>(call.rule.eps)};
    if (corrects) {
      shared.correction = static_cast<float>(1 / (1 - pow(call.rule.beta1, step.step)));
      shared.root = static_cast<float>(1 / sqrt(1 - pow(call.rule.beta2, step.step)));
    }
  }
  __syncthreads();
  return shared;
}

__device__ __forceinline__ float towards(float mean, float value, float rate) {
  return fmaf(value - mean, rate, mean);
}

// Zeroes the gradient sums of this block's chunk.
__device__ __forceinline__ void clear_sums(const UpdateSegment& segment) {
  each_group(segment, [&](int64_t i, int n) { write_group(segment.sum, i, n, Group{}); });
}

// The moments' new values for gradients g, and the direction they give. The direction is of the values before
// they are rounded to their stored type.
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
