// Rows of heads for the attention kernels that take any mixture of float types: they are read from global
// memory into shared memory as floats, kPlainRows at a time, by blocks of kPlainWarps warps.
#pragma once

#include "backend/cuda/api/attention.h"
#include "backend/cuda/device/elements.cuh"

namespace vitrail::cuda {

inline constexpr int kPlainRows = 32, kPlainWarps = 8;

// The rows of one head of one image.
struct PlainHead {
  Elements elements;
  int64_t start, row;

  __device__ PlainHead(const HeadRows& rows, int64_t image, int64_t head)
      : start(image * rows.batch + head * rows.head), row(rows.row) {
    elements.data = rows.data, elements.dtype = rows.dtype;
  }
  __device__ float get(int64_t at, int64_t e) const { return elements.get(start + at * row + e); }
  __device__ void put(int64_t at, int64_t e, float value) const { elements.put(start + at * row + e, value); }

  // Copies kPlainRows rows from `first` on into rows `stride` floats apart, `width` floats of each: zeros
  // beyond the last row and the last element.
  __device__ void fetch(float* target, int stride, int width, int64_t first, int64_t rows,
                        int64_t size) const {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    for (int at = warp; at < kPlainRows; at += kPlainWarps)
      for (int e = lane; e < width; e += 32)
        target[at * stride + e] = first + at < rows && e < size ? get(first + at, e) : 0.0f;
  }
};

}  // namespace vitrail::cuda
