// Optimizer updates in one pass over the parameters: sgd, adam and lion. Each zeroes the gradient sums; a
// skipped step changes nothing else.
#include "backend/cuda/device/updates.cuh"

#include "backend/cuda/device/plugin_tables.cuh"
#include "backend/cuda/device/update_rates.cuh"

namespace vitrail::cuda {

namespace {

// A rule updates the states it has, m and v, and returns the direction.
struct Sgd {
  static constexpr bool kHasV = false, kCorrects = false;

  static __device__ Group direction(const UpdateRule& rule, const UpdateRates&, const Group& g, Group& m,
                                    Group&) {
    const float momentum = static_cast<float>(rule.beta1);
    Group direction;
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      m[j] = fmaf(m[j], momentum, g[j]);
      direction[j] = rule.nesterov ? fmaf(m[j], momentum, g[j]) : m[j];
    }
    return direction;
  }
};

struct Adam {
  static constexpr bool kHasV = true, kCorrects = true;

  static __device__ Group direction(const UpdateRule&, const UpdateRates& rates, const Group& g, Group& m,
                                    Group& v) {
    return renew_moments(rates, g, m, v);
  }
};

struct Lion {
  static constexpr bool kHasV = false, kCorrects = false;

  static __device__ Group direction(const UpdateRule&, const UpdateRates& rates, const Group& g, Group& m,
                                    Group&) {
    Group direction;
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      const float mix = towards(m[j], g[j], rates.m_rate);
      direction[j] = static_cast<float>((mix > 0) - (mix < 0));
      m[j] = towards(m[j], g[j], rates.v_rate);
    }
    return direction;
  }
};

template <typename Rule, bool kWhole>
__device__ void update_group(const UpdateRule& rule, const UpdateRates& rates, const UpdateSegment& s,
                             const Places<kWhole>& at) {
  const bool has_m = s.m.data != nullptr;  // without m, sgd has zero momentum and gives the gradient itself
  Group w = read_group(s.param, at), g = read_group(s.sum, at), m{}, v{};
  if (has_m) m = read_group(s.m, at);
  if constexpr (Rule::kHasV) v = read_group(s.v, at);
#pragma unroll
  for (int j = 0; j < kGroup; ++j) g[j] = fmaf(w[j], rates.coupled, g[j] * rates.factor);
  const Group direction = Rule::direction(rule, rates, g, m, v);
#pragma unroll
  for (int j = 0; j < kGroup; ++j) w[j] -= fmaf(direction[j], rates.lr, w[j] * rates.shrink);
  write_group(s.param, at, w);
  if (s.copy.data) write_group(s.copy, at, w);
  write_group(s.sum, at, Group{});
  if (has_m) write_group(s.m, at, m);
  if constexpr (Rule::kHasV) write_group(s.v, at, v);
}

// The blocks that a multiprocessor runs at once: as many are launched.
template <bool kFull>
constexpr int kBlocksAProcessor = kFull ? 4 : 3;

// All blocks pass over the chunks side by side, so that few pages of memory are in use at once; the rates
// that all parameters share are computed once. kFull: all operands are f32, but for a copy in bf16.
template <typename Rule, bool kFull>
__global__ void __launch_bounds__(kSegmentThreads, kBlocksAProcessor<kFull>)
    update_kernel(const __grid_constant__ UpdateCall call) {
  UpdateRates rates = block_rates(call.rule, Rule::kCorrects);
  int index = 0;
  for (int64_t chunk = blockIdx.x; chunk < call.segments.chunks; chunk += gridDim.x) {
    while (index + 1 < call.segments.count && call.segments.items[index + 1].first_chunk <= chunk) ++index;
    UpdateSegment s = call.segments.items[index];
    if constexpr (kFull) {
      s.param.dtype = s.sum.dtype = s.m.dtype = s.v.dtype = DType::kF32;
      s.copy.dtype = DType::kBF16;
    }
    if (rates.skip) {
      clear_sums(s, chunk);
      if (s.copy.data)
        each_group(s, chunk, [&](const auto& at) { write_group(s.copy, at, read_group(s.param, at)); });
      continue;
    }
    fit_rates(rates, *call.rule.step, s);
    each_group(s, chunk, [&](const auto& at) { update_group<Rule>(call.rule, rates, s, at); });
  }
}

bool all_full(const UpdateCall& call) {
  for (int i = 0; i < call.segments.count; ++i) {
    const UpdateSegment& s = call.segments.items[i];
    for (const Operand& o : {s.param, s.sum, s.m, s.v})
      if (o.data && o.dtype != DType::kF32) return false;
    if (s.copy.data && s.copy.dtype != DType::kBF16) return false;
  }
  return true;
}

template <typename Rule, bool kFull>
void launch_update(Session& session, const UpdateCall& call) {
  launch_segments(session, update_kernel<Rule, kFull>, call, "update",
                  int64_t{kBlocksAProcessor<kFull>} * session.processors);
}

template <typename Rule>
void update(Session& session, const UpdateCall& call) {
  all_full(call) ? launch_update<Rule, true>(session, call) : launch_update<Rule, false>(session, call);
}

}  // namespace

UpdatesApi updates_api() {
  return {.copy = run_copy,
          .accumulate = run_accumulate,
          .average = run_average,
          .square_sum = run_square_sum,
          .total = run_total,
          .step_control = run_step_control,
          .sgd = update<Sgd>,
          .adam = update<Adam>,
          .lion = update<Lion>,
          .lamb = run_lamb,
          .lamb_moments = run_lamb_moments,
          .lamb_move = run_lamb_move};
}

}  // namespace vitrail::cuda
