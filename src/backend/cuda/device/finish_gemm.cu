// One pass over the sums of a GEMM for what its epilogue could not do: bias, gelu, scale and residual, or the
// gradient of a gelu. It also converts a bias to another type.
#include <algorithm>

#include "backend/cuda/device/gelu.cuh"
#include "backend/cuda/device/gemms.cuh"
#include "backend/cuda/device/launch.cuh"
#include "backend/cuda/device/packs.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kAhead = 4;  // chunks a thread loads before it computes

// A chunk is eight elements where rows are whole chunks, else one element.
struct FinishArgs {
  Elements gemm, out, bias, scale, residual, slope_at;
  int64_t first;            // the chunk that the launch starts at, the start of a row
  uint32_t chunks, across;  // of this launch; of a row
  uint32_t turn;            // from a thread's chunk to its next one, within a row: kThreads % across

  __device__ uint32_t next(uint32_t column) const {
    return column + turn < across ? column + turn : column + turn - across;
  }
  // Fixes all types to bf16 at compile time, the most common case.
  __device__ void all_bf16() {
    gemm.dtype = out.dtype = bias.dtype = scale.dtype = residual.dtype = slope_at.dtype = DType::kBF16;
  }
};

// The functions that may stand between bias and scale.
struct Keep {
  static constexpr bool kSlope = false;
  __device__ float operator()(float x, float) const { return x; }
};
template <typename F>
struct Act {
  static constexpr bool kSlope = false;
  __device__ float operator()(float x, float) const { return F{}(x); }
};
template <typename F>
struct Slope {
  static constexpr bool kSlope = true;
  __device__ float operator()(float dy, float x) const { return F{}(x, dy); }
};

struct KeptSlope {
  static constexpr bool kSlope = true;
  __device__ float operator()(float dy, float slope) const { return slope * dy; }
};

// Elements in the type they have in memory: all are loaded first and converted to floats later.
template <int kWide>
struct Raw {
  Pack pack;
  __device__ void ask(const Elements& from, int64_t i) { pack = fetch(from, i); }
  __device__ void give(const Elements& from, float (&v)[8]) const { unpack(pack, from.dtype, v); }
};
template <>
struct Raw<1> {
  float value;
  __device__ void ask(const Elements& from, int64_t i) { value = from.get(i); }
  __device__ void give(const Elements&, float (&v)[1]) const { v[0] = value; }
};

// The inputs of a chunk; a bias is the same for every row.
template <int kWide>
struct Inputs {
  Raw<kWide> gemm, slope_at, residual, bias;
};

template <int kWide, typename F>
__device__ void finish_chunk(const FinishArgs& p, uint32_t chunk, uint32_t column, const Inputs<kWide>& in) {
  float v[kWide], other[kWide] = {};
  in.gemm.give(p.gemm, v);
  if (p.bias.data) {
    in.bias.give(p.bias, other);
    for (int i = 0; i < kWide; ++i) v[i] += other[i];
  }
  if constexpr (F::kSlope) in.slope_at.give(p.slope_at, other);
#pragma unroll
  for (int i = 0; i < kWide; ++i) v[i] = F{}(v[i], other[i]);
  if (p.scale.data) {
    Raw<kWide> scale;
    scale.ask(p.scale, static_cast<int64_t>(column) * kWide);
    scale.give(p.scale, other);
    for (int i = 0; i < kWide; ++i) v[i] *= other[i];
  }
  if (p.residual.data) {
    in.residual.give(p.residual, other);
    for (int i = 0; i < kWide; ++i) v[i] += other[i];
  }
  const int64_t at = (p.first + chunk) * kWide;
  if constexpr (kWide == 8)
    p.out.put8(at, v);
  else
    p.out.put(at, v[0]);
}

template <int kWide, typename F, bool kBf16>
__global__ void __launch_bounds__(kThreads) finish_kernel(FinishArgs p) {
  if constexpr (kBf16) p.all_bf16();
  const uint32_t first = blockIdx.x * (kThreads * kAhead) + threadIdx.x;
  const uint32_t start = first % p.across;
  Inputs<kWide> in[kAhead];
  uint32_t column = start;
  await_launches();
#pragma unroll
  for (int i = 0; i < kAhead; ++i, column = p.next(column)) {
    const uint32_t chunk = first + i * kThreads;
    if (chunk >= p.chunks) break;
    const int64_t at = (p.first + chunk) * kWide;
    in[i].gemm.ask(p.gemm, at);
    if constexpr (F::kSlope) in[i].slope_at.ask(p.slope_at, at);
    if (p.residual.data) in[i].residual.ask(p.residual, at);
    if (p.bias.data) in[i].bias.ask(p.bias, static_cast<int64_t>(column) * kWide);
  }
  column = start;
#pragma unroll
  for (int i = 0; i < kAhead; ++i, column = p.next(column)) {
    const uint32_t chunk = first + i * kThreads;
    if (chunk < p.chunks) finish_chunk<kWide, F>(p, chunk, column, in[i]);
  }
}

using Finish = void (*)(FinishArgs);

template <int kWide, bool kBf16>
Finish kernel_for(const FinishCall& call) {
  const bool slope = call.slope_at.data != nullptr, full = call.out.dtype == DType::kF32;
  if (call.act == Activation::kGeluTanh)
    return slope ? finish_kernel<kWide, Slope<GeluTanhGrad>, kBf16>
                 : finish_kernel<kWide, Act<GeluTanh>, kBf16>;
  if (call.act == Activation::kGeluErf && full)
    return slope ? finish_kernel<kWide, Slope<GeluErfGrad>, kBf16>
                 : finish_kernel<kWide, Act<GeluErf>, kBf16>;
  if (call.act == Activation::kGeluErf)
    return slope ? finish_kernel<kWide, Slope<GeluShortGrad>, kBf16>
                 : finish_kernel<kWide, Act<GeluShort>, kBf16>;
  return slope ? finish_kernel<kWide, KeptSlope, kBf16> : finish_kernel<kWide, Keep, kBf16>;
}

bool all_bf16(const FinishCall& call) {
  for (const Operand& o : {call.gemm, call.out, call.bias, call.scale, call.residual, call.slope_at})
    if (o.data && o.dtype != DType::kBF16) return false;
  return true;
}

}  // namespace

void finish_gemm(Session& session, const FinishCall& call) {
  const bool whole = call.width % 8 == 0;
  const int64_t across = whole ? call.width / 8 : call.width, all = call.rows * across;
  constexpr int64_t kMost = int64_t{1} << 30;  // chunks of one launch, counted in 32 bits
  VT_CHECK(across > 0 && across <= kMost, "a row of %lld elements", static_cast<long long>(call.width));
  const Finish kernel = !whole           ? kernel_for<1, false>(call)
                        : all_bf16(call) ? kernel_for<8, true>(call)
                                         : kernel_for<8, false>(call);
  for (int64_t first = 0; first < all; first += kMost / across * across) {
    const int64_t chunks = std::min(all - first, kMost / across * across);
    const FinishArgs args{.gemm = call.gemm,
                          .out = call.out,
                          .bias = call.bias,
                          .scale = call.scale,
                          .residual = call.residual,
                          .slope_at = call.slope_at,
                          .first = first,
                          .chunks = static_cast<uint32_t>(chunks),
                          .across = static_cast<uint32_t>(across),
                          .turn = static_cast<uint32_t>(kThreads % across)};
    launch_early(session, "pass over a GEMM", kernel, {blocks_for(chunks, kThreads * kAhead), kThreads},
                 args);
  }
}

}  // namespace vitrail::cuda
