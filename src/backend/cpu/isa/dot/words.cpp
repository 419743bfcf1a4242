#include "backend/cpu/isa/dot/words.h"

#include <cstring>
#include <utility>

#include "backend/cpu/isa/quantize.h"

namespace vitrail::VT_ISA {
namespace {

constexpr int64_t kHalfCols = kPanelCols / 2;

// The f32 kernels this level borrows.
const IsaKernels& f32() {
  return VT_F32_ISA::kernels();
}

// x * inverse to nearest even as bytes, `flip` changing bits of each: the lowest byte of the sum with
// 1.5 * 2^23 is the integer. Rounds as quantize does.
void quantize_bytes(const float* x, int64_t count, float inverse, uint8_t flip, std::byte* q) {
  if (inverse == 0) return std::memset(q, flip, static_cast<size_t>(count)), void();
  for (int64_t i = 0; i < count; ++i) {
    const float shifted = x[i] * inverse + 0x1.8p23f;
    uint32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    q[i] = static_cast<std::byte>(bits ^ flip);
  }
}

void round_bf16(const float* x, int64_t count, std::byte* out) {
  f32().narrow(Half::kBF16, x, count, reinterpret_cast<uint16_t*>(out));
}

// A float to the nearest bf16, ties to even, as the float whose lower half is zero.
inline float to_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  bits = ((bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : rounded) & 0xffff0000u;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

inline uint16_t upper_half(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<uint16_t>(bits >> 16);
}

// A bf16 within half a step of x, as the float whose lower half is zero; not for numbers too large for one.
inline float near_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x8000u) & 0xffff0000u;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// x = high + middle + low, each a bf16 near what is left, the parts `apart` values from each other. Numbers
// too large for a bf16 become NaN, and what is NaN stays so: of three parts one always is.
void split(const float* x, int64_t count, int64_t apart, uint16_t* parts) {
  for (int64_t i = 0; i < count; ++i) {
    const float high = near_bf16(x[i]), rest = x[i] - high, middle = near_bf16(rest);
    parts[i] = upper_half(high);
    parts[apart + i] = upper_half(middle);
    parts[2 * apart + i] = upper_half(rest - middle);
  }
}

// reduce(row, values, where they go) for each step of each row, the last one filled up with zeros.
template <typename Form, typename Reduce>
void prepare_steps(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out,
                   const Reduce& reduce) {
  constexpr int64_t kStepValues = kStepBytes / Form::kBytes;
  const RowOrder order = prepared_order(row_bytes<Form>(k));
  for (int64_t r = 0; r < rows; ++r, x += ldx) {
    std::byte* to = out + r / kRowBlock * order.block + r % kRowBlock * order.row;
    for (int64_t from = 0; from < k; from += kStepValues, to += Form::kParts * order.step) {
      if (k - from >= kStepValues) {
        reduce(r, x + from, to);
        continue;
      }
      float last[kStepValues] = {};
      std::memcpy(last, x + from, static_cast<size_t>(k - from) * sizeof(float));
      reduce(r, last, to);
    }
  }
}

void prepare_bytes(const float* x, int64_t ldx, int64_t rows, int64_t k, uint8_t flip, std::byte* out,
                   float* row_scale) {
  float inverse = 0;
  int64_t scaled = -1;
  prepare_steps<Int8>(x, ldx, rows, k, out, [&](int64_t row, const float* values, std::byte* to) {
    if (row != scaled) {
      const Int8Scale s = int8_scale(x + row * ldx, k);
      row_scale[row] = s.scale, inverse = s.inverse, scaled = row;
    }
    quantize_bytes(values, kStepBytes, inverse, flip, to);
  });
}

// Sixteen words, and sixteen of those as a square.
typedef uint32_t WordVec __attribute__((vector_size(kStepBytes)));
struct Square {
  WordVec rows[kStepWords];
};

template <int kFrom, int... I>
inline void zip(const WordVec& a, const WordVec& b, WordVec& out, std::integer_sequence<int, I...>) {
  out = __builtin_shufflevector(a, b, (I % 2 * kStepWords + I / 2 + kFrom)...);
}

// Four rounds of interleaving row i with row i + 8 turn rows into columns.
inline void transpose(Square& square) {
  constexpr std::make_integer_sequence<int, kStepWords> kAll;
#pragma GCC unroll 4
  for (int round = 0; round < 4; ++round) {
    Square next;
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      zip<0>(square.rows[i], square.rows[i + 8], next.rows[2 * i], kAll);
      zip<8>(square.rows[i], square.rows[i + 8], next.rows[2 * i + 1], kAll);
    }
    square = next;
  }
}

// rows[w][c] = the word of x[2 w, c] and x[2 w + 1, c]; zero from `rows` rows or `columns` columns on.
void zip_rows(const uint16_t* x, int64_t ldx, int64_t rows, int64_t columns, Square& square) {
  constexpr uint16_t kZeros[kHalfCols] = {};
  for (int64_t w = 0; w < kStepWords; ++w) {
    const uint16_t* even = 2 * w < rows ? x + 2 * w * ldx : kZeros;
    const uint16_t* odd = 2 * w + 1 < rows ? x + (2 * w + 1) * ldx : kZeros;
    uint32_t words[kHalfCols] = {};
    if (columns >= kHalfCols)
      for (int64_t c = 0; c < kHalfCols; ++c) words[c] = even[c] | static_cast<uint32_t>(odd[c]) << 16;
    else
      for (int64_t c = 0; c < columns; ++c) words[c] = even[c] | static_cast<uint32_t>(odd[c]) << 16;
    std::memcpy(&square.rows[w], words, sizeof words);
  }
}

// One half of a panel. reduce(column of the half, from, count, to) rounds values of one column, each of its
// parts kHalfBytes after the one before; those from `columns` on are zero.
constexpr int64_t kHalfBytes = kHalfCols * kStepBytes;
template <typename Form, typename Reduce>
void pack_half(int64_t columns, int64_t k, std::byte* to, const Reduce& reduce) {
  constexpr int64_t kStepValues = kStepBytes / Form::kBytes;
  for (int64_t from = 0; from < k; from += kStepValues) {
    alignas(kStepBytes) std::byte rows[Form::kParts][kHalfCols][kStepBytes] = {};
    for (int64_t c = 0; c < columns; ++c) reduce(c, from, min64(kStepValues, k - from), rows[0][c]);
    for (int64_t part = 0; part < Form::kParts; ++part, to += kPanelStepBytes) {
      Square square;
      std::memcpy(&square, rows[part], sizeof square);
      transpose(square);
      std::memcpy(to, &square, sizeof square);
    }
  }
}

// body(first column, columns, where the half panel begins) for the columns [first, first + count), and with
// the last of them those that fill the last panel.
template <typename Form, typename Body>
void for_halves(int64_t n, int64_t first, int64_t count, int64_t k, std::byte* packed, const Body& body) {
  const int64_t end = first + count < n ? first + count : round_up(n, kPanelCols);
  for (int64_t column = first; column < end; column += kHalfCols) {
    const int64_t half = column % kPanelCols, columns = min64(kHalfCols, n - column);
    body(column, columns < 0 ? 0 : columns,
         const_cast<std::byte*>(panel_of<Form>(packed, n, k, column - half)) + half * kStepBytes);
  }
}

}  // namespace

int64_t tile_scratch_bytes(int64_t rows, int64_t cols, int64_t) {
  return rows * round_up(cols, kPanelCols) * 4;
}

void prepare_bf16(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float*) {
  prepare_steps<Bf16>(x, ldx, rows, k, out, [](int64_t, const float* values, std::byte* to) {
    constexpr int64_t kStepValues = kStepBytes / Bf16::kBytes;
    uint16_t rounded[kStepValues];
    for (int64_t i = 0; i < kStepValues; ++i) rounded[i] = upper_half(to_bf16(values[i]));
    std::memcpy(to, rounded, sizeof rounded);
  });
}

void prepare_split(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float*) {
  const int64_t apart = prepared_order(row_bytes<Split>(k)).step / Split::kBytes;
  prepare_steps<Split>(x, ldx, rows, k, out, [apart](int64_t, const float* values, std::byte* to) {
    split(values, kStepBytes / Split::kBytes, apart, reinterpret_cast<uint16_t*>(to));
  });
}

void prepare_int8(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float* row_scale) {
  prepare_bytes(x, ldx, rows, k, 0, out, row_scale);
}

void prepare_uint8(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float* row_scale) {
  prepare_bytes(x, ldx, rows, k, 0x80, out, row_scale);
}

void pack_bf16(const float* w, int64_t n, int64_t first, int64_t count, int64_t k, std::byte* packed) {
  for_halves<Bf16>(n, first, count, k, packed, [&](int64_t column, int64_t columns, std::byte* to) {
    pack_half<Bf16>(columns, k, to, [&](int64_t c, int64_t from, int64_t values, std::byte* row) {
      round_bf16(w + (column + c) * k + from, values, row);
    });
  });
}

void pack_int8(const float* w, int64_t n, int64_t first, int64_t count, int64_t k, std::byte* packed) {
  auto* scales = reinterpret_cast<float*>(packed);
  auto* offsets = reinterpret_cast<uint32_t*>(packed) + round_up(n, kPanelCols);
  for_halves<Int8>(n, first, count, k, packed, [&](int64_t column, int64_t columns, std::byte* to) {
    float inverse[kHalfCols];
    for (int64_t c = 0; c < kHalfCols; ++c) {
      const Int8Scale s = c < columns ? int8_scale(w + (column + c) * k, k) : Int8Scale{0, 0};
      scales[column + c] = s.scale, inverse[c] = s.inverse, offsets[column + c] = 0;
    }
    pack_half<Int8>(columns, k, to, [&](int64_t c, int64_t from, int64_t values, std::byte* row) {
      quantize_bytes(w + (column + c) * k + from, values, inverse[c], 0, row);
      int32_t sum = 0;
      for (int64_t i = 0; i < values; ++i) sum += static_cast<int8_t>(row[i]);
      offsets[column + c] += 128 * static_cast<uint32_t>(sum);
    });
  });
}

void pack_split(const float* w, int64_t n, int64_t first, int64_t count, int64_t k, std::byte* packed) {
  for_halves<Split>(n, first, count, k, packed, [&](int64_t column, int64_t columns, std::byte* to) {
    pack_half<Split>(columns, k, to, [&](int64_t c, int64_t from, int64_t values, std::byte* row) {
      split(w + (column + c) * k + from, values, kHalfBytes / Split::kBytes,
            reinterpret_cast<uint16_t*>(row));
    });
  });
}

void pack_half_rows(const uint16_t* w, int64_t n, int64_t first, int64_t count, int64_t k,
                    std::byte* packed) {
  for_halves<Bf16>(n, first, count, k, packed, [&](int64_t column, int64_t columns, std::byte* to) {
    pack_half<Bf16>(columns, k, to, [&](int64_t c, int64_t from, int64_t values, std::byte* row) {
      std::memcpy(row, w + (column + c) * k + from, static_cast<size_t>(values * Bf16::kBytes));
    });
  });
}

void pack_half_matrix(const uint16_t* w, int64_t n, int64_t first, int64_t count, int64_t k,
                      std::byte* packed) {
  for_halves<Bf16>(n, first, count, k, packed, [&](int64_t column, int64_t columns, std::byte* to) {
    for (int64_t row = 0; row < k; row += 2 * kStepWords, to += kPanelStepBytes) {
      Square square;
      zip_rows(w + row * n + column, n, columns > 0 ? k - row : 0, columns, square);
      std::memcpy(to, &square, sizeof square);
    }
  });
}

void transpose_halves(const uint16_t* x, int64_t ldx, int64_t rows, int64_t cols, uint16_t* y, int64_t ldy) {
  for (int64_t row = 0; row < rows; row += 2 * kStepWords) {
    for (int64_t column = 0; column < cols; column += kHalfCols) {
      const int64_t columns = min64(kHalfCols, cols - column);
      Square square;
      zip_rows(x + row * ldx + column, ldx, rows - row, columns, square);
      transpose(square);
      for (int64_t c = 0; c < columns; ++c)
        std::memcpy(y + (column + c) * ldy + row, &square.rows[c], sizeof square.rows[c]);
    }
  }
}

namespace {

// The part of the tile that belongs to some rows and one panel.
GemmTile part_of(const ReducedTile& t, int64_t column, int64_t first, int64_t rows) {
  GemmTile part{
      .c = t.c + first * t.ldc, .ldc = t.ldc, .rows = rows, .n = t.n, .k = t.k, .epilogue = t.epilogue};
  part.col_begin = column, part.col_end = min64(column + kPanelCols, t.col_end);
  if (part.epilogue.residual) part.epilogue.residual += first * part.epilogue.residual_stride;
  return part;
}

}  // namespace

void finish_bf16(const ReducedTile& t, int64_t column, int64_t first, int64_t rows, float* sums) {
  f32().finish_tile(part_of(t, column, first, rows), sums, kPanelCols);
}

void finish_int8(const ReducedTile& t, int64_t column, int64_t first, int64_t rows, float* sums,
                 bool offset) {
  const auto* scales = reinterpret_cast<const float*>(t.packed) + column;
  const auto* offsets = reinterpret_cast<const uint32_t*>(t.packed) + round_up(t.n, kPanelCols) + column;
  for (int64_t r = 0; r < rows; ++r) {
    float* row = sums + r * kPanelCols;
    uint32_t whole[kPanelCols];
    std::memcpy(whole, row, sizeof whole);
    if (offset)
      for (int64_t c = 0; c < kPanelCols; ++c) whole[c] -= offsets[c];
    for (int64_t c = 0; c < kPanelCols; ++c)
      row[c] = static_cast<float>(static_cast<int32_t>(whole[c])) * t.row_scale[first + r] * scales[c];
  }
  f32().finish_tile(part_of(t, column, first, rows), sums, kPanelCols);
}

void finish_halves(const HalfTile& h, int64_t column, int64_t first, int64_t rows, const float* sums) {
  const GemmTile part = part_of(h.product, column, first, rows);
  const Epilogue& e = part.epilogue;
  const int64_t cols = part.col_end - column;
  float bias[kPanelCols] = {}, value[kPanelCols];
  if (e.bias) std::memcpy(bias, e.bias + column, static_cast<size_t>(cols) * sizeof(float));
  for (int64_t r = 0; r < rows; ++r, sums += kPanelCols) {
    for (int64_t c = 0; c < kPanelCols; ++c) value[c] = to_bf16(sums[c]);
    if (e.bias)
      for (int64_t c = 0; c < kPanelCols; ++c) value[c] = to_bf16(value[c] + bias[c]);
    if (e.residual)
      for (int64_t c = 0; c < cols; ++c) value[c] += e.residual[r * e.residual_stride + column + c];
    if (h.out)
      for (int64_t c = 0; c < cols; ++c) h.out[(first + r) * part.ldc + column + c] = upper_half(value[c]);
    else
      std::memcpy(part.c + r * part.ldc + column, value, static_cast<size_t>(cols) * sizeof(float));
  }
}

}  // namespace vitrail::VT_ISA
