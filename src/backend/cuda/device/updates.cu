// Optimizer updates in one pass over the parameters: sgd, adam and lion. Each leaves zero in the gradient
// sums; a skipped step changes nothing else.
#include "backend/cuda/device/updates.cuh"

#include "backend/cuda/device/families.cuh"
#include "backend/cuda/device/update_rates.cuh"

namespace vitrail::cuda {

namespace {

// A rule renews the states it has, m and v, and gives the direction.
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

template <typename Rule>
__global__ void __launch_bounds__(kSegmentThreads) update_kernel(const __grid_constant__ UpdateCall call) {
  const UpdateSegment& s = block_segment(call.segments);
  const UpdateRates rates = block_rates(call, s, Rule::kCorrects);
  if (rates.skip) return clear_sums(s);
  const bool has_m = s.m.data != nullptr;  // without, sgd's zero momentum gives the gradient itself
  each_group(s, [&](int64_t i, int n) {
    Group w = read_group(s.param, i, n), g = read_group(s.sum, i, n), m{}, v{};
    if (has_m) m = read_group(s.m, i, n);
    if constexpr (Rule::kHasV) v = read_group(s.v, i, n);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) g[j] = fmaf(w[j], rates.coupled, g[j] * rates.factor);
    const Group direction = Rule::direction(call.rule, rates, g, m, v);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) w[j] -= fmaf(direction[j], rates.lr, w[j] * rates.shrink);
    write_group(s.param, i, n, w);
    write_group(s.sum, i, n, Group{});
    if (has_m) write_group(s.m, i, n, m);
    if constexpr (Rule::kHasV) write_group(s.v, i, n, v);
  });
}

template <typename Rule>
void update(Session& session, const UpdateCall& call) {
  launch_segments(session, update_kernel<Rule>, call, "update");
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
          .lamb = run_lamb};
}

}  // namespace vitrail::cuda
