// Attention of one query per head: what forward and backward share. A block computes a head. Eight lanes
// share the row of a key, and the block's 32 such groups go over the keys in parallel, each with a softmax of
// its own; these are combined at the end. So keys and values are read once, however many there are.
#pragma once

#include <initializer_list>

#include "backend/cuda/device/attention_plain.cuh"
#include "backend/cuda/device/packs.cuh"
#include "backend/cuda/device/reduce.cuh"

namespace vitrail::cuda {

inline constexpr int kOneThreads = 256, kOneWarps = kOneThreads / 32;
inline constexpr int kOneLanes = 8, kOneGroups = kOneThreads / kOneLanes;
inline constexpr int kOneStep = kOneLanes * 8;  // elements of a row that a group reads at a time

// Says how lanes hold rows: kOwn elements each, in eight lanes, in the type they have in memory. Rows that
// are not whole are read element by element, from any type, and held as floats.
template <DType kType_, int kOwn_, bool kWhole_>
struct RowCut {
  static constexpr DType kType = kType_;
  static constexpr int kOwn = kOwn_, kPacks = kOwn / 8, kWidth = kOwn * kOneLanes;
  static constexpr bool kWhole = kWhole_;
};

template <DType kType, typename Launch>
void with_whole_rows(int64_t size, const Launch& launch) {
  if (size <= 64) return launch(RowCut<kType, 8, true>());
  if (size <= 128) return launch(RowCut<kType, 16, true>());
  launch(RowCut<kType, kPlainHeadSize / kOneLanes, true>());
}

// Calls launch(cut) with the cut that suits all these rows of `size` elements: whole rows have one type, and
// every eight elements start on 16 bytes.
template <typename Launch>
void with_rows(std::initializer_list<const HeadRows*> all, int64_t size, const Launch& launch) {
  const DType dtype = (*all.begin())->dtype;
  bool whole = size % 8 == 0;
  for (const HeadRows* rows : all)
    whole = whole && rows->dtype == dtype && reinterpret_cast<uintptr_t>(rows->data) % 16 == 0 &&
            (rows->batch | rows->row | rows->head) % 8 == 0;
  if (!whole) return launch(RowCut<DType::kF32, kPlainHeadSize / kOneLanes, false>());
  if (dtype == DType::kBF16) return with_whole_rows<DType::kBF16>(size, launch);
  if (dtype == DType::kF16) return with_whole_rows<DType::kF16>(size, launch);
  with_whole_rows<DType::kF32>(size, launch);
}

// This lane's part of the rows of one head.
template <typename Cut>
struct LaneRows {
  Elements elements;  // from this lane's first one in row 0 on
  int row, left;      // elements from a row to the next; from the lane's first element to the end of the row

  __device__ LaneRows(const HeadRows& rows, int64_t image, int64_t head, int64_t size)
      : row(static_cast<int>(rows.row)) {
    const int first = static_cast<int>(threadIdx.x) % kOneLanes * 8;
    elements.dtype = Cut::kWhole ? Cut::kType : rows.dtype;
    const int64_t start = image * rows.batch + head * rows.head + first;
    elements.data = static_cast<char*>(rows.data) + start * (elements.dtype == DType::kF32 ? 4 : 2);
    left = static_cast<int>(size) - first;
  }
  // Reads zeros past the end of the row, and where the row does not exist.
  __device__ __forceinline__ void read(Pack (&to)[Cut::kPacks], int at, bool there) const {
#pragma unroll
    for (int p = 0; p < Cut::kPacks; ++p) {
      const int64_t i = static_cast<int64_t>(at) * row + p * kOneStep;
      const int here = there ? left - p * kOneStep : 0;
      if constexpr (Cut::kWhole) {
        to[p].low = to[p].high = make_uint4(0, 0, 0, 0);
        if (here > 0) to[p] = fetch(elements, i);
      } else {
        uint32_t words[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) words[e] = e < here ? __float_as_uint(elements.get(i + e)) : 0;
        to[p].low = make_uint4(words[0], words[1], words[2], words[3]);
        to[p].high = make_uint4(words[4], words[5], words[6], words[7]);
      }
    }
  }
  __device__ __forceinline__ void write(int at, const float (&values)[Cut::kOwn], float times) const {
#pragma unroll
    for (int p = 0; p < Cut::kPacks; ++p) {
      const int64_t i = static_cast<int64_t>(at) * row + p * kOneStep;
      const int here = left - p * kOneStep;
      float scaled[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) scaled[e] = values[8 * p + e] * times;
      if constexpr (Cut::kWhole) {
        if (here > 0) elements.put8(i, scaled);
      } else {
#pragma unroll
        for (int e = 0; e < 8; ++e)
          if (e < here) elements.put(i + e, scaled[e]);
      }
    }
  }
};

template <typename Cut>
__device__ __forceinline__ void to_floats(const Pack (&row)[Cut::kPacks], float (&values)[Cut::kOwn]) {
#pragma unroll
  for (int p = 0; p < Cut::kPacks; ++p) {
    float part[8];
    unpack(row[p], Cut::kType, part);
#pragma unroll
    for (int e = 0; e < 8; ++e) values[8 * p + e] = part[e];
  }
}

// A row whose elements every group needs, as floats in shared memory.
template <typename Cut>
struct SharedRow {
  float values[Cut::kWidth];

  __device__ void read(const HeadRows& rows, int64_t image, int64_t head, int64_t size) {
    static_assert(Cut::kWidth <= kOneThreads);
    const int e = static_cast<int>(threadIdx.x);
    if (e < Cut::kWidth) values[e] = e < size ? PlainHead(rows, image, head).get(0, e) : 0.0f;
  }
  __device__ void own(float (&to)[Cut::kOwn]) const {
    const int first = static_cast<int>(threadIdx.x) % kOneLanes * 8;
#pragma unroll
    for (int i = 0; i < Cut::kOwn; ++i) to[i] = values[i / 8 * kOneStep + first + i % 8];
  }
};

// The prefetched keys and values of a group: kRows of each, kOneGroups rows apart, in about kBytes of a
// lane's registers.
template <typename Cut, int kBytes>
struct TurnRows {
  static constexpr int kRowBytes = 2 * Cut::kOwn * (Cut::kType == DType::kF32 ? 4 : 2);
  static constexpr int kRows = kRowBytes < kBytes ? kBytes / kRowBytes : 1, kStep = kRows * kOneGroups;
  Pack k[kRows][Cut::kPacks], v[kRows][Cut::kPacks];

  static __device__ int key(int from, int r) {
    return from + r * kOneGroups + static_cast<int>(threadIdx.x) / kOneLanes;
  }
  __device__ __forceinline__ void read(const LaneRows<Cut>& keys, const LaneRows<Cut>& values, int from,
                                       int count) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) keys.read(k[r], key(from, r), key(from, r) < count);
#pragma unroll
    for (int r = 0; r < kRows; ++r) values.read(v[r], key(from, r), key(from, r) < count);
  }
};

// The dot product of a group's row with one whose elements the lanes hold.
template <typename Cut>
__device__ __forceinline__ float dot(const Pack (&row)[Cut::kPacks], const float (&with)[Cut::kOwn]) {
  float values[Cut::kOwn], sum = 0;
  to_floats<Cut>(row, values);
#pragma unroll
  for (int i = 0; i < Cut::kOwn; ++i) sum += values[i] * with[i];
  return lanes_sum(sum, kOneLanes);
}

}  // namespace vitrail::cuda
