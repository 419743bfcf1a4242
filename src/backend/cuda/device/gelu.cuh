// The gelu and its gradient, dx from x and dy, in both forms. The short ones are the erf form for results of
// 16 bits.
#pragma once

namespace vitrail::cuda {

// The share of a normal distribution below x.
__device__ inline float normal_share(float x) {
  return 0.5f + 0.5f * erff(x * 0.70710678f);
}
// The same within 3e-7 by multiplications alone: an odd polynomial up to 5, beyond which the share stays.
__device__ inline float normal_share_short(float x) {
  constexpr float kTerms[] = {-0.00161326025f, 0.00172283454f, -0.00268558739f, 0.00641047349f,
                              -0.0111643281f,  0.0164021924f,  -0.0232686568f,  0.0314421691f,
                              -0.0404426083f,  0.0515205227f,  -0.0702962801f,  0.141363785f};
  const float y = fminf(fmaxf(x, -5.0f), 5.0f), t = y * y * 0.08f - 1.0f;
  float sum = 0.000608714821f;
#pragma unroll
  for (float term : kTerms) sum = sum * t + term;
  return y * sum + 0.5f;
}
__device__ inline float normal_density(float x) {
  return 0.39894228f * __expf(-0.5f * x * x);
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
  __device__ float operator()(float x) const { return x * normal_share_short(x); }
};
struct GeluShortGrad {
  __device__ float operator()(float x, float dy) const {
    return dy * (normal_share_short(x) + x * normal_density(x));
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
