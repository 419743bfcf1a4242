// A weight in fp8 for the gradient of x: e4m3 codes of its columns, stored as rows, and one scale per column.
// The first kernel finds the largest magnitude in slices of each column, the second combines these and
// rounds. A third finds what bounds the results of a GEMM.
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/fp8.cuh"
#include "backend/cuda/device/quantize.cuh"
#include "backend/cuda/device/reduce.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kTile = 64;           // columns of a block, and rows it transposes
constexpr int kAcross = kTile / 8;  // packs of eight elements in a row of the tile
constexpr int kColumnThreads = 256;
constexpr int kRowsAtOnce = kColumnThreads / kAcross;
constexpr int kPitch = kTile + 16;  // of a transposed line: whole 16 bytes

struct ColumnsArgs {
  int64_t rows, columns, slices;
  Elements x;
  uint32_t* tops;  // [slices, columns]
  uint8_t* codes;
  float* scales;
};

__global__ void __launch_bounds__(kColumnThreads) tops_kernel(const ColumnsArgs p) {
  __shared__ uint32_t found[kRowsAtOnce][kTile];
  const int pack = threadIdx.x % kAcross, line = threadIdx.x / kAcross;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTile + pack * 8;
  const int64_t start = static_cast<int64_t>(blockIdx.y) * kFp8SliceRows;
  const int64_t end = min(start + kFp8SliceRows, p.rows);
  uint32_t top[8] = {};
  if (column < p.columns)
    for (int64_t row = start + line; row < end; row += kRowsAtOnce) {
      float v[8];
      p.x.get8(row * p.columns + column, v);
#pragma unroll
      for (int e = 0; e < 8; ++e) top[e] = max(top[e], magnitude_bits(v[e]));
    }
#pragma unroll
  for (int e = 0; e < 8; ++e) found[line][pack * 8 + e] = top[e];
  __syncthreads();
  const int64_t own = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  if (threadIdx.x >= kTile || own >= p.columns) return;
  uint32_t largest = 0;
  for (int l = 0; l < kRowsAtOnce; ++l) largest = max(largest, found[l][threadIdx.x]);
  p.tops[blockIdx.y * p.columns + own] = largest;
}

__global__ void __launch_bounds__(kColumnThreads) columns_kernel(const ColumnsArgs p) {
  __shared__ float inverse[kTile];
  __shared__ __align__(16) uint8_t turned[kTile][kPitch];
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kTile;
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kTile;
  if (threadIdx.x < kTile && first_column + threadIdx.x < p.columns) {
    uint32_t top = 0;
    for (int64_t s = 0; s < p.slices; ++s) top = max(top, p.tops[s * p.columns + first_column + threadIdx.x]);
    const Fp8Scale scale(top);
    inverse[threadIdx.x] = scale.inverse;
    if (blockIdx.y == 0) p.scales[first_column + threadIdx.x] = scale.scale;
  }
  __syncthreads();
  const int pack = threadIdx.x % kAcross;
  for (int line = threadIdx.x / kAcross; line < kTile; line += kRowsAtOnce) {
    if (first_column + pack * 8 >= p.columns || first_row + line >= p.rows) continue;
    float v[8];
    p.x.get8((first_row + line) * p.columns + first_column + pack * 8, v);
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = __fmul_rn(v[e], inverse[pack * 8 + e]);
    const uint2 codes = fp8_codes(v);
#pragma unroll
    for (int e = 0; e < 8; ++e)
      turned[pack * 8 + e][line] = static_cast<uint8_t>((e < 4 ? codes.x : codes.y) >> e % 4 * 8);
  }
  __syncthreads();
  const int line = threadIdx.x / (kTile / 16), part = threadIdx.x % (kTile / 16) * 16;
  if (first_column + line >= p.columns || first_row + part >= p.rows) return;
  *reinterpret_cast<uint4*>(p.codes + (first_column + line) * p.rows + first_row + part) =
      *reinterpret_cast<const uint4*>(&turned[line][part]);
}
static_assert(kColumnThreads == kTile * (kTile / 16));

__global__ void __launch_bounds__(kColumnThreads)
    bound_kernel(int64_t n, const float* norms, Elements bias, float* tops) {
  float norm = 0, top = 0;
  for (int64_t i = threadIdx.x; i < n; i += kColumnThreads) {
    norm = fmaxf(norm, norms[i]);
    if (bias.data) top = fmaxf(top, fabsf(bias.get(i)));
  }
  norm = block_max<kColumnThreads>(norm), top = block_max<kColumnThreads>(top);
  if (threadIdx.x == 0) tops[0] = norm, tops[1] = top;
}

}  // namespace

void find_tops(Session& session, const Fp8TopsCall& call) {
  bound_kernel<<<1, kColumnThreads, 0, session.stream>>>(call.n, call.norms, call.bias, call.tops);
  check_launch("the bound of a result in fp8");
}

void quantize_columns(Session& session, const Fp8ColumnsCall& call) {
  VT_CHECK(call.rows % 16 == 0 && call.columns % 16 == 0 && call.rows > 0 && call.columns > 0,
           "a matrix of %lld x %lld in fp8", static_cast<long long>(call.rows),
           static_cast<long long>(call.columns));
  const int64_t slices = fp8_slices(call.rows);
  VT_CHECK(call.rows / kTile < 65535, "a weight of %lld outputs", static_cast<long long>(call.rows));
  const ColumnsArgs args{.rows = call.rows,
                         .columns = call.columns,
                         .slices = slices,
                         .x = call.x,
                         .tops = call.tops,
                         .codes = call.out.codes,
                         .scales = call.out.scales};
  const unsigned across = blocks_for(call.columns, kTile);
  tops_kernel<<<dim3(across, static_cast<unsigned>(slices)), kColumnThreads, 0, session.stream>>>(args);
  check_launch("the largest of each column");
  columns_kernel<<<dim3(across, blocks_for(call.rows, kTile)), kColumnThreads, 0, session.stream>>>(args);
  check_launch("rounding columns to fp8");
}

}  // namespace vitrail::cuda
