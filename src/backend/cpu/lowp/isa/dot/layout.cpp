#include "backend/cpu/lowp/isa/dot/layout.h"

#include <cstring>
#include <utility>

#include "backend/cpu/lowp/isa/dot/rounding.h"

namespace vitrail::cpu::VT_ISA {
namespace {

constexpr int64_t kHalfCols = kPanelCols / 2;

// A vector of sixteen words, and sixteen such vectors as a square.
typedef uint32_t WordVec __attribute__((vector_size(kStepBytes)));
struct Square {
  WordVec rows[kStepWords];
};

template <int kFrom, int... I>
inline void zip(const WordVec& a, const WordVec& b, WordVec& out, std::integer_sequence<int, I...>) {
  out = __builtin_shufflevector(a, b, (I % 2 * kStepWords + I / 2 + kFrom)...);
}

// Transposes the square by four rounds of interleaving row i with row i + 8.
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

// rows[w][c] = the word of x[2 w, c] and x[2 w + 1, c]; zero from row `rows` and from column `columns` on.
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

// Packs one half of a panel. reduce(column of the half, from, count, to) rounds values of one column, with
// each of its parts kHalfBytes after the one before; columns from `columns` on are zero.
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

// Calls body(first column, columns, start of the half panel) for the columns [first, first + count), and with
// the last of them also for the columns that pad the last panel.
template <typename Form, typename Body>
void for_half_panels(int64_t n, int64_t first, int64_t count, int64_t k, std::byte* packed,
                     const Body& body) {
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

void pack_bf16(const float* w, int64_t n, int64_t first, int64_t count, int64_t k, std::byte* packed) {
  for_half_panels<Bf16>(n, first, count, k, packed, [&](int64_t column, int64_t columns, std::byte* to) {
    pack_half<Bf16>(columns, k, to, [&](int64_t c, int64_t from, int64_t values, std::byte* row) {
      round_values(w + (column + c) * k + from, values, reinterpret_cast<uint16_t*>(row));
    });
  });
}

void pack_int8(const float* w, int64_t n, int64_t first, int64_t count, int64_t k, std::byte* packed) {
  auto* scales = reinterpret_cast<float*>(packed);
  auto* offsets = reinterpret_cast<uint32_t*>(packed) + round_up(n, kPanelCols);
  for_half_panels<Int8>(n, first, count, k, packed, [&](int64_t column, int64_t columns, std::byte* to) {
    float inverse[kHalfCols];
    for (int64_t c = 0; c < kHalfCols; ++c) {
      const Int8Scale s = c < columns ? int8_scale(w + (column + c) * k, k) : Int8Scale{0, 0};
      scales[column + c] = s.scale;
      inverse[c] = s.inverse;
      offsets[column + c] = 0;
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
  for_half_panels<Split>(n, first, count, k, packed, [&](int64_t column, int64_t columns, std::byte* to) {
    pack_half<Split>(columns, k, to, [&](int64_t c, int64_t from, int64_t values, std::byte* row) {
      split(w + (column + c) * k + from, values, kHalfBytes / Split::kBytes,
            reinterpret_cast<uint16_t*>(row));
    });
  });
}

void pack_bf16_tensor_rows(const uint16_t* w, int64_t n, int64_t first, int64_t count, int64_t k,
                           std::byte* packed) {
  for_half_panels<Bf16>(n, first, count, k, packed, [&](int64_t column, int64_t columns, std::byte* to) {
    pack_half<Bf16>(columns, k, to, [&](int64_t c, int64_t from, int64_t values, std::byte* row) {
      std::memcpy(row, w + (column + c) * k + from, static_cast<size_t>(values * Bf16::kBytes));
    });
  });
}

void pack_bf16_tensor_matrix(const uint16_t* w, int64_t n, int64_t first, int64_t count, int64_t k,
                             std::byte* packed) {
  for_half_panels<Bf16>(n, first, count, k, packed, [&](int64_t column, int64_t columns, std::byte* to) {
    for (int64_t row = 0; row < k; row += 2 * kStepWords, to += kPanelStepBytes) {
      Square square;
      zip_rows(w + row * n + column, n, columns > 0 ? k - row : 0, columns, square);
      std::memcpy(to, &square, sizeof square);
    }
  });
}

void transpose_bf16(const uint16_t* x, int64_t ldx, int64_t rows, int64_t cols, uint16_t* y, int64_t ldy) {
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

}  // namespace vitrail::cpu::VT_ISA
