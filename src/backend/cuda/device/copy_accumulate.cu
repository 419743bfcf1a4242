// Values updated from others of the same shape, in any mixture of types: copied, added, averaged over time.
#include "backend/cuda/device/segments.cuh"
#include "backend/cuda/device/updates.cuh"

namespace vitrail::cuda {

namespace {

__global__ void __launch_bounds__(kSegmentThreads) copy_kernel(const __grid_constant__ PairCall call) {
  const PairSegment& s = block_segment(call.segments);
  each_group(s, [&](const auto& at) { write_group(s.to, at, read_group(s.from, at)); });
}

template <typename Change>
__device__ void change_pairs(const PairSegment& s, Change change) {
  each_group(s, [&](const auto& at) {
    Group to = read_group(s.to, at);
    const Group from = read_group(s.from, at);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) to[j] = change(to[j], from[j]);
    write_group(s.to, at, to);
  });
}

__global__ void __launch_bounds__(kSegmentThreads) accumulate_kernel(const __grid_constant__ PairCall call) {
  change_pairs(block_segment(call.segments), [](float to, float from) { return to + from; });
}

__global__ void __launch_bounds__(kSegmentThreads) average_kernel(const __grid_constant__ PairCall call) {
  if (call.rule.step->skip != 0) return;
  const double step = call.rule.step->step;
  double decay = call.rule.hyper->ema;
  if (call.rule.warmup) decay = fmin(decay, (1 + step) / (10 + step));
  const float rate = static_cast<float>(1 - decay);
  change_pairs(block_segment(call.segments),
               [rate](float to, float from) { return fmaf(from - to, rate, to); });
}

}  // namespace

void run_copy(Session& session, const PairCall& call) {
  launch_segments(session, copy_kernel, call, "copy");
}
void run_accumulate(Session& session, const PairCall& call) {
  launch_segments(session, accumulate_kernel, call, "accumulate");
}
void run_average(Session& session, const PairCall& call) {
  launch_segments(session, average_kernel, call, "average");
}

}  // namespace vitrail::cuda
