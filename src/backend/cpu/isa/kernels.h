// What kernels.cpp gathers into the table of one instruction set; each function is described in table.h.
#pragma once

#include "backend/cpu/isa/table.h"
#include "backend/cpu/isa/vec.h"

namespace vitrail::VT_ISA {

int64_t packed_elems(int64_t n, int64_t k);
void pack_weights(const float* w, int64_t n, int64_t k, float* packed);
int64_t gemm_scratch_elems(int64_t rows, int64_t cols, int64_t k);
void gemm_tile(const GemmTile& tile);
void finish_tile(const GemmTile& tile, const float* sums, int64_t lds);

int64_t attention_scratch_elems(int64_t queries, int64_t keys, int64_t head_size);
void attention_tile(const AttentionTile& tile);

void layernorm_rows(const NormRows& args);
void softmax_rows(const float* x, int64_t rows, int64_t width, float* y);
void activate(Activation act, const float* x, int64_t count, float* y);
void add(const float* a, const float* b, int64_t count, float* y);
void add_row(const float* x, const float* row, int64_t rows, int64_t width, float* y);
void scale_row(const float* x, const float* row, int64_t rows, int64_t width, float* y);
void mean_rows(const float* x, int64_t x_stride, int64_t rows, int64_t width, float* y);

inline constexpr int kSpinChains = 12;  // more than latency times units
float spin(int64_t rounds);

}  // namespace vitrail::VT_ISA
