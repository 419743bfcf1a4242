// A GEMM of any sizes and types, for those that cuBLASLt does not take: heads of few classes, odd widths.
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/gemms.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kTile = 64;   // rows and columns of a block's tile
constexpr int kDepth = 16;  // terms of k at a time
constexpr int kEach = 4;    // rows and columns of a thread
constexpr int kTiledThreads = (kTile / kEach) * (kTile / kEach);
constexpr int kPitch = kTile + 4;

struct TiledArgs {
  int64_t m, n, k, tiles_across;
  Elements a, b, c, d, bias;
  bool a_transposed, b_transposed;
};

// Loads tile[depth][line] of a matrix [lines, depth], or of one stored as [depth, lines]; zeros outside.
__device__ void load_tile(float (&tile)[kDepth][kPitch], const Elements& from, bool by_depth, int64_t lines,
                          int64_t depth, int64_t first_line, int64_t first_depth) {
  for (int i = threadIdx.x; i < kTile * kDepth; i += kTiledThreads) {
    const int line = by_depth ? i % kTile : i / kDepth, at = by_depth ? i / kTile : i % kDepth;
    const int64_t l = first_line + line, z = first_depth + at;
    tile[at][line] = l < lines && z < depth ? from.get(by_depth ? z * lines + l : l * depth + z) : 0.0f;
  }
}

__device__ void put_tile(const TiledArgs& p, const float (&sums)[kTile][kPitch], int64_t first_row,
                         int64_t first_column) {
  for (int i = threadIdx.x; i < kTile * kTile; i += kTiledThreads) {
    const int64_t row = first_row + i / kTile, column = first_column + i % kTile;
    if (row >= p.m || column >= p.n) continue;
    float value = sums[i / kTile][i % kTile];
    if (p.bias.data) value += p.bias.get(column);
    if (p.c.data) value += p.c.get(row * p.n + column);
    p.d.put(row * p.n + column, value);
  }
}

__global__ void __launch_bounds__(kTiledThreads) tiled_kernel(const TiledArgs p) {
  __shared__ __align__(16) float a[kDepth][kPitch], b[kDepth][kPitch], c[kTile][kPitch];
  const int64_t first_row = blockIdx.x / p.tiles_across * kTile,
                first_column = blockIdx.x % p.tiles_across * kTile;
  const int row = threadIdx.x / (kTile / kEach) * kEach, column = threadIdx.x % (kTile / kEach) * kEach;
  float sums[kEach][kEach] = {};
  for (int64_t z = 0; z < p.k; z += kDepth) {
    load_tile(a, p.a, p.a_transposed, p.m, p.k, first_row, z);
    load_tile(b, p.b, !p.b_transposed, p.n, p.k, first_column, z);
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      const float4 x = *reinterpret_cast<const float4*>(&a[d][row]);
      const float4 y = *reinterpret_cast<const float4*>(&b[d][column]);
      const float xs[kEach] = {x.x, x.y, x.z, x.w}, ys[kEach] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] += xs[i] * ys[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    *reinterpret_cast<float4*>(&c[row + i][column]) =
        make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
  __syncthreads();
  put_tile(p, c, first_row, first_column);
}

}  // namespace

void tiled_gemm(Session& session, const GemmCall& call) {
  VT_CHECK(call.act == Activation::kNone, "the tiled GEMM has no activation");
  const int64_t down = (call.m + kTile - 1) / kTile, across = (call.n + kTile - 1) / kTile;
  VT_CHECK(down * across < int64_t{1} << 31, "a GEMM of too many tiles");
  const TiledArgs args{.m = call.m,
                       .n = call.n,
                       .k = call.k,
                       .tiles_across = across,
                       .a = call.a,
                       .b = call.b,
                       .c = call.c,
                       .d = call.d,
                       .bias = call.bias,
                       .a_transposed = call.a_transposed,
                       .b_transposed = call.b_transposed};
  tiled_kernel<<<static_cast<unsigned>(down * across), kTiledThreads, 0, session.stream>>>(args);
  check_launch("tiled product");
}

}  // namespace vitrail::cuda
