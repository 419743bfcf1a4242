// Gradients of the norms. Every block walks its share of the rows, keeps sums over them (dweight, dbias, and
// of dx itself where wanted) in registers, and leaves one row of partial sums; mean and variance are computed
// again.
#include <cuda_pipeline.h>

#include <algorithm>

#include "backend/cuda/device/columns.cuh"
#include "backend/cuda/device/norms.cuh"

namespace vitrail::cuda {

namespace {

struct NormGrad {
  RowPlaces rows;
  Elements x, dy, dx, residual, weight[2];
  float* partials;  // [parts][blocks][sums][width]; null: no sums
  bool trained, column_sums;

  __device__ int sums() const { return (trained ? 2 : 0) + (column_sums ? 1 : 0); }
  __device__ float* partial_row(int part) const {
    return partials + (static_cast<int64_t>(part) * gridDim.x + blockIdx.x) * sums() * rows.width;
  }
};

// v passes through: dx is dy.
__device__ void copy_rows(const NormGrad& g, int part) {
  const int64_t width = g.rows.width, each = width % 8 == 0 ? 8 : 1, all = g.rows.rows * width;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t i = first * each; i < all; i += static_cast<int64_t>(gridDim.x) * blockDim.x * each) {
    const int64_t at = g.rows.start(i / width, part) + i % width;
    float v[8];
    if (each == 1) {
      g.dx.put(at, g.dy.get(at));
    } else {
      g.dy.get8(at, v);
      g.dx.put8(at, v);
    }
  }
}

// Sums over rows of a thread's columns. kMore: also of dx.
template <int kPacks, bool kMore>
struct LaneSums {
  float dweight[kPacks][8] = {}, dbias[kPacks][8] = {}, dx[kMore ? kPacks : 1][8] = {};
};

// The rows a group of lanes works on next, on their way into shared memory: every lane copies and reads its
// own columns, so that it waits for its own copies alone.
template <typename Lanes>
struct Stage {
  Elements x, dy, residual;  // in shared memory; the residual's data null where there is none

  __device__ Stage(const NormGrad& g, char* memory) : x(g.x), dy(g.dy), residual(g.residual) {
    x.data = memory, memory += g.rows.width * bytes_of(x);
    dy.data = memory, memory += g.rows.width * bytes_of(dy);
    if (residual.data) residual.data = memory;
  }
  __device__ static int bytes_of(const Elements& e) { return e.dtype == DType::kF32 ? 4 : 2; }

  __device__ void ask(const NormGrad& g, const Lanes& at, int64_t start) const {
    copy(g.x, start, at, x);
    copy(g.dy, start, at, dy);
    if (residual.data) copy(g.residual, start, at, residual);
  }
  __device__ static void copy(const Elements& from, int64_t start, const Lanes& at, const Elements& to) {
    const int bytes = bytes_of(to);
    const char* source = static_cast<const char*>(from.data) + start * bytes;
    at.each([&](int p) {
      for (int b = 0; b < 8 * bytes; b += 16)
        __pipeline_memcpy_async(static_cast<char*>(to.data) + at.column(p) * bytes + b,
                                source + at.column(p) * bytes + b, 16);
    });
  }
};

// How many warps a block has and blocks run on a processor: what the registers allow, most of which the sums
// take. Four quarters of a processor share the warps evenly.
template <int kPacks, bool kMore, bool kUsual>
struct GradShape {
  static constexpr int kSums = kPacks * (kMore ? 3 : 2);
  static constexpr int kBlocks = kPacks <= 2 ? 2 : 1;
  static constexpr int kWarps = kPacks > 2 && kSums <= (kUsual ? 12 : 6) ? 12 : 8;
};

// What was read before is not kept in registers beyond this.
__device__ __forceinline__ void forget_reads() {
  asm volatile("" ::: "memory");
}

// One row from its stage, `start` below 0 where there is none; all lanes of the warp call it. The row is read
// from the stage as often as it is needed: registers are for the sums.
template <int kPacks, bool kMore, typename Lanes>
__device__ void grad_row(const NormGrad& g, const Lanes& at, const Stage<Lanes>& stage,
                         const Elements& weight, const Elements& dx, int64_t start,
                         LaneSums<kPacks, kMore>& sums) {
  const bool live = start >= 0;
  const float share = 1.0f / at.width;
  float x[8], dy[8], w[8], sum[1] = {}, more_sums[3] = {};
  if (live)
    at.each([&](int p) {
      unpack(fetch(stage.x, at.column(p)), stage.x.dtype, x);
#pragma unroll
      for (int e = 0; e < 8; ++e) sum[0] += x[e];
    });
  at.sum(sum);
  const float mean = sum[0] * share;
  auto& [squares, sum_dn, sum_dn_x] = more_sums;
  if (live)
    at.each([&](int p) {
      forget_reads();
      unpack(fetch(stage.x, at.column(p)), stage.x.dtype, x);
      unpack(fetch(stage.dy, at.column(p)), stage.dy.dtype, dy);
      unpack(fetch(weight, at.column(p)), weight.dtype, w);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float centred = x[e] - mean, dn = dy[e] * w[e];
        squares = fmaf(centred, centred, squares);
        sum_dn += dn;
        sum_dn_x = fmaf(dn, centred, sum_dn_x);
        sums.dbias[p][e] += dy[e];
      }
    });
  at.sum(more_sums);
  const float inverse = rsqrtf(squares * share + g.rows.eps);
  const float mean_dn = sum_dn * share, mean_dn_n = sum_dn_x * share * inverse;
  if (live)
    at.each([&](int p) {
      float more[8] = {};
      forget_reads();
      unpack(fetch(stage.x, at.column(p)), stage.x.dtype, x);
      unpack(fetch(stage.dy, at.column(p)), stage.dy.dtype, dy);
      unpack(fetch(weight, at.column(p)), weight.dtype, w);
      if (kMore && stage.residual.data)
        unpack(fetch(stage.residual, at.column(p)), stage.residual.dtype, more);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float n = (x[e] - mean) * inverse;
        sums.dweight[p][e] = fmaf(dy[e], n, sums.dweight[p][e]);
        more[e] = fmaf(inverse, fmaf(dy[e], w[e], -mean_dn) - n * mean_dn_n, more[e]);
        if (kMore) sums.dx[kMore ? p : 0][e] += more[e];
      }
      dx.put8(start + at.column(p), more);
    });
}

// The warps add to the block's sums one after the other. In shared memory these lie as the lanes hold them:
// [sum][pack][element][lane].
template <int kPacks, bool kMore, typename Lanes>
__device__ void leave_partials(const NormGrad& g, const Lanes& at, int part, LaneSums<kPacks, kMore>& sums,
                               float* totals) {
  const int width = at.width, warp = threadIdx.x / 32, room = kPacks * 8 * at.lanes;
  const auto add = [&](const float(&values)[8], int p, float* to) {
    forget_reads();
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      float value = values[e];
      for (int offset = at.lanes; offset < 32; offset *= 2) value += __shfl_xor_sync(~0u, value, offset);
      if (threadIdx.x % 32 >= at.lanes) continue;
      float& total = to[(p * 8 + e) * at.lanes + at.lane];
      total = warp == 0 ? value : total + value;
    }
  };
  for (int w = 0; w < static_cast<int>(blockDim.x / 32); ++w) {
    __syncthreads();
    if (warp != w) continue;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (g.trained) add(sums.dweight[p], p, totals), add(sums.dbias[p], p, totals + room);
      if (kMore && g.column_sums) add(sums.dx[kMore ? p : 0], p, totals + (g.trained ? 2 : 0) * room);
    }
  }
  __syncthreads();
  float* to = g.partial_row(part);
  for (int i = threadIdx.x; i < g.sums() * width; i += blockDim.x) {
    const int column = i % width, pack = column / 8;
    to[i] = totals[i / width * room + (pack / at.lanes * 8 + column % 8) * at.lanes + pack % at.lanes];
  }
}

// A block's shared memory holds two rows of every operand for every group of lanes, and at last the block's
// sums.
template <int kPacks, bool kMore, bool kUsual>
__global__ void __launch_bounds__(GradShape<kPacks, kMore, kUsual>::kWarps * 32,
                                  GradShape<kPacks, kMore, kUsual>::kBlocks)
    grad_in_registers(const __grid_constant__ NormGrad g, int lanes, int stage_bytes) {
  using Lanes = RowLanes<kPacks, kUsual>;
  extern __shared__ __align__(16) char memory[];
  const int part = blockIdx.y;
  if (part == 2) return copy_rows(g, part);
  const Lanes at(lanes, g.rows.width);
  const Elements weight = g.weight[part == 1];
  const int groups = blockDim.x / at.lanes, group = threadIdx.x / at.lanes;
  const auto start_of = [&](int64_t row) { return row < g.rows.rows ? g.rows.start(row, part) : -1; };
  const auto stage = [&](int turn) {
    Stage<Lanes> s(g, memory + (group * 2 + turn) * stage_bytes);
    if constexpr (kUsual) s.x.dtype = s.dy.dtype = s.residual.dtype = DType::kBF16;
    return s;
  };
  Elements dx = g.dx;
  if constexpr (kUsual) dx.dtype = DType::kBF16;
  int64_t first = static_cast<int64_t>(blockIdx.x) * groups, start = start_of(first + group);
  if (start >= 0) stage(0).ask(g, at, start);
  __pipeline_commit();
  LaneSums<kPacks, kMore> sums;
  for (int turn = 0; first < g.rows.rows; turn ^= 1) {
    first += static_cast<int64_t>(gridDim.x) * groups;
    const int64_t next = start_of(first + group);
    if (next >= 0) stage(turn ^ 1).ask(g, at, next);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncwarp();  // no read moves before the wait
    grad_row<kPacks, kMore>(g, at, stage(turn), weight, dx, start, sums);
    start = next;
  }
  if (g.partials) leave_partials<kPacks, kMore>(g, at, part, sums, reinterpret_cast<float*>(memory));
}

// Any width: the sums are kept in the partial row itself, every element by its own thread.
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

// As many warps a block as its shared memory lets; false: not even one.
template <int kPacks, bool kMore, bool kUsual>
bool launch_in_registers(Session& session, const NormGrad& g, const dim3& blocks, size_t sums) {
  int most = 0;
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, session.ordinal),
        "shared memory");
  const int lanes = lanes_for<kPacks>(g.rows.width);
  const size_t stage = bytes_a_row(g), sums_bytes = sums * kPacks * 8 * lanes * sizeof(float);
  const auto shared = [&](int warps) {
    return std::max(sums_bytes, static_cast<size_t>(warps * 32 / lanes) * 2 * stage);
  };
  int warps = GradShape<kPacks, kMore, kUsual>::kWarps;
  while (warps > 0 && shared(warps) > static_cast<size_t>(most)) warps /= 2;
  if (warps == 0) return false;
  const auto kernel = grad_in_registers<kPacks, kMore, kUsual>;
  if (shared(warps) > 48 * 1024) allow_shared(kernel, shared(warps), "norm_grad");
  kernel<<<blocks, warps * 32, shared(warps), session.stream>>>(g, lanes, static_cast<int>(stage));
  return true;
}

template <int kPacks>
bool launch_packs(Session& session, const NormGrad& g, const dim3& blocks, size_t sums) {
  if (!g.column_sums && !g.residual.data)
    return launch_in_registers<kPacks, false, false>(session, g, blocks, sums);
  if (usual_rows<kPacks>(g.rows.width, {g.x, g.dy, g.dx, g.residual}))
    return launch_in_registers<kPacks, true, true>(session, g, blocks, sums);
  return launch_in_registers<kPacks, true, false>(session, g, blocks, sums);
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
