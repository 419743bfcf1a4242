// The gradient of a norm in a group of lanes: rows prefetched into shared memory, one row's dx, and sums over
// rows in registers until the block adds them. Knows nothing of the launch.
#pragma once

#include <cuda_pipeline.h>

#include "backend/cuda/device/norms.cuh"

namespace vitrail::cuda {

struct NormGrad {
  RowPlaces rows;
  Elements x, dy, dx, residual, weight[2];
  float* partials;  // [parts][blocks][sums][width]; null: no sums
  bool trained, column_sums;

  __device__ int sums() const { return (trained ? 2 : 0) + (column_sums ? 1 : 0); }
  __device__ float* partial_row(int part) const {
    return partials + (static_cast<int64_t>(part) * gridDim.x + blockIdx.x) * sums() * rows.width;
  }
};

// v is not normalised: its dx is dy.
__device__ inline void copy_rows(const NormGrad& g, int part) {
  const int64_t width = g.rows.width, each = width % 8 == 0 ? 8 : 1, all = g.rows.rows * width;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t i = first * each; i < all; i += static_cast<int64_t>(gridDim.x) * blockDim.x * each) {
    const int64_t at = g.rows.start(i / width, part) + i % width;
    float v[8];
    if (each == 1) {
      g.dx.put(at, g.dy.get(at));
    } else {
      g.dy.get8(at, v);
      g.dx.put8(at, v);
    }
  }
}

// The sums over rows of a thread's columns; kMore: also that of dx.
template <int kPacks, bool kMore>
struct LaneSums {
  float dweight[kPacks][8] = {}, dbias[kPacks][8] = {}, dx[kMore ? kPacks : 1][8] = {};
};

// The rows a group of lanes computes next, in flight to shared memory: every lane copies and reads its own
// columns, so that it waits for its own copies alone.
template <typename Lanes>
struct Stage {
  Elements x, dy, residual;  // in shared memory; the residual's data null where there is none

  __device__ Stage(const NormGrad& g, char* memory) : x(g.x), dy(g.dy), residual(g.residual) {
    x.data = memory, memory += g.rows.width * bytes_of(x);
    dy.data = memory, memory += g.rows.width * bytes_of(dy);
    if (residual.data) residual.data = memory;
  }
  __device__ static int bytes_of(const Elements& e) { return e.dtype == DType::kF32 ? 4 : 2; }

  __device__ void ask(const NormGrad& g, const Lanes& at, int64_t start) const {
    copy(g.x, start, at, x);
    copy(g.dy, start, at, dy);
    if (residual.data) copy(g.residual, start, at, residual);
  }
  __device__ static void copy(const Elements& from, int64_t start, const Lanes& at, const Elements& to) {
    const int bytes = bytes_of(to);
    const char* source = static_cast<const char*>(from.data) + start * bytes;
    at.each([&](int p) {
      for (int b = 0; b < 8 * bytes; b += 16)
        __pipeline_memcpy_async(static_cast<char*>(to.data) + at.column(p) * bytes + b,
                                source + at.column(p) * bytes + b, 16);
    });
  }
};

// The warps of a block and the blocks of a multiprocessor, as the registers allow, most of which hold the
// sums. The warps divide evenly among the four quarters of a multiprocessor.
template <int kPacks, bool kMore, bool kUsual>
struct GradShape {
  static constexpr int kSums = kPacks * (kMore ? 3 : 2);
  static constexpr int kBlocks = kPacks <= 2 ? 2 : 1;
  static constexpr int kWarps = kPacks > 2 && kSums <= (kUsual ? 12 : 6) ? 12 : 8;
};

// Values read before this call are not kept in registers beyond it.
__device__ __forceinline__ void forget_reads() {
  asm volatile("" ::: "memory");
}

// The gradient of one row in its stage; `start` is negative where there is none. All lanes of the warp call
// it. The row is read from the stage as often as it is needed, since the registers hold the sums.
template <int kPacks, bool kMore, typename Lanes>
__device__ void grad_row(const NormGrad& g, const Lanes& at, const Stage<Lanes>& stage,
                         const Elements& weight, const Elements& dx, int64_t start,
                         LaneSums<kPacks, kMore>& sums) {
  const bool live = start >= 0;
  const float share = 1.0f / at.width;
  float x[8], dy[8], w[8], sum[1] = {}, more_sums[3] = {};
  if (live)
    at.each([&](int p) {
      unpack(fetch(stage.x, at.column(p)), stage.x.dtype, x);
#pragma unroll
      for (int e = 0; e < 8; ++e) sum[0] += x[e];
    });
  at.sum(sum);
  const float mean = sum[0] * share;
  auto& [squares, sum_dn, sum_dn_x] = more_sums;
  if (live)
    at.each([&](int p) {
      forget_reads();
      unpack(fetch(stage.x, at.column(p)), stage.x.dtype, x);
      unpack(fetch(stage.dy, at.column(p)), stage.dy.dtype, dy);
      unpack(fetch(weight, at.column(p)), weight.dtype, w);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float centred = x[e] - mean, dn = dy[e] * w[e];
        squares = fmaf(centred, centred, squares);
        sum_dn += dn;
        sum_dn_x = fmaf(dn, centred, sum_dn_x);
        sums.dbias[p][e] += dy[e];
      }
    });
  at.sum(more_sums);
  const float inverse = rsqrtf(squares * share + g.rows.eps);
  const float mean_dn = sum_dn * share, mean_dn_n = sum_dn_x * share * inverse;
  if (live)
    at.each([&](int p) {
      float more[8] = {};
      forget_reads();
      unpack(fetch(stage.x, at.column(p)), stage.x.dtype, x);
      unpack(fetch(stage.dy, at.column(p)), stage.dy.dtype, dy);
      unpack(fetch(weight, at.column(p)), weight.dtype, w);
      if (kMore && stage.residual.data)
        unpack(fetch(stage.residual, at.column(p)), stage.residual.dtype, more);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float n = (x[e] - mean) * inverse;
        sums.dweight[p][e] = fmaf(dy[e], n, sums.dweight[p][e]);
        more[e] = fmaf(inverse, fmaf(dy[e], w[e], -mean_dn) - n * mean_dn_n, more[e]);
        if (kMore) sums.dx[kMore ? p : 0][e] += more[e];
      }
      dx.put8(start + at.column(p), more);
    });
}

// The warps add to the block's sums one after the other. In shared memory the sums are stored as the lanes
// hold them: [sum][pack][element][lane].
template <int kPacks, bool kMore, typename Lanes>
__device__ void leave_partials(const NormGrad& g, const Lanes& at, int part, LaneSums<kPacks, kMore>& sums,
                               float* totals) {
  const int width = at.width, warp = threadIdx.x / 32, room = kPacks * 8 * at.lanes;
  const auto add = [&](const float(&values)[8], int p, float* to) {
    forget_reads();
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      float value = values[e];
      for (int offset = at.lanes; offset < 32; offset *= 2) value += __shfl_xor_sync(~0u, value, offset);
      if (threadIdx.x % 32 >= at.lanes) continue;
      float& total = to[(p * 8 + e) * at.lanes + at.lane];
      total = warp == 0 ? value : total + value;
    }
  };
  for (int w = 0; w < static_cast<int>(blockDim.x / 32); ++w) {
    __syncthreads();
    if (warp != w) continue;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (g.trained) add(sums.dweight[p], p, totals), add(sums.dbias[p], p, totals + room);
      if (kMore && g.column_sums) add(sums.dx[kMore ? p : 0], p, totals + (g.trained ? 2 : 0) * room);
    }
  }
  __syncthreads();
  float* to = g.partial_row(part);
  for (int i = threadIdx.x; i < g.sums() * width; i += blockDim.x) {
    const int column = i % width, pack = column / 8;
    to[i] = totals[i / width * room + (pack / at.lanes * 8 + column % 8) * at.lanes + pack % at.lanes];
  }
}

}  // namespace vitrail::cuda
