// The parts of one instruction set: the tables that its files fill, which table.cpp gathers, and the few
// functions called across files. The tables are constants, since a plan may read them on a processor that
// cannot run the instruction set.
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
// Only instruction sets with dot products have these: lowp/isa/dot/vnni.cpp and amx.cpp each define them, and
// an instruction set is built with one of the two.
extern const LowpKernels kSplitGemms;
extern const Bf16TensorKernels kBf16TensorGemms;

// The sizes, defined in sizes.cpp.
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

// Low-precision GEMMs share the epilogue and the rounding of the f32 ones.
void finish_tile(const GemmTile& tile, const float* sums, int64_t lds);
void widen(Float16 from, const uint16_t* x, int64_t count, float* y);
void narrow(Float16 to, const float* x, int64_t count, uint16_t* y);

}  // namespace vitrail::cpu::VT_ISA
