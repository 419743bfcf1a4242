// Elements of any float type in device memory, read and written as floats, eight at a time where a row
// allows. The type is an argument, the same for a whole launch, so a kernel is written once and not once per
// type.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backend/cuda/api/session.h"

namespace vitrail::cuda {

// A value as it would be read back after being stored in a type.
__device__ inline float rounded_to(DType dtype, float value) {
  if (dtype == DType::kBF16) return __bfloat162float(__float2bfloat16_rn(value));
  if (dtype == DType::kF16) return __half2float(__float2half_rn(value));
  return value;
}

// An operand as kernels access it.
struct Elements {
  void* data;
  DType dtype;

  Elements() = default;
  __host__ __device__ Elements(const Operand& o) : data(o.data), dtype(o.dtype) {}

  __device__ float get(int64_t i) const {
    if (dtype == DType::kBF16) return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    if (dtype == DType::kF16) return __half2float(static_cast<const __half*>(data)[i]);
    return static_cast<const float*>(data)[i];
  }
  __device__ void put(int64_t i, float value) const {
    if (dtype == DType::kBF16)
      static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(value);
    else if (dtype == DType::kF16)
      static_cast<__half*>(data)[i] = __float2half_rn(value);
    else
      static_cast<float*>(data)[i] = value;
  }
  // Reads eight elements from i on; i is a multiple of 8 and the operand starts on 16 bytes.
  __device__ void get8(int64_t i, float (&v)[8]) const {
    if (dtype == DType::kF32) {
      const float4* p = reinterpret_cast<const float4*>(static_cast<const float*>(data) + i);
      const float4 a = p[0], b = p[1];
      v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
      return;
    }
    const uint4 raw = *reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(data) + i);
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const float2 pair = dtype == DType::kBF16
                              ? __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(words[w]))
                              : __half22float2(reinterpret_cast<const __half2&>(words[w]));
      v[2 * w] = pair.x, v[2 * w + 1] = pair.y;
    }
  }
  // Writes eight elements from i on. In f32 the lanes of a warp then write halves of 32-byte sectors, which
  // costs more than put4.
  __device__ void put8(int64_t i, const float (&v)[8]) const {
    if (dtype == DType::kF32) {
      float4* p = reinterpret_cast<float4*>(static_cast<float*>(data) + i);
      p[0] = make_float4(v[0], v[1], v[2], v[3]);
      p[1] = make_float4(v[4], v[5], v[6], v[7]);
      return;
    }
    uint32_t words[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      if (dtype == DType::kBF16) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(v[2 * w], v[2 * w + 1]);
        words[w] = reinterpret_cast<const uint32_t&>(pair);
      } else {
        const __half2 pair = __floats2half2_rn(v[2 * w], v[2 * w + 1]);
        words[w] = reinterpret_cast<const uint32_t&>(pair);
      }
    }
    *reinterpret_cast<uint4*>(static_cast<uint16_t*>(data) + i) =
        make_uint4(words[0], words[1], words[2], words[3]);
  }
  // Four elements from i on, a multiple of 4: the best size for f32, since neighbouring threads write
  // neighbouring 16 bytes.
  __device__ void get4(int64_t i, float* v) const {
    if (dtype == DType::kF32) {
      const float4 a = *reinterpret_cast<const float4*>(static_cast<const float*>(data) + i);
      v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
      return;
    }
    const uint2 raw = *reinterpret_cast<const uint2*>(static_cast<const uint16_t*>(data) + i);
    const bool brain = dtype == DType::kBF16;
    const float2 a = brain ? __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(raw.x))
                           : __half22float2(reinterpret_cast<const __half2&>(raw.x));
    const float2 b = brain ? __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(raw.y))
                           : __half22float2(reinterpret_cast<const __half2&>(raw.y));
    v[0] = a.x, v[1] = a.y, v[2] = b.x, v[3] = b.y;
  }
  __device__ void put4(int64_t i, const float* v) const {
    if (dtype == DType::kF32) {
      *reinterpret_cast<float4*>(static_cast<float*>(data) + i) = make_float4(v[0], v[1], v[2], v[3]);
      return;
    }
    uint2 raw;
    if (dtype == DType::kBF16) {
      const __nv_bfloat162 a = __floats2bfloat162_rn(v[0], v[1]), b = __floats2bfloat162_rn(v[2], v[3]);
      raw = make_uint2(reinterpret_cast<const uint32_t&>(a), reinterpret_cast<const uint32_t&>(b));
    } else {
      const __half2 a = __floats2half2_rn(v[0], v[1]), b = __floats2half2_rn(v[2], v[3]);
      raw = make_uint2(reinterpret_cast<const uint32_t&>(a), reinterpret_cast<const uint32_t&>(b));
    }
    *reinterpret_cast<uint2*>(static_cast<uint16_t*>(data) + i) = raw;
  }
};

}  // namespace vitrail::cuda
