// Sums of the values of several ranks, added in the order given; those of 16-bit types in f32, rounded once.
#include "dist/transport.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"

namespace vitrail {

namespace {

// A block and its inputs stay in the first cache: memory is read once and written once.
constexpr size_t kBlock = 2048;

// Loops that are inlined into functions for one instruction set each, and become its vector instructions.
#define VT_LOOP [[gnu::always_inline]] static inline

// Element types with the type their sums are kept in. Integers wrap around.
template <typename T>
struct Plain {
  using Stored = T;
  using Sum = T;
  VT_LOOP void widen(const T* from, T* to, size_t n) { std::memcpy(to, from, n * sizeof(T)); }
  VT_LOOP void add(const T* from, T* to, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] += from[i];
  }
};

struct Bf16 {
  using Stored = uint16_t;
  using Sum = float;
  VT_LOOP float wide(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  VT_LOOP void widen(const uint16_t* from, float* to, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] = wide(from[i]);
  }
  VT_LOOP void add(const uint16_t* from, float* to, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] += wide(from[i]);
  }
  // This is f32_to_bf16 without a branch.
  VT_LOOP void narrow(const float* from, uint16_t* to, size_t n) {
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
  VT_LOOP void widen(const uint16_t* from, float* to, size_t n) {
    convert_floats(from, DType::kF16, to, DType::kF32, n);
  }
  VT_LOOP void add(const uint16_t* from, float* to, size_t n) {
    float wide[kBlock];
    widen(from, wide, n);
    for (size_t i = 0; i < n; ++i) to[i] += wide[i];
  }
  // This is f32_to_f16 without a branch: both roundings are made and one is taken. Two loops, because the
  // compiler would compute the first rounding only where it is needed, by a branch.
  VT_LOOP void narrow(const float* from, uint16_t* to, size_t n) {
    uint32_t small[kBlock];  // of subnormal f16: the addition rounds at 2^-24
    for (size_t i = 0; i < n; ++i)
      small[i] = std::bit_cast<uint32_t>(std::fabs(from[i]) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
    for (size_t i = 0; i < n; ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(from[i]), magnitude = bits & 0x7fffffffu;
      const uint32_t usual = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
      uint32_t half = magnitude < 0x38800000u ? small[i] : usual;
      half = magnitude >= 0x477ff000u ? 0x7c00u : half;
      half = magnitude > 0x7f800000u ? 0x7e00u : half;
      to[i] = static_cast<uint16_t>(((bits >> 16) & 0x8000u) | half);
    }
  }
};

using Inputs = std::span<const void* const>;
using Outputs = std::span<void* const>;

template <typename Type>
VT_LOOP void sum_blocks(Inputs ins, Outputs outs, size_t count) {
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
#undef VT_LOOP

#if defined(__x86_64__)
template <typename Type>
[[gnu::target("avx2")]] void sum_by_avx2(Inputs ins, Outputs outs, size_t count) {
  sum_blocks<Type>(ins, outs, count);
}
#endif

// Instruction sets differ in speed and not in bits: every operation is rounded alike.
template <typename Type>
void sum_here(Inputs ins, Outputs outs, size_t count) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return sum_by_avx2<Type>(ins, outs, count);
#endif
  sum_blocks<Type>(ins, outs, count);
}

}  // namespace

bool can_sum(DType dtype) {
  return is_float(dtype) || dtype == DType::kI64 || dtype == DType::kI32;
}

void sum_ranges(DType dtype, std::span<const void* const> ins, std::span<void* const> outs, size_t count) {
  if (count == 0) return;
  switch (dtype) {
    case DType::kF64:
      return sum_here<Plain<double>>(ins, outs, count);
    case DType::kF32:
      return sum_here<Plain<float>>(ins, outs, count);
    case DType::kF16:
      return sum_here<Half>(ins, outs, count);
    case DType::kBF16:
      return sum_here<Bf16>(ins, outs, count);
    case DType::kI64:
      return sum_here<Plain<uint64_t>>(ins, outs, count);
    case DType::kI32:
      return sum_here<Plain<uint32_t>>(ins, outs, count);
    default:
      VT_CHECK(false, "ranks do not sum %s", to_string(dtype));
  }
}

size_t cut_of(size_t count, int r, int size, DType dtype) {
  const size_t line = 64 / size_of(dtype), lines = ceil_div(count, line);
  return std::min(count, lines * static_cast<size_t>(r) / static_cast<size_t>(size) * line);
}

}  // namespace vitrail
