// Values computed element by element from one or two operands, for kernels that write them and kernels that
// sum them: fetch() loads eight elements, eight() computes on them, one() handles the ends of odd sizes.
#pragma once

#include "backend/cuda/device/packs.cuh"

namespace vitrail::cuda {

// f(x[i])
template <typename F>
struct MapOne {
  using Raw = Pack;
  Elements x;
  F f;

  __device__ Raw fetch(int64_t i) const { return cuda::fetch(x, i); }
  __device__ void eight(const Raw& raw, int64_t, float (&v)[8]) const {
    unpack(raw, x.dtype, v);
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = f(v[e]);
  }
  __device__ float one(int64_t i) const {
    return f(x.get(i));
  }
};

// f(a[i], b[i]); b repeats after `period` elements.
template <typename F>
struct MapTwo {
  struct Raw {
    Pack a, b;
  };
  Elements a, b;
  int64_t period;
  F f;

  __device__ int64_t place(int64_t i) const {
    if (i < period) return i;
    if (i < INT64_C(1) << 32) return static_cast<uint32_t>(i) % static_cast<uint32_t>(period);
    return i % period;
  }
  __device__ bool in_eights(int64_t i) const { return period % 8 == 0 || i + 8 <= period; }

  __device__ Raw fetch(int64_t i) const {
    Raw raw;
    raw.a = cuda::fetch(a, i);
    if (in_eights(i)) raw.b = cuda::fetch(b, place(i));
    return raw;
  }
  __device__ void eight(const Raw& raw, int64_t i, float (&v)[8]) const {
    float w[8];
    unpack(raw.a, a.dtype, v);
    if (in_eights(i))
      unpack(raw.b, b.dtype, w);
    else
      for (int e = 0; e < 8; ++e) w[e] = b.get(place(i + e));
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = f(v[e], w[e]);
  }
  __device__ float one(int64_t i) const {
    return f(a.get(i), b.get(place(i)));
  }
};

struct Same {
  __device__ float operator()(float x) const { return x; }
};
struct Product {
  __device__ float operator()(float a, float b) const { return a * b; }
};

}  // namespace vitrail::cuda
