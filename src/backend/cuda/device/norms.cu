// Layernorm of rows, and of the q and k rows of packed qkv. Rows of up to 2048 elements stay in the registers
// of a warp, or of a few lanes of one, between the passes; others are read again.
#include "backend/cuda/device/norms.cuh"

#include "backend/cuda/device/families.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kThreads = 128;

struct Norm {
  RowPlaces rows;
  Elements x, y, weight[2], bias[2];
};

template <int kPacks>
constexpr int kRowsAtOnce = kPacks <= 4 ? 2 : 1;

// One row in registers to its normalised self; all lanes of the warp call it.
template <int kPacks>
__device__ void normalise(float (&v)[kPacks][8], const RowLanes<kPacks>& at, float eps) {
  float sum = 0, squares = 0;
  at.each([&](int p) {
#pragma unroll
    for (int e = 0; e < 8; ++e) sum += v[p][e];
  });
  const float mean = at.sum(sum) / at.width;
  at.each([&](int p) {
#pragma unroll
    for (int e = 0; e < 8; ++e) v[p][e] -= mean, squares += v[p][e] * v[p][e];
  });
  const float inverse = rsqrtf(at.sum(squares) / at.width + eps);
  at.each([&](int p) {
#pragma unroll
    for (int e = 0; e < 8; ++e) v[p][e] *= inverse;
  });
}

template <int kPacks>
__global__ void __launch_bounds__(kThreads) norm_in_registers(const __grid_constant__ Norm n, int lanes) {
  constexpr int kRows = kRowsAtOnce<kPacks>;
  const RowLanes<kPacks> at(lanes, n.rows.width);
  const int part = blockIdx.y;
  const int64_t first = at.group(kThreads) * kRows;
  int64_t start[kRows];
  Pack packs[kRows][kPacks];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    start[r] = first + r < n.rows.rows ? n.rows.start(first + r, part) : -1;
    if (start[r] >= 0) at.each([&](int p) { packs[r][p] = fetch(n.x, start[r] + at.column(p)); });
  }
  float v[kRows][kPacks][8] = {};
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (start[r] >= 0) at.each([&](int p) { unpack(packs[r][p], n.x.dtype, v[r][p]); });
    if (part < 2) normalise<kPacks>(v[r], at, n.rows.eps);
  }
  const Elements weight = n.weight[part == 1], bias = n.bias[part == 1];
  at.each([&](int p) {
    float w[8], b[8];
    unpack(fetch(weight, at.column(p)), weight.dtype, w);
    unpack(fetch(bias, at.column(p)), bias.dtype, b);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (start[r] < 0) continue;
      if (part < 2)
#pragma unroll
        for (int e = 0; e < 8; ++e) v[r][p][e] = fmaf(v[r][p][e], w[e], b[e]);
      n.y.put8(start[r] + at.column(p), v[r][p]);
    }
  });
}

// A block a row, any width.
constexpr int kBlock = 256;
__global__ void __launch_bounds__(kBlock) norm_by_block(const __grid_constant__ Norm n) {
  const int part = blockIdx.y;
  const int64_t start = n.rows.start(blockIdx.x, part), width = n.rows.width;
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
void launch_in_registers(Session& session, const Norm& norm, int parts) {
  const int lanes = lanes_for<kPacks>(norm.rows.width);
  const dim3 blocks(blocks_for(norm.rows.rows, kThreads / lanes * kRowsAtOnce<kPacks>), parts);
  norm_in_registers<kPacks><<<blocks, kThreads, 0, session.stream>>>(norm, lanes);
}

void norm(Session& session, const NormCall& call) {
  const Norm n{.rows = RowPlaces(call.rows),
               .x = call.x,
               .y = call.y,
               .weight = {call.weight[0], call.weight[1]},
               .bias = {call.bias[0], call.bias[1]}};
  const int64_t width = call.rows.width;
  const int parts = call.rows.parts();
  if (width % 8 != 0 || width > 2048)
    norm_by_block<<<dim3(static_cast<unsigned>(n.rows.rows), parts), kBlock, 0, session.stream>>>(n);
  else
    with_packs<1, 2, 3, 4, 5, 6, 8>(width,
                                    [&](auto packs) { launch_in_registers<packs>(session, n, parts); });
  check_launch("norm");
}

}  // namespace

NormsApi norms_api() {
  return {.norm = norm, .norm_grad = norm_grad, .softmax = softmax, .softmax_grad = softmax_grad};
}

}  // namespace vitrail::cuda
