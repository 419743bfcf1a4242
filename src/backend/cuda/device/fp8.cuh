// The e4m3 scale of a row or column, and the codes of eight values. The arithmetic is that of the reference,
// so codes and scales are equal to it bit for bit.
#pragma once

#include <cuda_fp8.h>

#include <cstdint>

namespace vitrail::cuda {

// The bits of a magnitude: they compare as magnitudes do, and values that are not finite are the largest.
__device__ inline uint32_t magnitude_bits(float value) {
  return __float_as_uint(value) & 0x7FFFFFFFu;
}

struct Fp8Scale {
  float scale, inverse;

  // The scale is the least power of two that brings `top` to 448 or less.
  __device__ explicit Fp8Scale(uint32_t top) {
    constexpr float kMost = 448.0f, kLeast = 0x1p-116f;
    constexpr uint32_t kMantissa = 0x007FFFFFu, kInverted = 254u << 23;
    const float largest = __uint_as_float(top);
    const bool finite = top < 0x7F800000u, any = largest >= kLeast;
    const uint32_t power = (__float_as_uint(__fdiv_rn(largest, kMost)) + kMantissa) & ~kMantissa;
    scale = __uint_as_float(!finite ? 0x7FC00000u : any ? power : 0);
    inverse = __uint_as_float(finite && any ? kInverted - power : 0);
  }
};

__device__ inline uint32_t fp8_pair(float low, float high) {
  return __nv_cvt_float2_to_fp8x2(make_float2(low, high), __NV_SATFINITE, __NV_E4M3);
}

// The codes of values that are already scaled.
__device__ inline uint2 fp8_codes(const float (&v)[8]) {
  return make_uint2(fp8_pair(v[0], v[1]) | fp8_pair(v[2], v[3]) << 16,
                    fp8_pair(v[4], v[5]) | fp8_pair(v[6], v[7]) << 16);
}

}  // namespace vitrail::cuda
