// GEMMs of bf16 values without an instruction for them. The weights are stored as bf16 in panels [k][kNr]; a
// block of a panel is widened to f32 once for all rows of a tile. Rows of A are prepared as f32 that hold
// bf16 values.
#include "backend/cpu/gemm/isa/micro.h"
#include "backend/cpu/isa/kernels.h"

namespace vitrail::cpu::VT_ISA::bf16 {
void pack(const float* w, int64_t, int64_t first, int64_t count, int64_t k, std::byte* packed) {
  constexpr int64_t kDepth = 32;
  float chunk[kDepth * kNr];
  for (int64_t column = first; column < first + count; column += kNr) {
    auto* panel = reinterpret_cast<uint16_t*>(packed) + column * k;
    for (int64_t begin = 0; begin < k; begin += kDepth) {
      const int64_t depth = min64(kDepth, k - begin);
      pack_rows(w + column * k + begin, k, min64(kNr, first + count - column), depth, chunk);
      narrow(Float16::kBF16, chunk, depth * kNr, panel + begin * kNr);
    }
  }
}

void prepare_rows(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float*) {
  constexpr int64_t kChunk = 256;
  uint16_t rounded[kChunk];
  auto* to = reinterpret_cast<float*>(out);
  for (int64_t r = 0; r < rows; ++r, x += ldx, to += k) {
    for (int64_t i = 0; i < k; i += kChunk) {
      narrow(Float16::kBF16, x + i, min64(kChunk, k - i), rounded);
      widen(Float16::kBF16, rounded, min64(kChunk, k - i), to + i);
    }
  }
}

void tile(const LowpTile& t) {
  const auto* a = reinterpret_cast<const float*>(t.a);
  const auto* weight = reinterpret_cast<const uint16_t*>(t.packed);
  GemmTile finished;
  finished.c = t.c;
  finished.ldc = t.ldc;
  finished.rows = t.rows;
  finished.epilogue = t.epilogue;
  for (int64_t begin = 0; begin < t.k; begin += kBlockK) {
    const int64_t depth = min64(kBlockK, t.k - begin);
    for (int64_t column = t.col_begin; column < t.col_end; column += kNr) {
      float* sums = t.scratch + kWidened + (column - t.col_begin) * t.rows;
      widen(Float16::kBF16, weight + column * t.k + begin * kNr, depth * kNr, t.scratch);
      multiply_panel(a + begin, t.row_bytes / 4, t.rows, t.scratch, kNr, depth, begin > 0, sums, kNr);
      if (begin + depth < t.k) continue;
      finished.col_begin = column;
      finished.col_end = min64(column + kNr, t.col_end);
      finish_tile(finished, sums, kNr);
    }
  }
}

}  // namespace vitrail::cpu::VT_ISA::bf16

namespace vitrail::cpu::VT_ISA {

constinit const LowpKernels kBf16Gemms = {kMr,
                                          kNr,
                                          bf16::packed_bytes,
                                          bf16::pack,
                                          bf16::row_bytes,
                                          bf16::prepare_rows,
                                          bf16::tile_scratch_bytes,
                                          bf16::tile};

}  // namespace vitrail::cpu::VT_ISA
