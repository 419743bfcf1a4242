// GEMMs by vector dot-product instructions: 12 rows x 32 columns of sums in registers, with A's words
// broadcast. In int8 A is unsigned, stored with 128 added, which a correction per column takes back.
#include "backend/cpu/isa/kernels.h"
#include "backend/cpu/lowp/isa/dot/dot.h"
#include "backend/cpu/lowp/isa/dot/layout.h"

namespace vitrail::cpu::VT_ISA {
namespace {

constexpr int kBlockRows = 12;
// The steps of one visit to the sums: so much of a panel (24 KB) stays in L1 while all rows of the tile are
// multiplied with it.
constexpr int64_t kMostSteps = 12;

inline FloatSums dot(FloatSums sums, const Words& a, const Words& b, Bf16) {
  return dot_bf16(sums, a, b);
}
inline IntSums dot(IntSums sums, const Words& a, const Words& b, Int8) {
  return dot_u8s8(sums, a, b);
}
inline FloatSums zero_sums(Bf16) {
  return FloatSums{};
}
inline IntSums zero_sums(Int8) {
  return IntSums{};
}

// sums[R, 32] (+)= a[R, steps] * panel
template <typename Form, int R>
void multiply_block(const std::byte* a, int64_t stride, const std::byte* panel, int64_t steps, bool add,
                    float* sums) {
  using Sums = decltype(zero_sums(Form{}));
  Sums low[R], high[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    low[r] = high[r] = zero_sums(Form{});
    if (!add) continue;
    load_sums(sums + r * kPanelCols, low[r]);
    load_sums(sums + r * kPanelCols + kDotLanes, high[r]);
  }
  for (int64_t step = 0; step < steps; ++step, panel += kPanelStepBytes, a += kStepBytes) {
#pragma GCC unroll 2
    for (int64_t word = 0; word < kStepWords; ++word) {
      const Words b0 = load_words(panel + word * kStepBytes);
      const Words b1 = load_words(panel + kPanelStepBytes / 2 + word * kStepBytes);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Words x = repeat_word(a + r * stride + word * 4);
        low[r] = dot(low[r], x, b0, Form{});
        high[r] = dot(high[r], x, b1, Form{});
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    store_sums(sums + r * kPanelCols, low[r]);
    store_sums(sums + r * kPanelCols + kDotLanes, high[r]);
  }
}

using BlockFn = void (*)(const std::byte*, int64_t, const std::byte*, int64_t, bool, float*);

// The function for blocks of `rows` <= R rows.
template <typename Form, int R>
BlockFn block_of(int64_t rows) {
  if constexpr (R > 1) {
    if (rows < R) return block_of<Form, R - 1>(rows);
  }
  return multiply_block<Form, R>;
}

// Computes the sums of a tile and calls finish(column, sums) for each panel.
template <typename Form, typename Finish>
void sum(const LowpTile& t, const Finish& finish) {
  const BlockFn whole = block_of<Form, kBlockRows>(kBlockRows),
                rest = block_of<Form, kBlockRows>(t.rows % kBlockRows);
  for_visits<Form>(t, one_by_one(t.row_bytes), 0, kMostSteps, [&](const PanelVisit& v) {
    for (int64_t r = 0; r < t.rows; r += kBlockRows) {
      const BlockFn block = t.rows - r < kBlockRows ? rest : whole;
      block(v.a + r * t.row_bytes, t.row_bytes, v.panel, v.steps, v.add, v.sums + r * kPanelCols);
    }
    if (v.last) finish(v.column, v.sums);
  });
}

template <typename Form>
void tile(const LowpTile& t) {
  sum<Form>(t, [&](int64_t column, float* sums) { finish<Form>(t, column, 0, t.rows, sums, true); });
}

void bf16_tensor_tile(const Bf16TensorTile& t) {
  sum<Bf16>(t.gemm,
            [&](int64_t column, float* sums) { finish_bf16_tensor(t, column, 0, t.gemm.rows, sums); });
}

}  // namespace

RowOrder prepared_order(int64_t row_bytes) {
  return one_by_one(row_bytes);
}

constinit const LowpKernels kBf16Gemms = gemms<Bf16>(kBlockRows, pack_bf16, prepare_bf16, tile<Bf16>);
constinit const LowpKernels kInt8Gemms = gemms<Int8>(kBlockRows, pack_int8, prepare_uint8, tile<Int8>);
constinit const LowpKernels kSplitGemms = {};  // six products by vectors take longer than one in f32
constinit const Bf16TensorKernels kBf16TensorGemms = {.row_step = kBlockRows,
                                                      .pack_rows = pack_bf16_tensor_rows,
                                                      .pack_matrix = pack_bf16_tensor_matrix,
                                                      .transpose = transpose_bf16,
                                                      .tile = bf16_tensor_tile,
                                                      .wide_tile = tile<Bf16>};

}  // namespace vitrail::cpu::VT_ISA
