// Gradients of the norms. Every block goes over its part of the rows, keeps sums over them (dweight, dbias,
// and of dx itself where wanted) in registers, and writes one row of partial sums; mean and variance are
// recomputed.
#include "backend/cuda/device/norm_grads.cuh"

#include <algorithm>

#include "backend/cuda/device/columns.cuh"

namespace vitrail::cuda {

namespace {

// A block's shared memory holds the weights and two rows of every operand for every group of lanes, and at
// the end the sums of every warp.
template <int kPacks, bool kMore, RowTypes kTypes>
__global__ void __launch_bounds__(GradShape<kPacks, kMore, kTypes>::kWarps * 32,
                                  GradShape<kPacks, kMore, kTypes>::kBlocks)
    grad_in_registers(const __grid_constant__ NormGrad g, int lanes, int stage_bytes) {
  using Lanes = GradLanes<kPacks, kTypes>;
  extern __shared__ __align__(16) char memory[];
  const int part = blockIdx.y;
  if (part == 2) return copy_rows(g, part);
  const Lanes at(lanes, g.rows.width);
  const StagedWeight<Lanes> weight{reinterpret_cast<float*>(memory), at.width};
  weight.fill(g.weight[part == 1]);
  const int groups = blockDim.x / at.lanes, group = threadIdx.x / at.lanes;
  const auto start_of = [&](int64_t row) { return row < g.rows.rows ? g.rows.start(row, part) : -1; };
  const auto stage = [&](int turn) {
    return Stage<kTypes, Lanes>(g, memory + at.width * sizeof(float) + (group * 2 + turn) * stage_bytes);
  };
  int64_t first = static_cast<int64_t>(blockIdx.x) * groups, start = start_of(first + group);
  if (start >= 0) stage(0).ask(g, at, start);
  __pipeline_commit();
  LaneSums<kPacks, kMore> sums;
  __syncthreads();  // the weights are there
  for (int turn = 0; first < g.rows.rows; turn ^= 1) {
    first += static_cast<int64_t>(gridDim.x) * groups;
    const int64_t next = start_of(first + group);
    __syncwarp();  // all lanes have read the row that is overwritten
    if (next >= 0) stage(turn ^ 1).ask(g, at, next);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncwarp();  // and all have waited for the copies of this one
    grad_row<kPacks, kMore, kTypes>(g, at, stage(turn), weight, start, sums);
    start = next;
  }
  if (g.partials) leave_partials<kPacks, kMore>(g, at, part, sums, reinterpret_cast<float*>(memory));
}

// The gradient of rows of any width: the sums are kept in the row of partials itself, each element by its own
// thread.
constexpr int kBlock = 256;
__global__ void __launch_bounds__(kBlock) grad_by_block(const __grid_constant__ NormGrad g) {
  const int part = blockIdx.y;
  if (part == 2) return copy_rows(g, part);
  const int64_t width = g.rows.width;
  const Elements weight = g.weight[part == 1];
  float* to = g.partials ? g.partial_row(part) : nullptr;
  float* columns = to + (g.trained ? 2 : 0) * width;
  for (int64_t row = blockIdx.x; row < g.rows.rows; row += gridDim.x) {
    const int64_t start = g.rows.start(row, part);
    const bool fresh = row == blockIdx.x;
    const RowMoments moments = row_moments<kBlock>(g.x, start, width, g.rows.eps);
    float mean_dn = 0, mean_dn_n = 0;
    for (int64_t i = threadIdx.x; i < width; i += kBlock) {
      const float n = (g.x.get(start + i) - moments.mean) * moments.inverse, dy = g.dy.get(start + i);
      mean_dn += dy * weight.get(i), mean_dn_n += dy * weight.get(i) * n;
      if (!g.trained) continue;
      to[i] = (fresh ? 0 : to[i]) + dy * n;
      to[width + i] = (fresh ? 0 : to[width + i]) + dy;
    }
    mean_dn = block_sum<kBlock>(mean_dn) / width, mean_dn_n = block_sum<kBlock>(mean_dn_n) / width;
    for (int64_t i = threadIdx.x; i < width; i += kBlock) {
      const float n = (g.x.get(start + i) - moments.mean) * moments.inverse;
      float dx = moments.inverse * (g.dy.get(start + i) * weight.get(i) - mean_dn - n * mean_dn_n);
      if (g.residual.data) dx += g.residual.get(start + i);
      g.dx.put(start + i, dx);
      if (g.copy.data) g.copy.put(start + i, dx);
      if (g.column_sums) columns[i] = (fresh ? 0 : columns[i]) + dx;
    }
  }
}

size_t bytes_a_row(const NormGrad& g) {
  size_t bytes = 0;
  for (const Elements& operand : {g.x, g.dy, g.residual})
    if (operand.data) bytes += static_cast<size_t>(g.rows.width) * size_of(operand.dtype);
  return bytes;
}

// Launches as many warps per block as shared memory allows; returns false when not even one fits.
template <int kPacks, bool kMore, RowTypes kTypes>
bool launch_in_registers(Session& session, const NormGrad& g, const dim3& blocks, size_t sums) {
  int most = 0;
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, session.ordinal),
        "shared memory");
  const int lanes = lanes_for<kPacks>(g.rows.width);
  const size_t stage = bytes_a_row(g), weights = static_cast<size_t>(g.rows.width) * sizeof(float);
  const size_t sums_a_warp = SumPlaces{lanes, sums}.all(kPacks) * sizeof(float);
  const auto shared = [&](int warps) {
    return std::max(warps * sums_a_warp, weights + static_cast<size_t>(warps * 32 / lanes) * 2 * stage);
  };
  int warps = GradShape<kPacks, kMore, kTypes>::kWarps;
  while (warps > 0 && shared(warps) > static_cast<size_t>(most)) warps /= 2;
  if (warps == 0) return false;
  const auto kernel = grad_in_registers<kPacks, kMore, kTypes>;
  if (shared(warps) > 48 * 1024) allow_shared(kernel, shared(warps), "norm_grad");
  kernel<<<blocks, warps * 32, shared(warps), session.stream>>>(g, lanes, static_cast<int>(stage));
  return true;
}

template <int kPacks>
bool launch_packs(Session& session, const NormGrad& g, const dim3& blocks, size_t sums) {
  if (!g.column_sums && !g.residual.data && !g.copy.data)
    return launch_in_registers<kPacks, false, RowTypes::kAny>(session, g, blocks, sums);
  const RowTypes types = row_types<kPacks>(g.rows.width, {g.x, g.dx, g.residual}, {g.dy, g.copy});
  if (types == RowTypes::kNarrow && !g.copy.data)
    return launch_in_registers<kPacks, true, RowTypes::kNarrow>(session, g, blocks, sums);
  if (types == RowTypes::kWide)
    return launch_in_registers<kPacks, true, RowTypes::kWide>(session, g, blocks, sums);
  return launch_in_registers<kPacks, true, RowTypes::kAny>(session, g, blocks, sums);
}

void finish(Session& session, const NormGradCall& call, int sums) {
  const int64_t part_length = call.blocks * sums * call.rows.width;
  for (int part = 0; part < (call.rows.heads > 0 ? 2 : 1); ++part) {
    Totals totals{.width = call.rows.width};
    totals.want(call.dweight[part]);
    totals.want(call.dbias[part]);
    totals.want(call.column_sums);
    finish_sums(session, call.partials + part * part_length, call.blocks, totals);
  }
}

}  // namespace

void norm_grad(Session& session, const NormGradCall& call) {
  const bool trained = call.dweight[0].data, columns = call.column_sums.data;
  const int sums = (trained ? 2 : 0) + (columns ? 1 : 0);
  const NormGrad g{.rows = RowPlaces(call.rows),
                   .x = call.x,
                   .dy = call.dy,
                   .dx = call.dx,
                   .copy = call.copy,
                   .residual = call.residual,
                   .weight = {call.weight[0], call.weight[1]},
                   .partials = sums > 0 ? call.partials : nullptr,
                   .trained = trained,
                   .column_sums = columns};
  const int64_t width = call.rows.width;
  const dim3 blocks(static_cast<unsigned>(call.blocks), call.rows.parts());
  bool launched = false;
  if (width % 8 == 0)
    with_packs<1, 2, 3, 4, 5, 6>(
        width, [&](auto packs) { launched = launch_packs<packs>(session, g, blocks, sums); });
  if (!launched) grad_by_block<<<blocks, kBlock, 0, session.stream>>>(g);
  check_launch("norm_grad");
  finish(session, call, sums);
}

}  // namespace vitrail::cuda
