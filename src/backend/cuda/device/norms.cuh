// Defines what the norms and their gradients share: which rows there are, how a row is distributed over the
// lanes of a warp, and the moments of a row that does not fit into registers.
#pragma once

#include <initializer_list>
#include <type_traits>

#include "backend/cuda/api/norms.h"
#include "backend/cuda/device/packs.cuh"
#include "backend/cuda/device/reduce.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

// The offsets of the rows of a part: all rows, or those of q, k or v.
struct RowPlaces {
  int64_t rows, width, heads;
  float eps;

  explicit RowPlaces(const NormRows& r) : rows(r.rows), width(r.width), heads(r.heads), eps(r.eps) {}

  __device__ int64_t start(int64_t row, int part) const {
    return (heads == 0 ? row : (row / heads * 3 + part) * heads + row % heads) * width;
  }
};

// A row of at most kPacks packs per lane, or of exactly so many; a warp of 32 lanes holds one row, or several
// short ones in `lanes` lanes each.
template <int kPacks, bool kExactly = false>
struct RowLanes {
  static constexpr int kMost = kPacks;
  static constexpr bool kExact = kExactly;
  int lanes, lane, width;

  __device__ RowLanes(int lanes_of_short_row, int64_t row_width)
      : lanes(kPacks > 1 ? 32 : lanes_of_short_row),
        lane(static_cast<int>(threadIdx.x) & (lanes - 1)),
        width(static_cast<int>(row_width)) {}

  __device__ int64_t group(int threads) const {
    return (static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x) / lanes;
  }
  __device__ int column(int pack) const { return (pack * lanes + lane) * 8; }
  // Sums each of several values over the row's lanes, all at the same time.
  template <int kCount>
  __device__ void sum(float (&values)[kCount]) const {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
      if (kPacks > 1 || offset < lanes)
#pragma unroll
        for (int i = 0; i < kCount; ++i) values[i] += __shfl_xor_sync(~0u, values[i], offset);
  }
  // Calls body(pack) for the packs that lie in the row.
  template <typename Body>
  __device__ void each(Body&& body) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (kExactly || column(p) < width) body(p);
  }
};

template <int kPacks>
int lanes_for(int64_t width) {
  int lanes = 32;
  while (kPacks == 1 && lanes * 4 >= width && lanes > 1) lanes /= 2;
  return lanes;
}

// Calls body with a constant number of packs: the first of kPacks that holds the width.
template <int... kPacks, typename Body>
void with_packs(int64_t width, Body&& body) {
  bool done = false;
  ((done || width > kPacks * 256 ? void() : (body(std::integral_constant<int, kPacks>()), void(done = true))),
   ...);
}

// The rows that a kernel is compiled for: of exactly so many packs per lane, in bf16 throughout or of a
// stream in f32 beside bf16, or whatever comes. What is known at compile time makes a kernel faster.
enum class RowTypes { kAny, kNarrow, kWide };

__host__ __device__ constexpr DType stream_type(RowTypes types) {
  return types == RowTypes::kWide ? DType::kF32 : DType::kBF16;
}

template <int kPacks>
RowTypes row_types(int64_t width, std::initializer_list<Elements> stream,
                   std::initializer_list<Elements> others) {
  const auto are = [](DType dtype, std::initializer_list<Elements> operands) {
    for (const Elements& e : operands)
      if (e.data && e.dtype != dtype) return false;
    return true;
  };
  if (width != kPacks * 256 || !are(DType::kBF16, others)) return RowTypes::kAny;
  for (const RowTypes types : {RowTypes::kNarrow, RowTypes::kWide})
    if (are(stream_type(types), stream)) return types;
  return RowTypes::kAny;
}

// The moments of a row in memory, computed by a whole block.
struct RowMoments {
  float mean, inverse;
};
template <int kThreads>
__device__ RowMoments row_moments(const Elements& x, int64_t start, int64_t width, float eps) {
  float sum = 0, squares = 0;
  for (int64_t i = threadIdx.x; i < width; i += kThreads) sum += x.get(start + i);
  const float mean = block_sum<kThreads>(sum) / static_cast<float>(width);
  for (int64_t i = threadIdx.x; i < width; i += kThreads) {
    const float d = x.get(start + i) - mean;
    squares += d * d;
  }
  return {mean, rsqrtf(block_sum<kThreads>(squares) / static_cast<float>(width) + eps)};
}

void norm_grad(Session& session, const NormGradCall& call);
void rms(Session& session, const RmsCall& call);
void rms_grad(Session& session, const RmsCall& call);
void softmax(Session& session, const SoftmaxCall& call);
void softmax_grad(Session& session, const SoftmaxCall& call);

}  // namespace vitrail::cuda
