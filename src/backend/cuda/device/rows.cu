// Elementwise ops: a thread computes eight elements per step, with two steps in flight.
#include "backend/cuda/device/rows.cuh"

#include "backend/cuda/device/activate.cuh"
#include "backend/cuda/device/columns.cuh"
#include "backend/cuda/device/gelu.cuh"
#include "backend/cuda/device/launch.cuh"
#include "backend/cuda/device/plugin_tables.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kThreads = 256, kFlight = 2;

template <typename Value>
__global__ void __launch_bounds__(kThreads) map_elements(Value value, Elements y, int64_t count) {
  const int64_t whole = count / 8 * 8, step = 8 * kThreads;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kFlight * step + 8 * threadIdx.x;
  typename Value::Raw raw[kFlight];
  await_launches();
#pragma unroll
  for (int u = 0; u < kFlight; ++u)
    if (first + u * step < whole) raw[u] = value.fetch(first + u * step);
#pragma unroll
  for (int u = 0; u < kFlight; ++u) {
    const int64_t i = first + u * step;
    if (i >= whole) break;
    float v[8];
    value.eight(raw[u], i, v);
    y.put8(i, v);
  }
  if (blockIdx.x == 0 && whole + threadIdx.x < count)
    y.put(whole + threadIdx.x, value.one(whole + threadIdx.x));
}

template <typename Value>
void launch_map(Session& session, const Value& value, const MapCall& call) {
  const unsigned blocks = blocks_for(call.count, 8 * kThreads * kFlight);
  launch_early(session, "map_elements", map_elements<Value>, {blocks, kThreads}, value, Elements(call.y),
               call.count);
}

template <typename F>
void map_one(Session& session, const MapCall& call, F f) {
  launch_map(session, MapOne<F>{call.a, f}, call);
}
template <typename F>
void map_two(Session& session, const MapCall& call, F f) {
  launch_map(session, MapTwo<F>{call.a, call.b, call.period, f}, call);
}

// Writes the elements and, where wanted, also sums them over rows.
template <typename F>
void map_and_sum(Session& session, const MapCall& call, F f) {
  const MapTwo<F> value{call.a, call.b, call.period, f};
  if (call.sums.target.data)
    launch_column_sums(session, value, call.y, call.sums);
  else
    launch_map(session, value, call);
}

struct Tanh {
  __device__ float operator()(float x) const { return tanhf(x); }
};
struct TanhGrad {
  __device__ float operator()(float y, float dy) const { return dy * (1.0f - y * y); }
};
template <typename Grad>
struct SlopeOf {
  __device__ float operator()(float x) const { return Grad{}(x, 1.0f); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Average {
  __device__ float operator()(float a, float b) const { return 0.5f * (a + b); }
};
struct Times {
  float factor;
  __device__ float operator()(float x) const { return x * factor; }
};
struct TimesFirst {
  Elements factor;
  __device__ float operator()(float x) const {
    if (factor.dtype == DType::kF64) return x * static_cast<float>(*static_cast<const double*>(factor.data));
    return x * factor.get(0);
  }
};

void map(Session& session, MapKind kind, const MapCall& call) {
  const bool full = call.y.dtype == DType::kF32;
  switch (kind) {
    case MapKind::kCopy:
      return map_one(session, call, Same{});
    case MapKind::kGeluErf:
      return full ? map_one(session, call, GeluErf{}) : map_one(session, call, GeluShort{});
    case MapKind::kGeluTanh:
      return map_one(session, call, GeluTanh{});
    case MapKind::kGeluErfSlope:
      return full ? map_one(session, call, SlopeOf<GeluErfGrad>{})
                  : map_one(session, call, SlopeOf<GeluShortGrad>{});
    case MapKind::kGeluTanhSlope:
      return map_one(session, call, SlopeOf<GeluTanhGrad>{});
    case MapKind::kTanh:
      return map_one(session, call, Tanh{});
    case MapKind::kActivate:
      return map_one(session, call, Activate{call.act});
    case MapKind::kActivateGrad:
      return map_two(session, call, ActivateGrad{call.act});
    case MapKind::kMultiply:
      return map_one(session, call, Times{call.factor});
    case MapKind::kScaleBy:
      return map_one(session, call, TimesFirst{call.b});
    case MapKind::kAdd:
      return map_two(session, call, Sum{});
    case MapKind::kAverage:
      return map_two(session, call, Average{});
    case MapKind::kProduct:
      return map_and_sum(session, call, Product{});
    case MapKind::kGeluErfGrad:
      return full ? map_and_sum(session, call, GeluErfGrad{}) : map_and_sum(session, call, GeluShortGrad{});
    case MapKind::kGeluTanhGrad:
      return map_and_sum(session, call, GeluTanhGrad{});
    case MapKind::kTanhGrad:
      return map_two(session, call, TanhGrad{});
  }
}

}  // namespace

RowsApi rows_api() {
  return {.map = map, .sum = sum, .dropout = dropout};
}

}  // namespace vitrail::cuda
