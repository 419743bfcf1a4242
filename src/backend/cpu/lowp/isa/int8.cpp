// GEMMs of 8-bit integers without an instruction for them: the values are widened to pairs of 16-bit
// integers, two products per lane without overflow. Weights are stored as bytes in panels [k / 2][kNr][2],
// followed by their scales; rows are prepared as 16-bit integers. A block of a panel is widened once for all
// rows of a tile and stays in L1.
#include "backend/cpu/gemm/isa/micro.h"
#include "backend/cpu/isa/kernels.h"
#include "backend/cpu/lowp/isa/quantize.h"

namespace vitrail::cpu::VT_ISA::int8 {
namespace {

typedef int8_t ByteVec __attribute__((vector_size(kLanes * 2), aligned(1), may_alias));
typedef int16_t ShortVec __attribute__((vector_size(kLanes * 4), aligned(2), may_alias));
typedef int16_t HalfShortVec __attribute__((vector_size(kLanes * 2), aligned(2), may_alias));

float* scales_of(std::byte* packed, int64_t n, int64_t k) {
  return reinterpret_cast<float*>(packed + weight_bytes(n, k));
}

// Packs one panel of up to kNr columns, in chunks that fit a buffer.
void pack_panel(const float* w, int64_t columns, int64_t k, std::byte* panel, float* scales) {
  constexpr int64_t kDepth = 32;
  float inverse[kNr], chunk[kDepth * kNr];
  for (int64_t j = 0; j < kNr; ++j) {
    const Int8Scale s = j < columns ? int8_scale(w + j * k, k) : Int8Scale{0.0f, 0.0f};
    scales[j] = s.scale;
    inverse[j] = s.inverse;
  }
  for (int64_t begin = 0; begin < k; begin += kDepth) {
    const int64_t depth = min64(kDepth, k - begin);
    pack_rows(w + begin, k, columns, depth, chunk);
    if (depth % 2)
      for (int64_t j = 0; j < kNr; ++j) chunk[depth * kNr + j] = 0.0f;
    for (int64_t p = 0; p < depth; p += 2) {
      for (int64_t j = 0; j < kNr; j += kLanes) {
        const float* at = chunk + p * kNr + j;
        const Vec scale = load(inverse + j);
        const IntVec even = quantize(load(at), scale), odd = quantize(load(at + kNr), scale);
        *reinterpret_cast<HalfShortVec*>(panel + (begin + p) * kNr + j * 2) =
            __builtin_convertvector((even & 0xff) | (odd << 8), HalfShortVec);
      }
    }
  }
}

void widen_block(const std::byte* bytes, int64_t count, int16_t* out) {
  for (int64_t i = 0; i < count; i += 2 * kLanes)
    *reinterpret_cast<ShortVec*>(out + i) =
        __builtin_convertvector(*reinterpret_cast<const ByteVec*>(bytes + i), ShortVec);
}

// sums[R, kNr] (+)= a[R, 2 * pairs] * panel[pairs, kNr, 2].
template <int R>
void micro_pairs(const std::byte* a, int64_t row_stride, const int16_t* panel, int64_t pairs, bool add,
                 int32_t* sums) {
  IntVec sum[R][kWide];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int w = 0; w < kWide; ++w) sum[r][w] = add ? load_ints(sums + r * kNr + w * kLanes) : IntVec{};
  const auto* b = reinterpret_cast<const int32_t*>(panel);
#pragma GCC unroll 2
  for (int64_t p = 0; p < pairs; ++p, b += kNr) {
    IntVec columns[kWide];
#pragma GCC unroll 4
    for (int w = 0; w < kWide; ++w) columns[w] = load_ints(b + w * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      int32_t pair;
      __builtin_memcpy(&pair, a + r * row_stride + p * 4, 4);
      const IntVec x = pair - IntVec{};
#pragma GCC unroll 4
      for (int w = 0; w < kWide; ++w) sum[r][w] += multiply_pairs(x, columns[w]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int w = 0; w < kWide; ++w) store_ints(sums + r * kNr + w * kLanes, sum[r][w]);
}

using MicroPairs = void (*)(const std::byte*, int64_t, const int16_t*, int64_t, bool, int32_t*);
template <int R>
MicroPairs micro_pairs_for(int64_t rows) {
  if constexpr (R > 1) {
    if (rows < R) return micro_pairs_for<R - 1>(rows);
  }
  return micro_pairs<R>;
}

// Converts the sums from integers to floats in place, then runs the epilogue.
void finish_panel(const LowpTile& t, int64_t column, int32_t* sums) {
  const float* scales = scales_of(const_cast<std::byte*>(t.packed), t.n, t.k) + column;
  auto* values = reinterpret_cast<float*>(sums);
  for (int64_t r = 0; r < t.rows; ++r) {
    const Vec row = set1(t.row_scale[r]);
    for (int64_t j = 0; j < kNr; j += kLanes) {
      const Vec sum = __builtin_convertvector(load_ints(sums + r * kNr + j), Vec);
      store(values + r * kNr + j, sum * row * load(scales + j));
    }
  }
  GemmTile finished;
  finished.c = t.c;
  finished.ldc = t.ldc;
  finished.rows = t.rows;
  finished.epilogue = t.epilogue;
  finished.col_begin = column;
  finished.col_end = min64(column + kNr, t.col_end);
  finish_tile(finished, values, kNr);
}

}  // namespace

void pack(const float* w, int64_t n, int64_t first, int64_t count, int64_t k, std::byte* packed) {
  for (int64_t column = first; column < first + count; column += kNr)
    pack_panel(w + column * k, min64(kNr, first + count - column), k, packed + column * round_up(k, 2),
               scales_of(packed, n, k) + column);
}

void prepare_rows(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float* row_scale) {
  for (int64_t r = 0; r < rows; ++r, x += ldx, out += row_bytes(k)) {
    const Int8Scale s = int8_scale(x, k);
    row_scale[r] = s.scale;
    const Vec inverse = set1(s.inverse);
    auto* to = reinterpret_cast<int16_t*>(out);
    int64_t i = 0;
    for (; i + kLanes <= k; i += kLanes)
      *reinterpret_cast<HalfShortVec*>(to + i) =
          __builtin_convertvector(quantize(load(x + i), inverse), HalfShortVec);
    const IntVec rest = quantize(load_some(x + i, k - i), inverse);
    for (int64_t j = i; j < round_up(k, 2); ++j) to[j] = static_cast<int16_t>(rest[j - i]);
  }
}

void tile(const LowpTile& t) {
  auto* widened = reinterpret_cast<int16_t*>(t.scratch);
  auto* all_sums = reinterpret_cast<int32_t*>(t.scratch) + kWidenedBytes / 4;
  const int64_t k = round_up(t.k, 2);
  for (int64_t begin = 0; begin < k; begin += kBlockK) {
    const int64_t depth = min64(kBlockK, k - begin);
    for (int64_t column = t.col_begin; column < t.col_end; column += kNr) {
      int32_t* sums = all_sums + (column - t.col_begin) * t.rows;
      widen_block(t.packed + column * k + begin * kNr, depth * kNr, widened);
      for (int64_t r = 0; r < t.rows; r += kMr)
        micro_pairs_for<kMr>(t.rows - r)(t.a + r * t.row_bytes + begin * 2, t.row_bytes, widened, depth / 2,
                                         begin > 0, sums + r * kNr);
      if (begin + depth == k) finish_panel(t, column, sums);
    }
  }
}

}  // namespace vitrail::cpu::VT_ISA::int8

namespace vitrail::cpu::VT_ISA {

constinit const LowpKernels kInt8Gemms = {kMr,
                                          kNr,
                                          int8::packed_bytes,
                                          int8::pack,
                                          int8::row_bytes,
                                          int8::prepare_rows,
                                          int8::tile_scratch_bytes,
                                          int8::tile};

}  // namespace vitrail::cpu::VT_ISA
