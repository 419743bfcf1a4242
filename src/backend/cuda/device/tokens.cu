// Moves and sums of tokens, and position embeddings computed from sines and cosines. Each kernel handles
// eight elements at a time where every row starts on a multiple of eight (four in a move to f32), else one.
#include <algorithm>

#include "backend/cuda/device/launch.cuh"
#include "backend/cuda/device/packs.cuh"
#include "backend/cuda/device/plugin_tables.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kLanes = 32;

template <int kWidth>
__device__ void read(const Elements& x, int64_t i, float (&v)[kWidth]) {
  if constexpr (kWidth == 8)
    x.get8(i, v);
  else if constexpr (kWidth == 4)
    x.get4(i, v);
  else
    v[0] = x.get(i);
}
template <int kWidth>
__device__ void write(const Elements& x, int64_t i, const float (&v)[kWidth]) {
  if constexpr (kWidth == 8)
    x.put8(i, v);
  else if constexpr (kWidth == 4)
    x.put4(i, v);
  else
    x.put(i, v[0]);
}

__device__ const TokenPart* part_of(const TokenMoveCall& call, int64_t token) {
  for (int p = 0; p < call.parts; ++p)
    if (token >= call.part[p].first && token < call.part[p].first + call.part[p].count) return &call.part[p];
  return nullptr;
}

// A few elements as they lie in memory: many are loaded before the first is converted.
template <int kWidth>
struct Piece {
  Pack raw = {};

  __device__ void load(const Elements& x, int64_t i) {
    if constexpr (kWidth == 8) {
      raw = fetch(x, i);
    } else if constexpr (kWidth == 4) {
      if (x.dtype == DType::kF32) {
        raw.low = *reinterpret_cast<const uint4*>(static_cast<const float*>(x.data) + i);
      } else {
        const uint2 two = *reinterpret_cast<const uint2*>(static_cast<const uint16_t*>(x.data) + i);
        raw.low.x = two.x, raw.low.y = two.y;
      }
    } else {
      raw.low.x = __float_as_uint(x.get(i));
    }
  }
  __device__ void convert(DType dtype, float (&v)[kWidth]) const {
    float eight[8];
    unpack(raw, kWidth == 1 ? DType::kF32 : dtype, eight);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) v[j] = eight[j];
  }
};

// Each row of lanes copies one token of some images, some columns of all of them after others.
template <int kWidth, bool kPositions>
__global__ void move_kernel(const __grid_constant__ TokenMoveCall call) {
  constexpr int kStep = kLanes * kWidth, kFlight = kWidth == 4 ? 6 : 3;  // pieces a lane loads at once
  const int64_t token = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= call.tokens) return;
  await_launches();
  const TokenPart* part = part_of(call, token);
  const DType dtype = part ? part->source.dtype : DType::kF32;
  for (int64_t c = threadIdx.x * kWidth; c < call.width; c += kFlight * kStep) {
    Piece<kWidth> positions[kFlight];
#pragma unroll
    for (int u = 0; u < kFlight; ++u)
      if (kPositions && c + u * kStep < call.width)
        positions[u].load(call.positions, token * call.width + c + u * kStep);
    for (int64_t image = blockIdx.y; image < call.images; image += gridDim.y) {
      const int64_t to = (image * call.tokens + token) * call.width + c;
      const int64_t from =
          part ? part->offset + image * part->image_stride + (token - part->first) * part->token_stride : 0;
      Piece<kWidth> pieces[kFlight];
#pragma unroll
      for (int u = 0; u < kFlight; ++u)
        if (part && c + u * kStep < call.width) pieces[u].load(part->source, from + c + u * kStep);
#pragma unroll
      for (int u = 0; u < kFlight; ++u) {
        if (c + u * kStep >= call.width) break;
        float v[kWidth], position[kWidth];
        pieces[u].convert(dtype, v);
        if constexpr (kPositions) positions[u].convert(call.positions.dtype, position);
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
          v[j] *= part ? part->factor : 0.0f;
          if constexpr (kPositions) v[j] = rounded_to(call.rounded, v[j]) + position[j];
        }
        write<kWidth>(call.out, to + u * kStep, v);
      }
    }
  }
}

// A block sums kLanes * kWidth columns; its kRows rows of lanes divide the terms.
template <int kWidth, int kRows>
__global__ void __launch_bounds__(kLanes* kRows)
    sum_kernel(const __grid_constant__ TokenSumCall call, int64_t column_blocks) {
  constexpr int kColumns = kLanes * kWidth;
  const int64_t outer = blockIdx.x / column_blocks, first = blockIdx.x % column_blocks * kColumns;
  const int64_t column = first + threadIdx.x * kWidth;
  const Elements x = call.x, out = call.out;
  float sum[kWidth] = {};
  if (column < call.columns)
    for (int64_t t = threadIdx.y; t < call.terms; t += kRows) {
      float v[kWidth];
      read<kWidth>(x, call.offset + outer * call.outer_stride + t * call.term_stride + column, v);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sum[j] += v[j];
    }
  __shared__ float parts[kRows][kColumns];
#pragma unroll
  for (int j = 0; j < kWidth; ++j) parts[threadIdx.y][threadIdx.x * kWidth + j] = sum[j];
  __syncthreads();
  const int c = threadIdx.y * kLanes + threadIdx.x;
  if (c >= kColumns || first + c >= call.columns) return;
  float total = 0;
  for (int row = 0; row < kRows; ++row) total += parts[row][c];
  const int64_t target = outer * call.columns + first + c;
  out.put(target, total * call.factor + (call.adds ? out.get(target) : 0.0f));
}

__global__ void sincos_kernel(const __grid_constant__ SincosCall call) {
  const int64_t quarter = call.width / 4, id = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (id >= call.rows * call.columns * quarter) return;
  const int64_t token = id / quarter, i = id % quarter;
  const double fraction = quarter > 1 ? static_cast<double>(i) / static_cast<double>(quarter - 1) : 0.0;
  const double omega = pow(10000.0, -fraction);
  const double x = static_cast<double>(token % call.columns) * omega,
               y = static_cast<double>(token / call.columns) * omega;
  const double parts[] = {sin(x), cos(x), sin(y), cos(y)};
#pragma unroll
  for (int part = 0; part < 4; ++part)
    Elements(call.out).put(token * call.width + part * quarter + i, static_cast<float>(parts[part]));
}

// A thread finds the maximum of one column of one image.
struct MaxColumn {
  int64_t start, at;  // of its first token in x; of its result in out
  bool there;

  __device__ explicit MaxColumn(const TokenMaxCall& call) {
    at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    there = at < call.images * call.width;
    start = at / call.width * call.tokens * call.width + at % call.width;
  }
};

__global__ void max_kernel(const __grid_constant__ TokenMaxCall call) {
  const MaxColumn column(call);
  if (!column.there) return;
  const Elements x = call.x;
  float top = -INFINITY;
  for (int64_t n = call.first; n < call.tokens; ++n) top = fmaxf(top, x.get(column.start + n * call.width));
  Elements(call.out).put(column.at, top);
}

__global__ void max_grad_kernel(const __grid_constant__ TokenMaxCall call) {
  const MaxColumn column(call);
  if (!column.there) return;
  const Elements x = call.x, dx = call.dx;
  float top = -INFINITY, count = 0;
  for (int64_t n = call.first; n < call.tokens; ++n) {
    const float value = x.get(column.start + n * call.width);
    count = value > top ? 1.0f : count + (value == top ? 1.0f : 0.0f);
    top = fmaxf(top, value);
  }
  const float share = Elements(call.dy).get(column.at) / count;
  for (int64_t n = 0; n < call.tokens; ++n) {
    const int64_t i = column.start + n * call.width;
    dx.put(i, n >= call.first && x.get(i) == top ? share : 0.0f);
  }
}

template <typename Kernel>
void launch_max(Session& session, const TokenMaxCall& call, Kernel kernel) {
  constexpr int kThreads = 128;
  const int64_t items = call.images * call.width;
  if (items == 0) return;
  kernel<<<blocks_for(items, kThreads), kThreads, 0, session.stream>>>(call);
  check_launch("max_tokens");
}
void max(Session& session, const TokenMaxCall& call) {
  launch_max(session, call, max_kernel);
}
void max_grad(Session& session, const TokenMaxCall& call) {
  launch_max(session, call, max_grad_kernel);
}

template <bool kPositions>
void launch_move(Session& session, const TokenMoveCall& call) {
  const dim3 block(kLanes, static_cast<unsigned>(std::min<int64_t>(call.tokens, 8)));
  // Where there are enough images for all multiprocessors, a block reads its positions once for several.
  const int64_t tokens = blocks_for(call.tokens, block.y), enough = 16 * session.processors / tokens + 1;
  const int64_t images = std::min<int64_t>(call.images, kPositions ? enough : 65535);
  const dim3 grid(static_cast<unsigned>(tokens), static_cast<unsigned>(images));
  const auto kernel = call.width % 8 != 0             ? move_kernel<1, kPositions>
                      : call.out.dtype == DType::kF32 ? move_kernel<4, kPositions>
                                                      : move_kernel<8, kPositions>;
  launch_early(session, "move_tokens", kernel, {grid, block}, call);
}

void move(Session& session, const TokenMoveCall& call) {
  if (call.images * call.tokens * call.width == 0) return;
  call.positions.data ? launch_move<true>(session, call) : launch_move<false>(session, call);
}

template <int kWidth, int kRows>
void launch_sum(Session& session, const TokenSumCall& call) {
  const int64_t column_blocks = blocks_for(call.columns, kLanes * kWidth);
  const dim3 grid(static_cast<unsigned>(call.outer * column_blocks)), block(kLanes, kRows);
  sum_kernel<kWidth, kRows><<<grid, block, 0, session.stream>>>(call, column_blocks);
  check_launch("sum_tokens");
}

void sum(Session& session, const TokenSumCall& call) {
  if (call.outer * call.columns == 0) return;
  const bool aligned = call.offset % 8 == 0 && call.outer_stride % 8 == 0 && call.term_stride % 8 == 0 &&
                       call.columns % 8 == 0;
  // Where there are few sums, blocks are narrow with many rows, so that there are enough blocks.
  if (aligned && call.outer * call.columns >= int64_t{session.processors} * 8 * kLanes)
    launch_sum<8, 8>(session, call);
  else
    launch_sum<1, 32>(session, call);
}

void sincos(Session& session, const SincosCall& call) {
  constexpr int kThreads = 128;
  const int64_t items = call.rows * call.columns * (call.width / 4);
  if (items == 0) return;
  sincos_kernel<<<blocks_for(items, kThreads), kThreads, 0, session.stream>>>(call);
  check_launch("sincos_positions");
}

}  // namespace

TokensApi tokens_api() {
  return {.move = move, .sum = sum, .sincos = sincos, .max = max, .max_grad = max_grad};
}

}  // namespace vitrail::cuda
