// LAMB in two passes, since the step size needs the norms of the whole parameter and of its direction. The
// direction is kept in the gradient sum, which has the parameter's type and which the second pass zeroes.
#include "backend/cuda/device/block.cuh"
#include "backend/cuda/device/update_rates.cuh"
#include "backend/cuda/device/updates.cuh"

namespace vitrail::cuda {

namespace {

__global__ void __launch_bounds__(kSegmentThreads) lamb_directions(const __grid_constant__ UpdateCall call) {
  const UpdateSegment& s = block_segment(call.segments);
  UpdateRates rates = block_rates(call.rule, true);
  if (rates.skip) return clear_sums(s, blockIdx.x);
  fit_rates(rates, *call.rule.step, s);
  double param_squares = 0, direction_squares = 0;
  each_group(s, [&](const auto& at) {
    const Group w = read_group(s.param, at);
    Group g = read_group(s.sum, at), m = read_group(s.m, at), v = read_group(s.v, at);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) g[j] *= rates.factor;
    Group direction = renew_moments(rates, g, m, v);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      direction[j] = fmaf(w[j], rates.coupled, direction[j]);
      if (!at.holds(j)) continue;
      param_squares += static_cast<double>(w[j]) * w[j];
      direction_squares += static_cast<double>(direction[j]) * direction[j];
    }
    write_group(s.m, at, m);
    write_group(s.v, at, v);
    write_group(s.sum, at, call.totals ? Group{} : direction);
  });
  param_squares = block_join(param_squares, Sum{});
  direction_squares = block_join(direction_squares, Sum{});
  if (threadIdx.x != 0) return;
  call.squares[2 * blockIdx.x] = param_squares;
  call.squares[2 * blockIdx.x + 1] = direction_squares;
}

// The trust ratio |w| / |u| within its limits; 1 when either norm is 0.
__device__ double trust_ratio(const UpdateRule& rule, double param_squares, double direction_squares) {
  if (!(param_squares > 0 && direction_squares > 0)) return 1;
  const double ratio = fmax(sqrt(param_squares) / sqrt(direction_squares), rule.trust_min);
  return rule.trust_max > 0 ? fmin(ratio, rule.trust_max) : ratio;
}

// The ratio of a segment, of its chunks' squares; 1 when the parameter is not adapted.
__device__ double block_ratio(const UpdateCall& call, const UpdateSegment& s) {
  if (!s.adapts) return 1;
  double param_squares = 0, direction_squares = 0;
  for (int64_t chunk = threadIdx.x; chunk * kChunk < s.elems; chunk += kSegmentThreads) {
    param_squares += call.squares[2 * (s.first_chunk + chunk)];
    direction_squares += call.squares[2 * (s.first_chunk + chunk) + 1];
  }
  param_squares = block_join(param_squares, Sum{});
  direction_squares = block_join(direction_squares, Sum{});
  return trust_ratio(call.rule, param_squares, direction_squares);
}

__global__ void __launch_bounds__(kSegmentThreads) lamb_moves(const __grid_constant__ UpdateCall call) {
  if (call.rule.step->skip != 0) return;
  const UpdateSegment& s = block_segment(call.segments);
  const float lr = static_cast<float>(s.lr * call.rule.step->lr * block_ratio(call, s));
  each_group(s, [&](const auto& at) {
    Group w = read_group(s.param, at);
    const Group direction = read_group(s.sum, at);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) w[j] = fmaf(-lr, direction[j], w[j]);
    write_group(s.param, at, w);
    write_group(s.sum, at, Group{});
  });
}

// Sums the squares of the only segment's chunks.
__global__ void __launch_bounds__(kSegmentThreads) lamb_totals(const __grid_constant__ UpdateCall call) {
  double sums[2] = {};
  const int64_t chunks = call.rule.step->skip != 0 ? 0 : call.segments.chunks;
  for (int64_t chunk = threadIdx.x; chunk < chunks; chunk += kSegmentThreads)
    for (int i = 0; i < 2; ++i) sums[i] += call.squares[2 * chunk + i];
  for (int i = 0; i < 2; ++i) {
    const double total = block_join(sums[i], Sum{});
    if (threadIdx.x == 0) call.totals[i] = total;
  }
}

// Takes the step with norms that are summed over ranks; the direction is that of the stored moments.
__global__ void __launch_bounds__(kSegmentThreads) lamb_move_parts(const __grid_constant__ UpdateCall call) {
  const UpdateSegment& s = block_segment(call.segments);
  UpdateRates rates = block_rates(call.rule, true);
  if (rates.skip) return;
  fit_rates(rates, *call.rule.step, s);
  const double ratio = s.adapts ? trust_ratio(call.rule, call.totals[0], call.totals[1]) : 1;
  const float lr = static_cast<float>(s.lr * call.rule.step->lr * ratio);
  each_group(s, [&](const auto& at) {
    Group w = read_group(s.param, at);
    const Group m = read_group(s.m, at), v = read_group(s.v, at);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      const float direction = m[j] * rates.correction / fmaf(sqrtf(v[j]), rates.root, rates.eps);
      w[j] = fmaf(-lr, fmaf(w[j], rates.coupled, direction), w[j]);
    }
    write_group(s.param, at, w);
  });
}

}  // namespace

void run_lamb_moments(Session& session, const UpdateCall& call) {
  launch_segments(session, lamb_directions, call, "lamb_directions");
  lamb_totals<<<1, kSegmentThreads, 0, session.stream>>>(call);
  check_launch("lamb_totals");
}

void run_lamb_move(Session& session, const UpdateCall& call) {
  launch_segments(session, lamb_move_parts, call, "lamb_move_parts");
}

void run_lamb(Session& session, const UpdateCall& call) {
  launch_segments(session, lamb_directions, call, "lamb_directions");
  launch_segments(session, lamb_moves, call, "lamb_moves");
}

}  // namespace vitrail::cuda
