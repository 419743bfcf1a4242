// The AMX layer: eight tile registers of up to 16 rows x 64 bytes and the few instructions on them. Where the
// compiler does not target AMX they are emulated in plain C++, slow but with the same layouts, so that
// kernels written on this layer can be tested on any machine; the program itself never runs the emulation.
#pragma once

#include <cstdint>
#include <cstring>

namespace vitrail::cpu::VT_ISA {

inline constexpr int kTileRows = 16;
inline constexpr int kTileRowBytes = 64;
inline constexpr int kTiles = 8;

// The memory operand of LDTILECFG, palette 1. A tile configured with zero rows must not be used.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  void set(int tile, int64_t tile_rows) {
    rows[tile] = static_cast<uint8_t>(tile_rows);
    row_bytes[tile] = tile_rows > 0 ? kTileRowBytes : 0;
  }
};
static_assert(sizeof(TileShapes) == 64);

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__)
// This is inline assembly, since the compilers' intrinsics want the register's number as a literal in the
// source, and do not declare that a load reads memory.
inline void tile_configure(const TileShapes& shapes) {
  __asm__ volatile("ldtilecfg %0" ::"m"(shapes));
}
inline void tile_release() {
  __asm__ volatile("tilerelease" ::: "memory");
}
template <int kTile>
inline void tile_zero() {
  __asm__ volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kTile>
inline void tile_load(const void* from, int64_t stride) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
inline void tile_store(void* to, int64_t stride) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kTile) : "memory");
}
template <int kC, int kA, int kB>
inline void tile_dot_bf16() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}
template <int kC, int kA, int kB>
inline void tile_dot_int8() {
  __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}
#else
struct EmulatedTiles {
  TileShapes shapes;
  uint8_t bytes[kTiles][kTileRows][kTileRowBytes];

  template <typename T>
  T value(int tile, int row, int at) const {
    T v;
    std::memcpy(&v, &bytes[tile][row][at * static_cast<int>(sizeof(T))], sizeof(T));
    return v;
  }
  template <typename T>
  void set(int tile, int row, int at, T v) {
    std::memcpy(&bytes[tile][row][at * static_cast<int>(sizeof(T))], &v, sizeof(T));
  }
  // Widens a bf16: it is the upper half of a float.
  float half(int tile, int row, int at) const {
    const uint32_t bits = static_cast<uint32_t>(value<uint16_t>(tile, row, at)) << 16;
    float v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
  }
};

// A thread that has not configured its tiles cannot use any: the real instructions would fault, the emulated
// ones trap.
inline EmulatedTiles& emulated_tiles() {
  static thread_local EmulatedTiles tiles{};
  return tiles;
}
inline void check_tile(bool fits) {
  if (!fits) __builtin_trap();
}

inline void tile_configure(const TileShapes& shapes) {
  check_tile(shapes.palette == 1 && shapes.start_row == 0);
  for (int t = 0; t < 16; ++t) {
    check_tile(shapes.rows[t] <= kTileRows && shapes.row_bytes[t] <= kTileRowBytes);
    check_tile((shapes.rows[t] == 0) == (shapes.row_bytes[t] == 0) && (t < kTiles || shapes.rows[t] == 0));
  }
  emulated_tiles() = {shapes, {}};
}
inline void tile_release() {
  emulated_tiles() = {};
}
template <int kTile>
inline void tile_zero() {
  EmulatedTiles& t = emulated_tiles();
  check_tile(t.shapes.rows[kTile] > 0);
  std::memset(t.bytes[kTile], 0, sizeof t.bytes[kTile]);
}
template <int kTile>
inline void tile_load(const void* from, int64_t stride) {
  tile_zero<kTile>();
  EmulatedTiles& t = emulated_tiles();
  for (int r = 0; r < t.shapes.rows[kTile]; ++r)
    std::memcpy(t.bytes[kTile][r], static_cast<const char*>(from) + r * stride, t.shapes.row_bytes[kTile]);
}
template <int kTile>
inline void tile_store(void* to, int64_t stride) {
  EmulatedTiles& t = emulated_tiles();
  check_tile(t.shapes.rows[kTile] > 0);
  for (int r = 0; r < t.shapes.rows[kTile]; ++r)
    std::memcpy(static_cast<char*>(to) + r * stride, t.bytes[kTile][r], t.shapes.row_bytes[kTile]);
}

// Checks the shapes that every dot product requires: C[M, N] += A[M, K] B[K, N] in 4-byte words.
template <int kC, int kA, int kB>
inline void check_dot(const TileShapes& s) {
  check_tile(s.rows[kC] > 0 && s.rows[kC] == s.rows[kA] && s.row_bytes[kC] == s.row_bytes[kB]);
  check_tile(s.row_bytes[kA] == 4 * s.rows[kB]);
}

// Even and odd products are summed separately, then together, then added to C, as the instruction does.
template <int kC, int kA, int kB>
inline void tile_dot_bf16() {
  EmulatedTiles& t = emulated_tiles();
  check_dot<kC, kA, kB>(t.shapes);
  for (int m = 0; m < t.shapes.rows[kC]; ++m) {
    for (int n = 0; n < t.shapes.row_bytes[kC] / 4; ++n) {
      float even = 0, odd = 0;
      for (int k = 0; k < t.shapes.rows[kB]; ++k) {
        even = __builtin_fmaf(t.half(kA, m, 2 * k), t.half(kB, k, 2 * n), even);
        odd = __builtin_fmaf(t.half(kA, m, 2 * k + 1), t.half(kB, k, 2 * n + 1), odd);
      }
      t.set(kC, m, n, t.template value<float>(kC, m, n) + (even + odd));
    }
  }
}
template <int kC, int kA, int kB>
inline void tile_dot_int8() {
  EmulatedTiles& t = emulated_tiles();
  check_dot<kC, kA, kB>(t.shapes);
  for (int m = 0; m < t.shapes.rows[kC]; ++m) {
    for (int n = 0; n < t.shapes.row_bytes[kC] / 4; ++n) {
      int32_t sum = t.template value<int32_t>(kC, m, n);
      for (int k = 0; k < t.shapes.rows[kB]; ++k)
        for (int i = 0; i < 4; ++i)
          sum += t.template value<int8_t>(kA, m, 4 * k + i) * t.template value<int8_t>(kB, k, 4 * n + i);
      t.set(kC, m, n, sum);
    }
  }
}
#endif

}  // namespace vitrail::cpu::VT_ISA
