#include "dist/transport.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace vitrail {

namespace {

// A block and its inputs stay in the first cache: memory is read once and written once.
constexpr size_t kBlock = 2048;

// Element types with the type their sums are kept in. Integers wrap around.
template <typename T>
struct Plain {
  using Stored = T;
  using Sum = T;
  static void widen(const T* from, T* to, size_t n) { std::copy_n(from, n, to); }
  static void add(const T* from, T* to, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] += from[i];
  }
};

struct Bf16 {
  using Stored = uint16_t;
  using Sum = float;
  static float wide(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static void widen(const uint16_t* from, float* to, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] = wide(from[i]);
  }
  static void add(const uint16_t* from, float* to, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] += wide(from[i]);
  }
  // This is f32_to_bf16 without a branch, so that the loop becomes vector instructions.
  static void narrow(const float* from, uint16_t* to, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(from[i]);
      const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16, nan = (bits >> 16) | 0x40u;
      to[i] = static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
    }
  }
};

struct Half {
  using Stored = uint16_t;
  using Sum = float;
  static void widen(const uint16_t* from, float* to, size_t n) {
    convert_floats(from, DType::kF16, to, DType::kF32, n);
  }
  static void add(const uint16_t* from, float* to, size_t n) {
    float wide[kBlock];
    widen(from, wide, n);
    for (size_t i = 0; i < n; ++i) to[i] += wide[i];
  }
  static void narrow(const float* from, uint16_t* to, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] = f32_to_f16(from[i]);
  }
};

template <typename Type>
void sum_blocks(std::span<const void* const> ins, std::span<void* const> outs, size_t count) {
  using Stored = typename Type::Stored;
  using Sum = typename Type::Sum;
  alignas(64) Sum sum[kBlock];
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t n = std::min(kBlock, count - first);
    Type::widen(static_cast<const Stored*>(ins[0]) + first, sum, n);
    for (const void* in : ins.subspan(1)) Type::add(static_cast<const Stored*>(in) + first, sum, n);
    const void* result = sum;
    alignas(64) Stored narrow[std::is_same_v<Sum, Stored> ? 1 : kBlock];
    if constexpr (!std::is_same_v<Sum, Stored>) {
      Type::narrow(sum, narrow, n);
      result = narrow;
    }
    for (void* out : outs) std::memcpy(static_cast<Stored*>(out) + first, result, n * sizeof(Stored));
  }
}

}  // namespace

bool can_sum(DType dtype) {
  return is_float(dtype) || dtype == DType::kI64 || dtype == DType::kI32;
}

void sum_ranges(DType dtype, std::span<const void* const> ins, std::span<void* const> outs, size_t count) {
  if (count == 0) return;
  switch (dtype) {
    case DType::kF64:
      return sum_blocks<Plain<double>>(ins, outs, count);
    case DType::kF32:
      return sum_blocks<Plain<float>>(ins, outs, count);
    case DType::kF16:
      return sum_blocks<Half>(ins, outs, count);
    case DType::kBF16:
      return sum_blocks<Bf16>(ins, outs, count);
    case DType::kI64:
      return sum_blocks<Plain<uint64_t>>(ins, outs, count);
    case DType::kI32:
      return sum_blocks<Plain<uint32_t>>(ins, outs, count);
    default:
      VT_CHECK(false, "ranks do not sum %s", to_string(dtype));
  }
}

size_t cut_of(size_t count, int r, int size, DType dtype) {
  const size_t line = 64 / size_of(dtype), lines = (count + line - 1) / line;
  return std::min(count, lines * static_cast<size_t>(r) / static_cast<size_t>(size) * line);
}

}  // namespace vitrail
