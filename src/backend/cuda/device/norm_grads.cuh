// The gradient of a norm in a group of lanes: rows prefetched into shared memory, one row's dx, and sums over
// rows in registers until the block adds them. Knows nothing of the launch.
#pragma once

#include <cuda_pipeline.h>

#include "backend/cuda/device/norms.cuh"

namespace vitrail::cuda {

struct NormGrad {
  RowPlaces rows;
  Elements x, dy, dx, copy, residual, weight[2];
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

// Says which columns a lane computes, eight of every pack, and how it reads and writes them. Of a wide stream
// they are two runs of four, so that in f32 neighbouring lanes access neighbouring 16 bytes; otherwise all
// eight are neighbours, 16 bytes of a 16-bit type.
template <int kPacks, RowTypes kTypes>
struct GradLanes : RowLanes<kPacks, kTypes != RowTypes::kAny> {
  static constexpr bool kRuns = kTypes == RowTypes::kWide;
  using RowLanes<kPacks, kTypes != RowTypes::kAny>::RowLanes;

  __device__ int run(int p, int half) const {
    return kRuns ? ((p * 2 + half) * this->lanes + this->lane) * 4 : this->column(p) + half * 4;
  }
  __device__ void get(const Elements& row, int p, float (&v)[8]) const {
    if constexpr (kRuns)
      row.get4(run(p, 0), v), row.get4(run(p, 1), v + 4);
    else
      row.get8(this->column(p), v);
  }
  __device__ void put(const Elements& to, int64_t start, int p, const float (&v)[8]) const {
    if constexpr (kRuns)
      to.put4(start + run(p, 0), v), to.put4(start + run(p, 1), v + 4);
    else
      to.put8(start + this->column(p), v);
  }
};

// The weights of a row as f32 in shared memory, for all warps of a block. The two runs of four that a lane
// reads lie where neighbouring lanes read neighbouring 16 bytes.
template <typename Lanes>
struct StagedWeight {
  float* data;
  int width;

  __device__ int place(int column) const {
    return Lanes::kRuns ? column : (column % 8 / 4 * (width / 8) + column / 8) * 4 + column % 4;
  }
  __device__ void fill(const Elements& weight) const {
    for (int i = threadIdx.x; i < width; i += blockDim.x) data[place(i)] = weight.get(i);
  }
  __device__ void get(const Lanes& at, int p, float (&v)[8]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float4 run = *reinterpret_cast<const float4*>(data + place(at.run(p, half)));
      v[half * 4] = run.x, v[half * 4 + 1] = run.y, v[half * 4 + 2] = run.z, v[half * 4 + 3] = run.w;
    }
  }
};

// The row a group of lanes computes next, in flight to shared memory. Neighbouring lanes copy neighbouring 16
// bytes, so that a lane reads what others of its warp have copied.
template <RowTypes kTypes, typename Lanes>
struct Stage {
  Elements x, dy, residual;  // in shared memory; the residual's data null where there is none

  __device__ Stage(const NormGrad& g, char* memory) : x(g.x), dy(g.dy), residual(g.residual) {
    if constexpr (kTypes != RowTypes::kAny) {
      x.dtype = residual.dtype = stream_type(kTypes);
      dy.dtype = DType::kBF16;
    }
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
#pragma unroll
    for (int j = 0; j < bytes / 2 * Lanes::kMost; ++j) {
      const int at_byte = (j * at.lanes + at.lane) * 16;
      if (Lanes::kExact || at_byte < at.width * bytes)
        __pipeline_memcpy_async(static_cast<char*>(to.data) + at_byte, source + at_byte, 16);
    }
  }
};

// The warps of a block and the blocks of a multiprocessor, as the registers allow, most of which hold the
// sums, and the shared memory, which holds two rows a warp. The warps divide evenly among the four quarters
// of a multiprocessor.
template <int kPacks, bool kMore, RowTypes kTypes>
struct GradShape {
  static constexpr int kSums = kPacks * (kMore ? 3 : 2);
  static constexpr int kMostSums = kTypes == RowTypes::kNarrow ? 12 : kTypes == RowTypes::kWide ? 9 : 6;
  static constexpr int kBlocks = kPacks <= 2 ? 2 : 1;
  static constexpr int kWarps = kPacks > 2 && kSums <= kMostSums ? 12 : 8;
};

// Values read before this call are not kept in registers beyond it.
__device__ __forceinline__ void forget_reads() {
  asm volatile("" ::: "memory");
}

// Writes eight elements of dx, and of its copy where there is one.
template <RowTypes kTypes, typename Lanes>
__device__ void put_dx(const NormGrad& g, const Lanes& at, int64_t start, int p, const float (&v)[8]) {
  Elements dx = g.dx, copy = g.copy;
  if constexpr (kTypes != RowTypes::kAny) dx.dtype = stream_type(kTypes), copy.dtype = DType::kBF16;
  at.put(dx, start, p, v);
  if (kTypes != RowTypes::kNarrow && copy.data) at.put(copy, start, p, v);
}

// The gradient of one row in its stage; `start` is negative where there is none. All lanes of the warp call
// it. The row is read from the stage as often as it is needed, since the registers hold the sums.
template <int kPacks, bool kMore, RowTypes kTypes, typename Lanes>
__device__ void grad_row(const NormGrad& g, const Lanes& at, const Stage<kTypes, Lanes>& stage,
                         const StagedWeight<Lanes>& weight, int64_t start, LaneSums<kPacks, kMore>& sums) {
  const bool live = start >= 0;
  const float share = 1.0f / at.width;
  float x[8], dy[8], w[8], part[4] = {}, more_sums[3] = {};
  if (live)
    at.each([&](int p) {
      at.get(stage.x, p, x);
#pragma unroll
      for (int e = 0; e < 8; ++e) part[e % 4] += x[e];
    });
  float sum[1] = {(part[0] + part[1]) + (part[2] + part[3])};
  at.sum(sum);
  const float mean = sum[0] * share;
  auto& [squares, sum_dn, sum_dn_x] = more_sums;
  if (live)
    at.each([&](int p) {
      forget_reads();
      at.get(stage.x, p, x);
      at.get(stage.dy, p, dy);
      weight.get(at, p, w);
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
      at.get(stage.x, p, x);
      at.get(stage.dy, p, dy);
      weight.get(at, p, w);
      if (kMore && stage.residual.data) at.get(stage.residual, p, more);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float n = (x[e] - mean) * inverse;
        sums.dweight[p][e] = fmaf(dy[e], n, sums.dweight[p][e]);
        more[e] = fmaf(inverse, fmaf(dy[e], w[e], -mean_dn) - n * mean_dn_n, more[e]);
        if (kMore) sums.dx[kMore ? p : 0][e] += more[e];
      }
      put_dx<kTypes>(g, at, start, p, more);
    });
}

// A warp's sums in shared memory, as the lanes hold them: [sum][pack][element][lane], with a gap after the
// lanes so that neighbouring columns lie in different banks.
struct SumPlaces {
  int lanes;
  size_t sums;

  __host__ __device__ int stride() const { return lanes + 4; }
  __host__ __device__ int one(int packs) const { return packs * 8 * stride(); }
  __host__ __device__ int all(int packs) const { return static_cast<int>(sums) * one(packs); }
  __device__ int column(int i, bool runs) const {
    const int pack = i / (8 * lanes), inside = i % (8 * lanes);
    const int lane = runs ? inside / 4 % lanes : inside / 8;
    const int element = runs ? inside / (4 * lanes) * 4 + i % 4 : i % 8;
    return (pack * 8 + element) * stride() + lane;
  }
};

// Every warp leaves its sums in shared memory; the block adds them in the order of the warps.
template <int kPacks, bool kMore, typename Lanes>
__device__ void leave_partials(const NormGrad& g, const Lanes& at, int part, LaneSums<kPacks, kMore>& sums,
                               float* memory) {
  const SumPlaces places{at.lanes, static_cast<size_t>(g.sums())};
  const int warps = blockDim.x / 32, one = places.one(kPacks), all = places.all(kPacks);
  __syncthreads();  // all rows have been read
  float* const own = memory + threadIdx.x / 32 * all;
  const auto leave = [&](const float(&values)[8], int p, float* to) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      float value = values[e];
      for (int offset = at.lanes; offset < 32; offset *= 2) value += __shfl_xor_sync(~0u, value, offset);
      if (threadIdx.x % 32 < at.lanes) to[(p * 8 + e) * places.stride() + at.lane] = value;
    }
  };
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    if (g.trained) leave(sums.dweight[p], p, own), leave(sums.dbias[p], p, own + one);
    if (kMore && g.column_sums) leave(sums.dx[kMore ? p : 0], p, own + (g.trained ? 2 : 0) * one);
  }
  __syncthreads();
  float* const to = g.partial_row(part);
  for (int i = threadIdx.x; i < g.sums() * at.width; i += blockDim.x) {
    const float* from = memory + i / at.width * one + places.column(i % at.width, Lanes::kRuns);
    float total = from[0];
    for (int warp = 1; warp < warps; ++warp) total += from[warp * all];
    to[i] = total;
  }
}

}  // namespace vitrail::cuda
