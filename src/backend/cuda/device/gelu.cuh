// The gelu and its gradient, dx from x and dy, in both forms. The Short variants compute the erf form to the
// accuracy of 16-bit results.
#pragma once

namespace vitrail::cuda {

// The cumulative distribution function of the normal distribution at x.
__device__ inline float normal_share(float x) {
  return 0.5f + 0.5f * erff(x * 0.70710678f);
}
// The upper tail of the normal distribution at |x|, within 1e-7 by few instructions, and exp(-x^2 / 2), of
// which it is a multiple, by a polynomial in 1 / (1 + 0.23 |x|).
struct NormalShort {
  float beyond, bell;
};
__device__ inline NormalShort normal_short(float x) {
  constexpr float kTerms[] = {-0.726576014f, 0.710706871f, -0.142248368f, 0.127414796f};
  float bell, t, sum = 0.530702715f;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(bell) : "f"(x * x * -0.72134752f));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(t) : "f"(fmaf(fabsf(x), 0.23164189f, 1.0f)));
#pragma unroll
  for (float term : kTerms) sum = fmaf(sum, t, term);
  return {sum * t * bell, bell};
}

struct GeluErf {
  __device__ float operator()(float x) const { return x * normal_share(x); }
};
struct GeluErfGrad {
  __device__ float operator()(float x, float dy) const {
    return dy * (normal_share(x) + x * 0.39894228f * expf(-0.5f * x * x));
  }
};
struct GeluShort {
  __device__ float operator()(float x) const {
    return fmaf(-fabsf(x), normal_short(x).beyond, fmaxf(x, 0.0f));
  }
};
struct GeluShortGrad {
  __device__ float operator()(float x, float dy) const {
    const NormalShort normal = normal_short(x);
    return dy * fmaf(x * 0.39894228f, normal.bell, x < 0 ? normal.beyond : 1.0f - normal.beyond);
  }
};

// The gelu and its slope at once, as GeluShort and GeluShortGrad compute them.
struct GeluBoth {
  float value, slope;
  __device__ explicit GeluBoth(float x) {
    const NormalShort normal = normal_short(x);
    value = fmaf(-fabsf(x), normal.beyond, fmaxf(x, 0.0f));
    slope = fmaf(x * 0.39894228f, normal.bell, x < 0 ? normal.beyond : 1.0f - normal.beyond);
  }
};

constexpr float kGeluRoot = 0.79788456f, kGeluCube = 0.044715f;  // sqrt(2 / pi)

struct GeluTanh {
  __device__ float operator()(float x) const {
    return 0.5f * x * (1.0f + tanhf(kGeluRoot * (x + kGeluCube * x * x * x)));
  }
};
struct GeluTanhGrad {
  __device__ float operator()(float x, float dy) const {
    const float t = tanhf(kGeluRoot * (x + kGeluCube * x * x * x));
    return dy *
           (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * kGeluRoot * (1.0f + 3.0f * kGeluCube * x * x));
  }
};

}  // namespace vitrail::cuda
