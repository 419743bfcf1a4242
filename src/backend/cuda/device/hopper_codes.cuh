// Defines what the Hopper GEMM does for e4m3 codes: the scales of its sums, and codes as its result, after a
// gelu. A tile's codes take half as many bytes as 16-bit results, so the pages hold all of them at once.
#pragma once

#include "backend/cuda/api/gemms.h"
#include "backend/cuda/device/fp8.cuh"
#include "backend/cuda/device/hopper_share.cuh"

namespace vitrail::cuda {

struct CodeScales {
  const float *a, *b;  // of a's rows and b's columns
  BoundedCodes result;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The largest magnitude that a row of the result may have. Rounding to e4m3 lengthens a vector by a sixteenth
// at most, and both factors were rounded after their norms were taken.
__device__ __forceinline__ float bound_of(const BoundedCodes& codes, int row) {
  constexpr float kRounded = 1.14f;
  return kRounded * codes.norms[row] * codes.tops[0] + codes.tops[1];
}

// Loads the scale of a's row that this lane has of the warp's 32. For codes as a result it also finds the
// scale of that row's codes, which the tiles of the first columns write: NaN where f16 might not hold it.
template <bool kCodes>
__device__ __forceinline__ void prepare_row(const CodeScales& scales, const Share& share, int m, int lane) {
  constexpr float kMostOfHalf = 65504.0f;
  const int row = share.row_at(lane);
  share.row_scales[lane] = row < m ? scales.a[row] : 0.0f;
  if constexpr (!kCodes) return;
  const float bound = row < m ? bound_of(scales.result, row) : 0.0f;
  const Fp8Scale scale(bound <= kMostOfHalf ? magnitude_bits(bound) : ~0u);
  share.row_scales[32 + lane] = scale.inverse;
  if (share.column == 0 && row < m) scales.result.scales[row] = scale.scale;
}

// Multiplies the sums of e4m3 codes by the scales of their row and column.
__device__ __forceinline__ void scale_sums(const Share& share, float (&sums)[2][96], int lane) {
#pragma unroll
  for (int lower = 0; lower < 2; ++lower) {
    const float* row = share.row_scales + lower * kPageRows + lane / 4;
    const float first = row[0], second = row[8];
#pragma unroll
    for (int eight = 0; eight < Share::kColumns / 8; ++eight) {
      const float2 by = pair_at(share.scale, eight / 4, eight % 4, lane);
      float* four = sums[lower] + sums_at(eight / 4, eight % 4, 0);
      four[0] *= first * by.x, four[1] *= first * by.y;
      four[2] *= second * by.x, four[3] *= second * by.y;
    }
  }
}

// The erf form of the gelu in f16, within 3e-4 of it: a code has four bits. It is x / 2 (1 + tanh(x p(x^2))),
// p being fitted to the erf; beyond 6 the tanh is 1.
__device__ __forceinline__ __half2 half_gelu(__half2 x) {
  const auto both = [](float value) { return __float2half2_rn(value); };
  const __half2 near = __hmin2(__hmax2(x, both(-6.0f)), both(6.0f)), square = __hmul2(near, near);
  __half2 p = __hfma2(square, both(-0.00031579f), both(0.03679820f));
  p = __hmul2(near, __hfma2(square, p, both(0.79771784f)));
  uint32_t tanh = 0;
  asm("tanh.approx.f16x2 %0, %1;" : "=r"(tanh) : "r"(reinterpret_cast<const uint32_t&>(p)));
  return __hmul2(x, __hfma2(reinterpret_cast<const __half2&>(tanh), both(0.5f), both(0.5f)));
}

// The codes of two gelus, multiplied by what their row is multiplied by.
__device__ __forceinline__ uint32_t gelu_codes(float2 x, __half2 by) {
  const __half2 scaled = __hmul2(half_gelu(__float22half2_rn(x)), by);
  return __nv_cvt_halfraw2_to_fp8x2(static_cast<__half2_raw>(scaled), __NV_SATFINITE, __NV_E4M3);
}

// The codes of columns 4 q to 4 q + 3 of sixteen, q being lane % 4, where each of four lanes has those of the
// columns 2 q and 2 q + 1 and, in its upper half, of 2 q + 8 and 2 q + 9.
__device__ __forceinline__ uint32_t gather_codes(uint32_t own, int lane) {
  const int from = (lane & ~3) + (lane & 1) * 2;
  const uint32_t first = __shfl_sync(~0u, own, from), second = __shfl_sync(~0u, own, from + 1);
  return __byte_perm(first, second, lane & 2 ? 0x7632 : 0x5410);
}

// Computes half a page of sums with bias and gelu as codes, the fragments of a 16 x 32 matrix.
__device__ __forceinline__ void make_codes(const Share& share, const float (&sums)[96], int half,
                                           const __half2 (&by)[2], uint32_t (&codes)[4], int lane) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {  // upper and lower rows of sixteen columns, then of the next sixteen
    uint32_t own = 0;
#pragma unroll
    for (int side = 0; side < 2; ++side)
      own |= gelu_codes(biased(share, sums, half, i / 2 * 2 + side, i % 2, lane), by[i % 2]) << 16 * side;
    codes[i] = gather_codes(own, lane);
  }
}

// A line of a page of codes has 64 bytes, whose pieces of 16 are permuted as TMA does it for such lines.
__device__ __forceinline__ uint32_t codes_line_at(uint32_t page, int half, int lane) {
  const int line = lane % 16, piece = half % 2 * 2 + lane / 16;
  return page + line * 64 + (piece ^ line / 2 % 4) * 16;
}

__device__ __forceinline__ void send_codes(const CUtensorMap& d, const Share& share,
                                           const float (&sums)[2][96], int lane) {
  constexpr uint32_t kCodesBytes = kPageBytes / 2;
  static_assert(Share::kParts * kCodesBytes == kPages * kPageBytes);
  if (lane == 0) tma_store_wait<0>();
  __syncwarp();
#pragma unroll
  for (int half = 0; half < 2 * Share::kParts; ++half) {
    const int lower = half / Share::kParts, part = half / 2;
    const float* inverse = share.row_scales + 32 + lower * kPageRows + lane / 4;
    const __half2 by[2] = {__float2half2_rn(inverse[0]), __float2half2_rn(inverse[8])};
    uint32_t codes[4];
    make_codes(share, sums[lower], half, by, codes, lane);
    store8x8x4(codes_line_at(share.pages + part * kCodesBytes, half, lane), codes);
  }
  group_publish();
  __syncwarp();
  if (lane != 0) return;
#pragma unroll
  for (int part = 0; part < Share::kParts; ++part)
    tma_store(share.pages + part * kCodesBytes, d, share.column_of(part), share.row_of(part));
}

#endif

}  // namespace vitrail::cuda
