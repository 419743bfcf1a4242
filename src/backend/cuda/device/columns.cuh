// Sums over rows in two stages with a fixed partition: every part of the rows becomes one row of partial
// sums, and those are added in order. For kernels that only sum, and for kernels that also write the values
// they sum.
#pragma once

#include "backend/cuda/api/rows.h"
#include "backend/cuda/device/elementwise.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

// The arguments of the second stage: partials are [parts][count * width], one target of `width` elements
// after the other.
struct Totals {
  static constexpr int kMax = 3;
  Operand target[kMax] = {};
  int count = 0;
  int64_t width = 0;
  bool add = false;

  void want(const Operand& operand) {
    if (operand.data) target[count++] = operand;
  }
};
void finish_sums(Session& session, const float* partials, int64_t parts, const Totals& totals);

constexpr int kSumLanes = 32, kSumRows = 8;

// The first stage, over value's elements: a thread owns kEach neighbouring columns. It also writes the
// elements to y where that is given.
template <int kEach, typename Value>
__global__ void __launch_bounds__(kSumLanes* kSumRows, 3)
    sum_columns(Value value, Elements y, int64_t rows, int64_t width, float* partials) {
  constexpr int kFlight = sizeof(typename Value::Raw) > sizeof(Pack) ? 2 : 4;  // rows in flight at once
  __shared__ float shares[kSumRows][kSumLanes * kEach];
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * kSumLanes + threadIdx.x) * kEach;
  const int64_t first = rows * blockIdx.y / gridDim.y, last = rows * (blockIdx.y + 1) / gridDim.y;
  float sum[kEach] = {};
  if constexpr (kEach == 8) {
    for (int64_t row = first + threadIdx.y; row < last && column < width; row += kFlight * kSumRows) {
      typename Value::Raw raw[kFlight];
#pragma unroll
      for (int u = 0; u < kFlight; ++u)
        if (row + u * kSumRows < last) raw[u] = value.fetch((row + u * kSumRows) * width + column);
#pragma unroll
      for (int u = 0; u < kFlight; ++u) {
        if (row + u * kSumRows >= last) break;
        const int64_t i = (row + u * kSumRows) * width + column;
        float v[8];
        value.eight(raw[u], i, v);
        if (y.data) y.put8(i, v);
#pragma unroll
        for (int e = 0; e < 8; ++e) sum[e] += v[e];
      }
    }
  } else {
    for (int64_t row = first + threadIdx.y; row < last && column < width; row += kSumRows) {
      const float v = value.one(row * width + column);
      if (y.data) y.put(row * width + column, v);
      sum[0] += v;
    }
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) shares[threadIdx.y][e * kSumLanes + threadIdx.x] = sum[e];
  __syncthreads();
  // Thread t of the block now has column t of its tile, which lane t / kEach summed.
  const int t = threadIdx.y * kSumLanes + threadIdx.x;
  const int64_t target = static_cast<int64_t>(blockIdx.x) * kSumLanes * kEach + t;
  if (t >= kSumLanes * kEach || target >= width) return;
  float total = 0;
  for (int r = 0; r < kSumRows; ++r) total += shares[r][t % kEach * kSumLanes + t / kEach];
  partials[blockIdx.y * width + target] = total;
}

// Launches both stages.
template <typename Value>
void launch_column_sums(Session& session, const Value& value, const Elements& y, const ColumnSums& sums) {
  const dim3 threads(kSumLanes, kSumRows);
  const auto parts = static_cast<unsigned>(sums.parts);
  if (sums.width % 8 == 0)
    sum_columns<8><<<dim3(blocks_for(sums.width, kSumLanes * 8), parts), threads, 0, session.stream>>>(
        value, y, sums.rows, sums.width, sums.partials);
  else
    sum_columns<1><<<dim3(blocks_for(sums.width, kSumLanes), parts), threads, 0, session.stream>>>(
        value, y, sums.rows, sums.width, sums.partials);
  check_launch("sum_columns");
  Totals totals{.width = sums.width, .add = sums.add};
  totals.want(sums.target);
  finish_sums(session, sums.partials, sums.parts, totals);
}

}  // namespace vitrail::cuda
