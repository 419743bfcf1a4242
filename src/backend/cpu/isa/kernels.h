// What kernels.cpp gathers into the table of one instruction set; each function is described in table.h.
#pragma once

#include "backend/cpu/isa/shape.h"
#include "backend/cpu/isa/table.h"

namespace vitrail::VT_ISA {

int64_t packed_elems(int64_t n, int64_t k);
void pack_weights(const float* w, int64_t n, int64_t k, float* packed);
void pack_matrix(const float* b, int64_t ldb, int64_t k, int64_t n, int64_t depth, float* packed);
int64_t gemm_scratch_elems(int64_t rows, int64_t cols, int64_t k);
void gemm_tile(const GemmTile& tile);
void finish_tile(const GemmTile& tile, const float* sums, int64_t lds);

void pack_strips(const float* x, int64_t ldx, int64_t rows, int64_t cols, int64_t depth, float* packed);
void pack_panels(const float* x, int64_t ldx, int64_t rows, int64_t cols, int64_t depth, float* packed);
void row_product_tile(const RowProductTile& tile);
void panel_product(const PanelProduct& product);

int64_t attention_scratch_elems(int64_t queries, int64_t keys, int64_t head_size);
void attention_tile(const AttentionTile& tile);
int64_t attention_grad_scratch_elems(int64_t queries, int64_t keys, int64_t head_size);
void attention_grad_tile(const AttentionGradTile& tile);

void layernorm_rows(const NormRows& args);
void softmax_rows(const float* x, int64_t rows, int64_t width, float* y);
void activate(Activation act, const float* x, int64_t count, float* y);
void add(const float* a, const float* b, int64_t count, float* y);
void add_row(const float* x, const float* row, int64_t rows, int64_t width, float* y);
void scale_row(const float* x, const float* row, int64_t rows, int64_t width, float* y);
void mean_rows(const float* x, int64_t x_stride, int64_t rows, int64_t width, float* y);

void layernorm_grad_rows(const NormGradRows& args);
void activate_grad(Activation act, const float* x, const float* dy, int64_t count, float* dx);
void tanh_grad(const float* y, const float* dy, int64_t count, float* dx);
void sum_rows(const float* x, const float* y, int64_t stride, int64_t rows, int64_t width, float* out);
void multiply(const float* x, float factor, int64_t count, float* y);
void drop_elements(const DropElements& args);

double square_sum(const float* x, int64_t count);
void sgd_update(const UpdateElements& args, float* m, float momentum, bool nesterov);
void adam_update(const UpdateElements& args, const MomentElements& moments);
void lion_update(const UpdateElements& args, float* m, float mix_rate, float m_rate);
SquareSums lamb_moments(const UpdateElements& args, const MomentElements& moments);
void lamb_update(const UpdateElements& args, const MomentElements& moments);
void move_towards(const float* x, float rate, int64_t count, float* mean);

void widen(Half from, const uint16_t* x, int64_t count, float* y);
void narrow(Half to, const float* x, int64_t count, uint16_t* y);

namespace bf16 {
int64_t packed_bytes(int64_t n, int64_t k);
void pack(const float* w, int64_t n, int64_t first, int64_t count, int64_t k, std::byte* packed);
int64_t row_bytes(int64_t k);
void prepare_rows(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float* row_scale);
int64_t tile_scratch_bytes(int64_t rows, int64_t cols, int64_t k);
void tile(const ReducedTile& t);
}  // namespace bf16
namespace int8 {
int64_t packed_bytes(int64_t n, int64_t k);
void pack(const float* w, int64_t n, int64_t first, int64_t count, int64_t k, std::byte* packed);
int64_t row_bytes(int64_t k);
void prepare_rows(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float* row_scale);
int64_t tile_scratch_bytes(int64_t rows, int64_t cols, int64_t k);
void tile(const ReducedTile& t);
}  // namespace int8

inline constexpr int kSpinChains = 12;  // more than latency times units
float spin(int64_t rounds);

}  // namespace vitrail::VT_ISA
