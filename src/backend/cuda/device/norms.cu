// Layernorm of rows, and of the q and k rows of packed qkv. Rows of up to 2048 elements stay in the registers
// of a warp, or of a few of its lanes, between the passes; longer ones are read again.
#include "backend/cuda/device/norms.cuh"

#include "backend/cuda/device/launch.cuh"
#include "backend/cuda/device/plugin_tables.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kNormThreads = 128;
constexpr int64_t kFewRows = 4096;

struct Norm {
  RowPlaces rows;
  Elements x, y, weight[2], bias[2];
};

template <int kPacks>
constexpr int kRowsAtOnce = kPacks <= 4 ? 2 : 1;

struct Moments {
  float mean, inverse;
};

// The moments of rows in registers; all lanes of the warp call it.
template <int kRows, int kPacks, typename Lanes>
__device__ void find_moments(const Pack (&packs)[kRows][kPacks], DType dtype, const Lanes& at, float eps,
                             Moments (&moments)[kRows]) {
  const float share = 1.0f / at.width;
  float sum[kRows] = {}, squares[kRows] = {}, v[8];
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    at.each([&](int p) {
      unpack(packs[r][p], dtype, v);
#pragma unroll
      for (int e = 0; e < 8; ++e) sum[r] += v[e];
    });
  at.sum(sum);
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    at.each([&](int p) {
      unpack(packs[r][p], dtype, v);
#pragma unroll
      for (int e = 0; e < 8; ++e) squares[r] += (v[e] - sum[r] * share) * (v[e] - sum[r] * share);
    });
  at.sum(squares);
#pragma unroll
  for (int r = 0; r < kRows; ++r) moments[r] = {sum[r] * share, rsqrtf(squares[r] * share + eps)};
}

// With kEarly weight and bias are loaded before the launch before this one is done, and the GEMM after it
// starts to load its weights then, too.
template <int kPacks, RowTypes kTypes, bool kEarly = false>
__global__ void __launch_bounds__(kNormThreads) norm_in_registers(const __grid_constant__ Norm n, int lanes) {
  constexpr int kRows = kRowsAtOnce<kPacks>;
  const RowLanes<kPacks, kTypes != RowTypes::kAny> at(lanes, n.rows.width);
  Elements x = n.x, y = n.y;
  if constexpr (kTypes != RowTypes::kAny) x.dtype = stream_type(kTypes), y.dtype = DType::kBF16;
  const int part = blockIdx.y;
  const int64_t first = at.group(kNormThreads) * kRows;
  int64_t start[kRows];
  Pack packs[kRows][kPacks] = {}, early[kEarly ? 2 : 1][kEarly ? kPacks : 1];
  const Elements weight = n.weight[part == 1], bias = n.bias[part == 1];
  if constexpr (kEarly) {
    let_next_start();
    at.each([&](int p) {
      early[0][p] = fetch(weight, at.column(p));
      early[1][p] = fetch(bias, at.column(p));
    });
  }
  await_launches();
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    start[r] = first + r < n.rows.rows ? n.rows.start(first + r, part) : -1;
    if (start[r] >= 0) at.each([&](int p) { packs[r][p] = fetch(x, start[r] + at.column(p)); });
  }
  Moments moments[kRows];
  if (part < 2) find_moments(packs, x.dtype, at, n.rows.eps, moments);
  at.each([&](int p) {
    float w[8], b[8], v[8];
    if constexpr (kEarly) {
      unpack(early[0][p], weight.dtype, w);
      unpack(early[1][p], bias.dtype, b);
    } else {
      unpack(fetch(weight, at.column(p)), weight.dtype, w);
      unpack(fetch(bias, at.column(p)), bias.dtype, b);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (start[r] < 0) continue;
      unpack(packs[r][p], x.dtype, v);
      if (part < 2)
#pragma unroll
        for (int e = 0; e < 8; ++e) v[e] = fmaf((v[e] - moments[r].mean) * moments[r].inverse, w[e], b[e]);
      y.put8(start[r] + at.column(p), v);
    }
  });
}

// Layernorm of rows of any width, one block per row.
constexpr int kBlock = 256;
__global__ void __launch_bounds__(kBlock) norm_by_block(const __grid_constant__ Norm n) {
  const int part = blockIdx.y;
  const int64_t start = n.rows.start(blockIdx.x, part), width = n.rows.width;
  await_launches();
  float mean = 0, inverse = 1;
  if (part < 2) {
    const RowMoments moments = row_moments<kBlock>(n.x, start, width, n.rows.eps);
    mean = moments.mean, inverse = moments.inverse;
  }
  for (int64_t i = threadIdx.x; i < width; i += kBlock) {
    const float value = (n.x.get(start + i) - mean) * inverse;
    n.y.put(start + i, part < 2 ? value * n.weight[part].get(i) + n.bias[part].get(i) : value);
  }
}

template <int kPacks>
void launch_in_registers(Session& session, const Norm& norm, int parts, bool early) {
  const int lanes = lanes_for<kPacks>(norm.rows.width);
  const dim3 blocks(blocks_for(norm.rows.rows, kNormThreads / lanes * kRowsAtOnce<kPacks>), parts);
  const RowTypes types = row_types<kPacks>(norm.rows.width, {norm.x}, {norm.y});
  const auto kernel = types == RowTypes::kAny    ? norm_in_registers<kPacks, RowTypes::kAny>
                      : types == RowTypes::kWide ? norm_in_registers<kPacks, RowTypes::kWide>
                      : early                    ? norm_in_registers<kPacks, RowTypes::kNarrow, true>
                                                 : norm_in_registers<kPacks, RowTypes::kNarrow>;
  launch_early(session, "norm", kernel, {blocks, kNormThreads}, norm, lanes);
}

void norm(Session& session, const NormCall& call) {
  const Norm n{.rows = RowPlaces(call.rows),
               .x = call.x,
               .y = call.y,
               .weight = {call.weight[0], call.weight[1]},
               .bias = {call.bias[0], call.bias[1]}};
  const int64_t width = call.rows.width;
  const int parts = call.rows.parts();
  // With more rows the registers it takes cost more than the latency it hides.
  const bool early = call.early && n.rows.rows <= kFewRows;
  if (width % 8 != 0 || width > 2048)
    launch_early(session, "norm", norm_by_block, {dim3(static_cast<unsigned>(n.rows.rows), parts), kBlock},
                 n);
  else
    with_packs<1, 2, 3, 4, 5, 6, 8>(
        width, [&](auto packs) { launch_in_registers<packs>(session, n, parts, early); });
}

}  // namespace

NormsApi norms_api() {
  return {.norm = norm,
          .norm_grad = norm_grad,
          .rms = rms,
          .rms_grad = rms_grad,
          .softmax = softmax,
          .softmax_grad = softmax_grad};
}

}  // namespace vitrail::cuda
