// The numbers of a step, computed from the gradient sums: the sum of the squares of the gradients, and
// whether and how the step is applied.
#include "backend/cuda/device/block.cuh"
#include "backend/cuda/device/segments.cuh"
#include "backend/cuda/device/updates.cuh"

namespace vitrail::cuda {

namespace {

__global__ void __launch_bounds__(kSegmentThreads)
    square_sum_kernel(const __grid_constant__ SquareSumCall call) {
  double sum = 0;
  const SumSegment& s = block_segment(call.segments);
  each_group(s, [&](const auto& at) {
    const Group x = read_group(s.x, at);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) sum += static_cast<double>(x[j]) * x[j];
  });
  sum = block_join(sum, Sum{});
  if (threadIdx.x == 0) call.partial[blockIdx.x] = sum;
}

constexpr int kTotalThreads = 1024;

// Every thread adds up neighbouring values in order, then the block adds up its threads.
__global__ void __launch_bounds__(kTotalThreads) total_kernel(TotalCall call) {
  const int64_t each = (call.count + kTotalThreads - 1) / kTotalThreads, begin = threadIdx.x * each;
  const int64_t end = begin + each < call.count ? begin + each : call.count;
  double sum = 0;
#pragma unroll 4
  for (int64_t i = begin; i < end; ++i) sum += call.partial[i];
  sum = block_join(sum, Sum{});
  if (threadIdx.x == 0) *call.total = sum;
}

// The epsilon that torch adds to the norm before dividing by it.
constexpr double kClipEpsilon = 1e-6;

// StepControlOp::decide, line by line. A norm of NaN clips nothing: the step is skipped.
__global__ void step_control_kernel(StepControlCall call) {
  CounterNumbers counters = *call.counters;
  const HyperNumbers hyper = *call.hyper;
  double scale = *call.loss_scale;
  const double norm = sqrt(*call.square_sum) / scale;
  const bool skip = !isfinite(norm);
  double clip = 1;
  if (call.max_norm > 0 && call.max_norm / (norm + kClipEpsilon) < 1)
    clip = call.max_norm / (norm + kClipEpsilon);
  (skip ? counters.skipped : counters.applied) += 1;
  counters.skipped_in_a_row = skip ? counters.skipped_in_a_row + 1 : 0;
  *call.step = {.skip = skip ? 1.0 : 0.0,
                .grad_factor = clip / scale,
                .lr = hyper.lr,
                .decay = hyper.decay,
                .step = counters.applied,
                .grad_norm = norm};
  counters.good = skip ? 0 : counters.good + 1;
  if (call.dynamic && call.passed && !skip && call.consecutive) *call.passed = 0;
  if (call.dynamic && call.passed && skip && *call.passed < call.hysteresis - 1)
    *call.passed += 1;
  else if (call.dynamic && skip)
    scale = fmax(call.min_scale, scale / 2);
  if (call.dynamic && counters.good >= call.window) {
    scale = fmin(call.max_scale, scale * 2);
    counters.good = 0;
    if (call.passed) *call.passed = 0;
  }
  *call.loss_scale = scale;
  *call.counters = counters;
}

}  // namespace

void run_square_sum(Session& session, const SquareSumCall& call) {
  launch_segments(session, square_sum_kernel, call, "square_sum");
}

void run_total(Session& session, const TotalCall& call) {
  total_kernel<<<1, kTotalThreads, 0, session.stream>>>(call);
  check_launch("total");
}

void run_step_control(Session& session, const StepControlCall& call) {
  step_control_kernel<<<1, 1, 0, session.stream>>>(call);
  check_launch("step_control");
}

}  // namespace vitrail::cuda
