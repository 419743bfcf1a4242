// What a level is made of: the tables that its files fill, gathered by table.cpp, and the few functions they
// call across files. Constants, since a plan may ask for the table on a processor that cannot run the level.
#pragma once

#include "backend/cpu/isa/shape.h"
#include "backend/cpu/isa/table.h"

namespace vitrail::cpu::VT_ISA {

extern const GemmTable kGemm;
extern const PanelTable kPanels;
extern const RowGemmTable kRowGemms;
extern const AttentionTable kAttention;
extern const AttentionGradTable kAttentionGrad;
extern const NormTable kNorm;
extern const ElementwiseTable kElementwise;
extern const ReduceTable kReduce;
extern const UpdateTable kUpdate;
extern const ConvertTable kConvert;
extern const SpinTable kSpin;
extern const LowpKernels kBf16Gemms, kInt8Gemms;

// Sizes, by sizes.cpp.
int64_t packed_elems(int64_t n, int64_t k);
int64_t gemm_scratch_elems(int64_t rows, int64_t cols, int64_t k);
int64_t attention_scratch_elems(int64_t queries, int64_t keys, int64_t head_size);
int64_t attention_grad_scratch_elems(int64_t queries, int64_t keys, int64_t head_size);
namespace bf16 {
int64_t packed_bytes(int64_t n, int64_t k);
int64_t row_bytes(int64_t k);
int64_t tile_scratch_bytes(int64_t rows, int64_t cols, int64_t k);
}  // namespace bf16
namespace int8 {
int64_t packed_bytes(int64_t n, int64_t k);
int64_t row_bytes(int64_t k);
int64_t tile_scratch_bytes(int64_t rows, int64_t cols, int64_t k);
}  // namespace int8

// Low-precision GEMMs finish and round as the others do.
void finish_tile(const GemmTile& tile, const float* sums, int64_t lds);
void widen(Float16 from, const uint16_t* x, int64_t count, float* y);
void narrow(Float16 to, const float* x, int64_t count, uint16_t* y);

}  // namespace vitrail::cpu::VT_ISA
