// Rows of any type and length as e4m3 codes with one scale per row. A row is read once and stays in the
// registers of a group of warps while its norm or activation and its largest magnitude are computed.
#include "backend/cuda/device/fp8.cuh"
#include "backend/cuda/device/gelu.cuh"
#include "backend/cuda/device/packs.cuh"
#include "backend/cuda/device/plugin_tables.cuh"
#include "backend/cuda/device/quantize.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kThreads = 128;  // of a block, or of the group of one long row
constexpr int kMostPacks = 4, kMostWarps = 16;
static_assert(kMostPacks * kMostWarps * 32 * 8 == kLongestFp8Row);

struct RowsArgs {
  int64_t rows;
  int width, warps;  // of a row; the number of warps is a power of two
  Elements x, norm_weight, bias;
  float eps;
  DType as;
  Fp8Matrix out;
};

// Combines values over the warps of a row, in the same order every time; the whole block takes part.
template <typename T, typename Join>
__device__ T join_row(T value, int warps, Join join) {
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) value = join(value, __shfl_xor_sync(~0u, value, apart));
  if (warps == 1) return value;
  __shared__ T parts[kMostWarps];
  const int warp = static_cast<int>(threadIdx.x) / 32, first = warp / warps * warps;
  __syncthreads();  // the parts of an earlier join have been read
  if (threadIdx.x % 32 == 0) parts[warp] = value;
  __syncthreads();
  value = parts[first];
  for (int w = 1; w < warps; ++w) value = join(value, parts[first + w]);
  return value;
}

// The part of a row that a thread holds: packs of eight elements, `threads` packs apart.
template <int kPacks>
struct Held {
  float v[kPacks][8];
  int lane, threads, width, warps;

  __device__ int column(int pack) const { return (pack * threads + lane) * 8; }
  template <typename Body>
  __device__ void each(Body&& body) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (column(p) < width) body(p);
  }
  // The sum of f(value) over the row.
  template <typename F>
  __device__ float sum(F&& f) {
    float total = 0;
    each([&](int p) {
#pragma unroll
      for (int e = 0; e < 8; ++e) total += f(v[p][e]);
    });
    return join_row(total, warps, [](float a, float b) { return a + b; });
  }
};

__device__ inline void get_row_values(const Elements& from, int column, float (&v)[8]) {
  unpack(fetch(from, column), from.dtype, v);
}

// The ops that may be fused before the rounding of a row.
struct Keep {
  template <typename Row>
  __device__ static void apply(const RowsArgs&, Row&) {}
};
struct Normalise {
  template <typename Row>
  __device__ static void apply(const RowsArgs& p, Row& row) {
    const float share = 1.0f / static_cast<float>(p.width);
    const float mean = row.sum([](float x) { return x; }) * share;
    const float inverse =
        rsqrtf(row.sum([mean](float x) { return (x - mean) * (x - mean); }) * share + p.eps);
    row.each([&](int pack) {
      float w[8], b[8];
      get_row_values(p.norm_weight, row.column(pack), w);
      get_row_values(p.bias, row.column(pack), b);
#pragma unroll
      for (int e = 0; e < 8; ++e) row.v[pack][e] = fmaf((row.v[pack][e] - mean) * inverse, w[e], b[e]);
    });
  }
};
template <typename F>
struct Activate {
  template <typename Row>
  __device__ static void apply(const RowsArgs& p, Row& row) {
    row.each([&](int pack) {
      float b[8] = {};
      if (p.bias.data) get_row_values(p.bias, row.column(pack), b);
#pragma unroll
      for (int e = 0; e < 8; ++e) row.v[pack][e] = F{}(row.v[pack][e] + b[e]);
    });
  }
};

template <typename Before, int kPacks>
__global__ void __launch_bounds__(kMostWarps * 32) rows_kernel(const __grid_constant__ RowsArgs p) {
  const int threads = p.warps * 32;
  const int64_t index = static_cast<int64_t>(blockIdx.x) * (blockDim.x / threads) + threadIdx.x / threads;
  const bool here = index < p.rows;
  Held<kPacks> row{{}, static_cast<int>(threadIdx.x) % threads, threads, p.width, p.warps};
  if (here) {
    Pack packs[kPacks];
    row.each([&](int pack) { packs[pack] = fetch(p.x, index * p.width + row.column(pack)); });
    row.each([&](int pack) { unpack(packs[pack], p.x.dtype, row.v[pack]); });
  }
  Before::apply(p, row);
  uint32_t top = 0;
  row.each([&](int pack) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      row.v[pack][e] = rounded_to(p.as, row.v[pack][e]);
      top = max(top, magnitude_bits(row.v[pack][e]));
    }
  });
  const Fp8Scale scale(join_row(top, p.warps, [](uint32_t a, uint32_t b) { return max(a, b); }));
  const float squares = p.out.norms ? row.sum([](float x) { return x * x; }) : 0.0f;
  if (!here) return;
  if (p.out.norms && row.lane == 0) p.out.norms[index] = sqrtf(squares);
  if (row.lane == 0) p.out.scales[index] = scale.scale;
  row.each([&](int pack) {
#pragma unroll
    for (int e = 0; e < 8; ++e) row.v[pack][e] = __fmul_rn(row.v[pack][e], scale.inverse);
    *reinterpret_cast<uint2*>(p.out.codes + index * p.width + row.column(pack)) = fp8_codes(row.v[pack]);
  });
}

using RowsKernel = void (*)(RowsArgs);

template <typename Before>
RowsKernel kernel_of(int64_t packs) {
  constexpr RowsKernel kKernels[] = {rows_kernel<Before, 1>, rows_kernel<Before, 2>, rows_kernel<Before, 3>,
                                     rows_kernel<Before, 4>};
  return kKernels[packs - 1];
}

RowsKernel kernel_for(const Fp8RowsCall& call, int64_t packs) {
  if (call.norm_weight.data) return kernel_of<Normalise>(packs);
  if (call.act == Activation::kGeluTanh) return kernel_of<Activate<GeluTanh>>(packs);
  if (call.act == Activation::kGeluErf && call.as == DType::kF32) return kernel_of<Activate<GeluErf>>(packs);
  if (call.act == Activation::kGeluErf) return kernel_of<Activate<GeluShort>>(packs);
  return kernel_of<Keep>(packs);
}

}  // namespace

void quantize_rows(Session& session, const Fp8RowsCall& call) {
  VT_CHECK(call.width % 16 == 0 && call.width > 0 && call.width <= kLongestFp8Row,
           "a row of %lld elements in fp8", static_cast<long long>(call.width));
  if (call.rows == 0 || quantize_rows_by_warps(session, call)) return;
  int warps = 1;
  while (warps * 32 * kMostPacks * 8 < call.width) warps *= 2;
  const int threads = warps * 32 > kThreads ? warps * 32 : kThreads;
  const int64_t packs = (call.width / 8 + warps * 32 - 1) / (warps * 32);
  const RowsArgs args{.rows = call.rows,
                      .width = static_cast<int>(call.width),
                      .warps = warps,
                      .x = call.x,
                      .norm_weight = call.norm_weight,
                      .bias = call.bias,
                      .eps = call.eps,
                      .as = call.as,
                      .out = call.out};
  kernel_for(call,
             packs)<<<blocks_for(call.rows, threads / (warps * 32)), threads, 0, session.stream>>>(args);
  check_launch("rounding rows to fp8");
}

Fp8Api fp8_api() {
  return {.quantize_rows = quantize_rows, .find_tops = find_tops, .quantize_columns = quantize_columns};
}

}  // namespace vitrail::cuda
