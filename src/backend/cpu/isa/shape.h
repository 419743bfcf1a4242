// Computes what follows from the vector width of an instruction set: the size of the micro-kernel, the blocks
// of K, and the parts of scratch. They are numbers alone, compiled also without the instruction set
// (sizes.cpp), so that memory can be planned for a processor other than this one.
#pragma once

#include <cstdint>

namespace vitrail::cpu::VT_ISA {

#if defined(VT_LANES)
inline constexpr int kLanes = VT_LANES;
#elif defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

// The micro-kernel has six rows by two vectors, or by four where there are 32 registers: its sums leave
// registers for a row of B and a value of A. The wider a panel is, the fewer loads a multiply-add needs.
inline constexpr int kMr = 6;
inline constexpr int kWide = kLanes == 16 ? 4 : 2;
inline constexpr int kNr = kWide * kLanes;

// The standard's and base's functions of this kind are not used where an instruction set is compiled: the
// linker keeps one copy of an inline function for the whole program, and it may be one with that set's code.
inline constexpr int64_t min64(int64_t a, int64_t b) {
  return a < b ? a : b;
}
inline constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
inline constexpr int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

inline constexpr int64_t kBlockK = kLanes == 16 ? 128 : 384;  // of f32 GEMMs: 32 or 24 KB of a panel
namespace bf16 {
inline constexpr int64_t kBlockK = kLanes == 16 ? 128 : 256;
inline constexpr int64_t kWidened = kBlockK * kNr;  // floats
}  // namespace bf16
namespace int8 {
inline constexpr int64_t kBlockK = kLanes == 16 ? 256 : 512;
inline constexpr int64_t kWidenedBytes = kBlockK * kNr * 2;
// The bytes of a packed int8 weight; its scales follow them.
inline constexpr int64_t weight_bytes(int64_t n, int64_t k) {
  return round_up(round_up(n, kNr) * round_up(k, 2), 64);
}
}  // namespace int8

}  // namespace vitrail::cpu::VT_ISA
