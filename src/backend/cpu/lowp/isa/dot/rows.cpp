// Rows of f32 activations prepared for a low-precision GEMM: rounded to bf16, split in two, or in 8 bits.
#include <cstring>

#include "backend/cpu/lowp/isa/dot/layout.h"
#include "backend/cpu/lowp/isa/dot/rounding.h"

namespace vitrail::cpu::VT_ISA {
namespace {

// Calls reduce(values of a step, target) for each step of a row; the last step is padded with zeros.
template <typename Form, typename Reduce>
void prepare_row(const float* x, int64_t k, std::byte* to, int64_t step_bytes, const Reduce& reduce) {
  constexpr int64_t kStepValues = kStepBytes / Form::kBytes;
  for (int64_t from = 0; from < k; from += kStepValues, to += Form::kParts * step_bytes) {
    if (k - from >= kStepValues) {
      reduce(x + from, to);
      continue;
    }
    float last[kStepValues] = {};
    std::memcpy(last, x + from, static_cast<size_t>(k - from) * sizeof(float));
    reduce(last, to);
  }
}

// Calls row(index, values, target of its first step, bytes between steps) for each of `rows` rows.
template <typename Form, typename Row>
void for_rows(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, const Row& row) {
  const RowOrder order = prepared_order(row_bytes<Form>(k));
  for (int64_t r = 0; r < rows; ++r)
    row(r, x + r * ldx, out + r / kRowBlock * order.block + r % kRowBlock * order.row, order.step);
}

void prepare_bytes(const float* x, int64_t ldx, int64_t rows, int64_t k, uint8_t flip, std::byte* out,
                   float* row_scale) {
  for_rows<Int8>(x, ldx, rows, k, out, [&](int64_t r, const float* row, std::byte* to, int64_t step_bytes) {
    const Int8Scale s = int8_scale(row, k);
    row_scale[r] = s.scale;
    prepare_row<Int8>(row, k, to, step_bytes, [&](const float* values, std::byte* bytes) {
      quantize_bytes(values, kStepBytes, s.inverse, flip, bytes);
    });
  });
}

}  // namespace

void prepare_bf16(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float*) {
  for_rows<Bf16>(x, ldx, rows, k, out, [&](int64_t, const float* row, std::byte* to, int64_t step_bytes) {
    prepare_row<Bf16>(row, k, to, step_bytes, [](const float* values, std::byte* rounded) {
      round_values(values, kStepBytes / Bf16::kBytes, reinterpret_cast<uint16_t*>(rounded));
    });
  });
}

void prepare_split(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float*) {
  for_rows<Split>(x, ldx, rows, k, out, [&](int64_t, const float* row, std::byte* to, int64_t step_bytes) {
    prepare_row<Split>(row, k, to, step_bytes, [=](const float* values, std::byte* parts) {
      split(values, kStepBytes / Split::kBytes, step_bytes / Split::kBytes,
            reinterpret_cast<uint16_t*>(parts));
    });
  });
}

void prepare_int8(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float* row_scale) {
  prepare_bytes(x, ldx, rows, k, 0, out, row_scale);
}

void prepare_uint8(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float* row_scale) {
  prepare_bytes(x, ldx, rows, k, 0x80, out, row_scale);
}

}  // namespace vitrail::cpu::VT_ISA
