// How the blocks of a launch find their share of its segments. Used by everything that changes persistent
// values.
#pragma once

#include "backend/cuda/api/updates.h"
#include "backend/cuda/device/groups.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

inline constexpr int kSegmentThreads = 256;

// The segment this block's chunk belongs to: the last that starts at or before it.
template <typename Segments>
__device__ const auto& block_segment(const Segments& segments) {
  int low = 0, high = segments.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (segments.items[middle].first_chunk <= blockIdx.x)
      low = middle;
    else
      high = middle - 1;
  }
  return segments.items[low];
}

// Calls body(i, n) for the groups [i, i + n) of this block's chunk that are this thread's.
template <typename Segment, typename Body>
__device__ void each_group(const Segment& segment, Body body) {
  const int64_t begin = (blockIdx.x - segment.first_chunk) * kChunk;
  const int64_t end = begin + kChunk < segment.elems ? begin + kChunk : segment.elems;
  for (int64_t i = begin + threadIdx.x * kGroup; i < end; i += kSegmentThreads * kGroup)
    body(i, end - i < kGroup ? static_cast<int>(end - i) : kGroup);
}

// One block a chunk.
template <typename Call>
void launch_segments(Session& session, void (*kernel)(Call), const Call& call, const char* name) {
  if (call.segments.chunks == 0) return;
  kernel<<<static_cast<unsigned>(call.segments.chunks), kSegmentThreads, 0, session.stream>>>(call);
  check_launch(name);
}

}  // namespace vitrail::cuda
