// Defines how the blocks of a launch find their chunks of its segments, in kernels that change persistent
// values. Knows nothing of what is done with the elements.
#pragma once

#include <algorithm>

#include "backend/cuda/api/updates.h"
#include "backend/cuda/device/element_groups.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

inline constexpr int kSegmentThreads = 256;

// The index of the segment a chunk belongs to: the last that starts at or before it.
template <typename Segments>
__device__ int segment_index(const Segments& segments, int64_t chunk) {
  int low = 0, high = segments.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (segments.items[middle].first_chunk <= chunk)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}
template <typename Segments>
__device__ const auto& block_segment(const Segments& segments) {
  return segments.items[segment_index(segments, blockIdx.x)];
}

// Calls body(places) for this thread's groups of a chunk.
template <typename Segment, typename Body>
__device__ void each_group(const Segment& segment, int64_t chunk, Body body) {
  constexpr int kApart = kSegmentThreads * kRun;
  const int64_t begin = (chunk - segment.first_chunk) * kChunk;
  const int64_t end = begin + kChunk < segment.elems ? begin + kChunk : segment.elems;
  for (int64_t i = begin + threadIdx.x * kRun; i < end; i += 2 * kApart) {
    if (i + kApart + kRun <= end)
      body(Places<true>{i, end, kApart});
    else
      body(Places<false>{i, end, kApart});
  }
}
template <typename Segment, typename Body>
__device__ void each_group(const Segment& segment, Body body) {
  each_group(segment, blockIdx.x, body);
}

// Launches one block per chunk, or at most `most` blocks of a kernel that loops over the chunks.
template <typename Call>
void launch_segments(Session& session, void (*kernel)(Call), const Call& call, const char* name,
                     int64_t most = INT64_MAX) {
  if (call.segments.chunks == 0) return;
  const auto blocks = static_cast<unsigned>(std::min(call.segments.chunks, most));
  kernel<<<blocks, kSegmentThreads, 0, session.stream>>>(call);
  check_launch(name);
}

}  // namespace vitrail::cuda
