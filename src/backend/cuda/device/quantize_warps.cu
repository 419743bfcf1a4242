// Rows of bf16 as e4m3 codes with one scale per row, one warp per row: its elements stay in registers as
// bf16, and the values that a norm or bias has for each column are staged in shared memory for all the rows
// of a block.
#include "backend/cuda/device/fp8.cuh"
#include "backend/cuda/device/gelu.cuh"
#include "backend/cuda/device/packs.cuh"
#include "backend/cuda/device/quantize.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;

struct WarpRows {
  int64_t rows;
  int chunks;  // chunks of eight elements in a row
  Elements x, norm_weight, bias;
  float eps;
  Fp8Matrix out;
};

// A staged vector with one f32 per column: the first halves of all chunks, then the second halves, so that
// the lanes of a warp read neighbouring 16 bytes.
struct Staged {
  float4* at;
  int chunks;

  __device__ Staged(float4* shared, int index, int row_chunks)
      : at(shared + index * 2 * row_chunks), chunks(row_chunks) {}
  // The whole block fills the vector; without data it becomes zero.
  __device__ void fill(const Elements& from) const {
    for (int c = threadIdx.x; c < chunks; c += kThreads) {
      float v[8] = {};
      if (from.data) unpack(fetch(from, c * 8), from.dtype, v);
      at[c] = make_float4(v[0], v[1], v[2], v[3]);
      at[chunks + c] = make_float4(v[4], v[5], v[6], v[7]);
    }
  }
  __device__ void get(int chunk, float (&v)[8]) const {
    const float4 a = at[chunk], b = at[chunks + chunk];
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
  }
};

// The part of a row that a lane holds: kPacks chunks, 32 apart; all but the last are whole over the warp.
template <int kPacks>
struct Held {
  uint4 words[kPacks];

  template <typename Body>
  __device__ static void each(int chunks, Body&& body) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (p + 1 < kPacks || p * 32 + lane < chunks) body(p, p * 32 + lane);
  }
  __device__ void load(const WarpRows& p, int64_t row) {
    const uint4* from = static_cast<const uint4*>(p.x.data) + row * p.chunks;
    each(p.chunks, [&](int pack, int chunk) { words[pack] = from[chunk]; });
  }
  __device__ void get(int pack, float (&v)[8]) const {
    unpack({words[pack], {}}, DType::kBF16, v);
  }
  __device__ void put(int pack, const float (&v)[8]) {
    uint32_t pairs[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(v[2 * w], v[2 * w + 1]);
      pairs[w] = reinterpret_cast<const uint32_t&>(pair);
    }
    words[pack] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
  // The sum of f(value) over the row.
  template <typename F>
  __device__ float sum(int chunks, F&& f) const {
    float total = 0;
    each(chunks, [&](int pack, int) {
      float v[8];
      get(pack, v);
#pragma unroll
      for (int e = 0; e < 8; ++e) total += f(v[e]);
    });
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) total += __shfl_xor_sync(~0u, total, apart);
    return total;
  }
  // The bits of the largest magnitude as f32, found two elements at a time; NaN counts as the largest.
  __device__ uint32_t top(int chunks) const {
    uint32_t largest = 0;
    each(chunks, [&](int pack, int) {
      for (uint32_t pair : {words[pack].x, words[pack].y, words[pack].z, words[pack].w}) {
        pair &= 0x7FFF7FFFu;
        const __nv_bfloat162 both = __hmax2_nan(reinterpret_cast<const __nv_bfloat162&>(largest),
                                                reinterpret_cast<const __nv_bfloat162&>(pair));
        largest = reinterpret_cast<const uint32_t&>(both);
      }
    });
    return __reduce_max_sync(~0u, max(largest << 16, largest & 0xFFFF0000u));
  }
};

// The ops that may be fused before the rounding of a row, with the vectors they have staged.
struct Keep {
  static constexpr int kVectors = 0;
  template <typename Row>
  __device__ static void apply(const WarpRows&, float4*, Row&) {}
};
struct Normalise {
  static constexpr int kVectors = 2;
  __device__ static void stage(const WarpRows& p, float4* shared) {
    Staged(shared, 0, p.chunks).fill(p.norm_weight);
    Staged(shared, 1, p.chunks).fill(p.bias);
  }
  template <typename Row>
  __device__ static void apply(const WarpRows& p, float4* shared, Row& row) {
    const float share = 1.0f / static_cast<float>(p.chunks * 8);
    const float mean = row.sum(p.chunks, [](float x) { return x; }) * share;
    const float squares = row.sum(p.chunks, [mean](float x) { return (x - mean) * (x - mean); });
    const float inverse = rsqrtf(squares * share + p.eps);
    Row::each(p.chunks, [&](int pack, int chunk) {
      float v[8], w[8], b[8];
      Staged(shared, 0, p.chunks).get(chunk, w);
      Staged(shared, 1, p.chunks).get(chunk, b);
      row.get(pack, v);
#pragma unroll
      for (int e = 0; e < 8; ++e) v[e] = fmaf((v[e] - mean) * inverse, w[e], b[e]);
      row.put(pack, v);
    });
  }
};
template <typename F>
struct Activate {
  static constexpr int kVectors = 1;
  __device__ static void stage(const WarpRows& p, float4* shared) {
    Staged(shared, 0, p.chunks).fill(p.bias);
  }
  template <typename Row>
  __device__ static void apply(const WarpRows& p, float4* shared, Row& row) {
    Row::each(p.chunks, [&](int pack, int chunk) {
      float v[8], b[8];
      Staged(shared, 0, p.chunks).get(chunk, b);
      row.get(pack, v);
#pragma unroll
      for (int e = 0; e < 8; ++e) v[e] = F{}(v[e] + b[e]);
      row.put(pack, v);
    });
  }
};

template <int kPacks>
__device__ void write_codes(const WarpRows& p, int64_t row, const Held<kPacks>& held) {
  const Fp8Scale scale(held.top(p.chunks));
  if (threadIdx.x % 32 == 0) p.out.scales[row] = scale.scale;
  if (p.out.norms) {
    const float squares = held.sum(p.chunks, [](float x) { return x * x; });
    if (threadIdx.x % 32 == 0) p.out.norms[row] = sqrtf(squares);
  }
  uint2* codes = reinterpret_cast<uint2*>(p.out.codes) + row * p.chunks;
  Held<kPacks>::each(p.chunks, [&](int pack, int chunk) {
    float v[8];
    held.get(pack, v);
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = __fmul_rn(v[e], scale.inverse);
    codes[chunk] = fp8_codes(v);
  });
}

// The blocks of a multiprocessor: a lane holds four registers per pack, twice as many where it prefetches,
// and three times as many with a norm.
template <typename Before, int kPacks>
constexpr int kAtOnce = kPacks <= 3                            ? 8
                        : Before::kVectors == 2 || kPacks > 12 ? 4
                        : kPacks > 9                           ? 5
                                                               : 6;

// With short rows the registers suffice to prefetch the next row before this one is computed.
template <typename Before, int kPacks>
__global__ void __launch_bounds__(kThreads, kAtOnce<Before, kPacks>)
    rows_of_warps(const __grid_constant__ WarpRows p) {
  constexpr bool kAhead = kPacks <= 4;
  extern __shared__ float4 shared[];
  const int64_t apart = static_cast<int64_t>(gridDim.x) * kWarps;
  int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  Held<kPacks> held, next;
  if (kAhead && row < p.rows) next.load(p, row);
  if constexpr (Before::kVectors > 0) {
    Before::stage(p, shared);
    __syncthreads();
  }
#pragma unroll 1
  for (; row < p.rows; row += apart) {
    if constexpr (kAhead) {
      held = next;
      if (row + apart < p.rows) next.load(p, row + apart);
    } else {
      held.load(p, row);
    }
    Before::apply(p, shared, held);
    write_codes(p, row, held);
  }
}

// Launches as many blocks as the GPU runs at once (a persistent grid): each block computes rows until there
// are no more.
template <typename Before, int kPacks>
void launch(Session& session, const WarpRows& args) {
  const auto kernel = rows_of_warps<Before, kPacks>;
  const size_t shared = static_cast<size_t>(args.chunks) * 32 * Before::kVectors;
  int at_once = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, kernel, kThreads, shared), "rows to fp8");
  const int64_t most = int64_t{session.processors} * at_once, wanted = (args.rows + kWarps - 1) / kWarps;
  kernel<<<static_cast<unsigned>(wanted < most ? wanted : most), kThreads, shared, session.stream>>>(args);
  check_launch("rounding rows to fp8");
}

// Launches the kernel of exactly so many packs per lane; returns false where there is none.
template <typename Before, int... kPacks>
bool launch_packs(Session& session, const WarpRows& args) {
  const int packs = (args.chunks + 31) / 32;
  return ((packs == kPacks && (launch<Before, kPacks>(session, args), true)) || ...);
}
template <typename Before>
bool launch_long_too(Session& session, const WarpRows& args) {
  return launch_packs<Before, 1, 2, 3, 4, 5, 6, 8, 9, 12, 16>(session, args);
}

}  // namespace

bool quantize_rows_by_warps(Session& session, const Fp8RowsCall& call) {
  if (call.x.dtype != DType::kBF16 || call.as != DType::kBF16) return false;
  const WarpRows args{.rows = call.rows,
                      .chunks = static_cast<int>(call.width / 8),
                      .x = call.x,
                      .norm_weight = call.norm_weight,
                      .bias = call.bias,
                      .eps = call.eps,
                      .out = call.out};
  if (call.norm_weight.data) return launch_packs<Normalise, 1, 2, 3, 4, 5, 6, 8>(session, args);
  if (call.act == Activation::kGeluTanh) return launch_long_too<Activate<GeluTanh>>(session, args);
  if (call.act == Activation::kGeluErf) return launch_long_too<Activate<GeluShort>>(session, args);
  return launch_long_too<Keep>(session, args);
}

}  // namespace vitrail::cuda
