// The raw f32 kernels of one instruction set as a table of functions, and what they take. Every kernel
// works on one fixed tile, single-threaded, in memory the caller gives; each output value is computed by
// the same chain of operations whatever tile it falls in, so tiling never changes a result.
// Used by the drivers of backend/cpu; knows nothing of ops, tensors or threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vitrail {

enum class Activation { kNone, kGeluErf, kGeluTanh };

// What happens to a product on its way to memory, in this order; a null pointer leaves a step out:
// c = residual + scale * act(sum + bias). `residual` may be the output itself.
struct Epilogue {
  const float* bias = nullptr;  // [n]
  Activation act = Activation::kNone;
  const float* scale = nullptr;  // [n]
  const float* residual = nullptr;
  int64_t residual_stride = 0;  // elements between rows
};

// c[rows, col_begin..col_end) = epilogue(a[rows, k] * w[n, k]^T), w packed by pack_weights.
struct GemmTile {
  const float* a = nullptr;
  int64_t lda = 0;
  const float* packed = nullptr;  // the whole weight
  float* c = nullptr;             // row 0, column 0 of the whole width
  int64_t ldc = 0;
  int64_t rows = 0, n = 0, k = 0;
  int64_t col_begin = 0, col_end = 0;  // col_begin a multiple of nr
  Epilogue epilogue;                   // residual at row 0, column 0
  float* scratch = nullptr;            // gemm_scratch_elems(rows, col_end - col_begin, k), 64-byte aligned
  const float* next = nullptr;         // a panel this thread will probably want after the tile: fetched ahead
};

// c[rows, cols] (+)= a[depth, rows]^T b[depth, cols], of a matrix packed by pack_strips and one by
// pack_panels.
struct RowProductTile {
  const float *strips = nullptr, *panels = nullptr;  // the first of the tile's
  int64_t depth = 0;
  float* c = nullptr;
  int64_t ldc = 0;
  int64_t rows = 0, cols = 0;
  bool add = false;
};

// out[rows, cols] = a[rows, k] * panel, or a[k, rows]^T * panel: products of few columns, with a matrix as it
// lies. panel[k, nr], out with row stride nr; the vectors that hold the columns are written whole.
struct PanelProduct {
  const float* a = nullptr;
  int64_t lda = 0, rows = 0;
  const float* panel = nullptr;
  int64_t cols = 0, k = 0;
  bool transposed = false;
  float* out = nullptr;
};

// out = softmax(scale * q k^T) v for some query rows of one head.
struct AttentionTile {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  int64_t q_stride = 0, k_stride = 0, v_stride = 0;  // elements between tokens
  float* out = nullptr;
  int64_t out_stride = 0;
  int64_t queries = 0, keys = 0, head_size = 0;
  float scale = 1;
  float* scratch = nullptr;  // attention_scratch_elems(queries, keys, head_size), 64-byte aligned
};

// y = (x - mean) / sqrt(var + eps) * gamma + beta over rows of `width`; y may be x.
struct NormRows {
  const float* x = nullptr;
  int64_t x_stride = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  int64_t rows = 0, width = 0;
  const float *gamma = nullptr, *beta = nullptr;
  float eps = 0;
};

// The gradient of attention for one head, the weights computed again: dq, dk and dv from q, k, v and dout.
struct AttentionGradTile {
  const float *q = nullptr, *k = nullptr, *v = nullptr, *dout = nullptr;
  int64_t q_stride = 0, k_stride = 0, v_stride = 0, dout_stride = 0;  // elements between tokens
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;                  // strides as q, k and v
  int64_t queries = 0, keys = 0, head_size = 0;
  float scale = 1;
  float* scratch = nullptr;  // attention_grad_scratch_elems(queries, keys, head_size), 64-byte aligned
};

// The gradient of layernorm: dx of every row; dgamma and dbeta [width] are added to, null: not wanted.
struct NormGradRows {
  const float *x = nullptr, *dy = nullptr;
  float* dx = nullptr;
  int64_t stride = 0;  // elements between rows of all three
  int64_t rows = 0, width = 0;
  const float* gamma = nullptr;
  float eps = 0;
  float *dgamma = nullptr, *dbeta = nullptr;
  const float* residual = nullptr;  // added to dx, which may lie there too
};

// y = x * scale where the counter hash of (stream, index + i), shifted right by 11, reaches `threshold`, else
// 0.
struct DropElements {
  const float* x = nullptr;
  float* y = nullptr;
  int64_t count = 0;
  uint64_t stream = 0, index = 0, threshold = 0;
  float scale = 1;
};

// Elements of one parameter in an update. The gradient is factor * sum + coupled * w, and sum becomes zero.
struct UpdateElements {
  float *w = nullptr, *sum = nullptr;
  int64_t count = 0;
  float factor = 1, coupled = 0;
  float shrink = 0, lr = 0;  // w -= shrink * w + lr * direction
};
// Running means of the gradient and its square, x += rate * (gradient - x), and the direction they give:
// correction * m / (root * sqrt(v) + eps).
struct MomentElements {
  float *m = nullptr, *v = nullptr;
  float m_rate = 0, v_rate = 0;
  float correction = 1, root = 1, eps = 0;
};
struct SquareSums {
  double param = 0, update = 0;
};

// 16-bit floats as raw patterns.
enum class Half { kF16, kBF16 };

// A product in another form than f32: rows of A and the weight are rounded to it, or cut into parts, first.
struct ReducedTile {
  const std::byte* a = nullptr;  // rows made by prepare_rows, the first a multiple of row_step
  int64_t row_bytes = 0;
  const float* row_scale = nullptr;   // [rows], what a row's values were divided by; null: nothing (bf16)
  const std::byte* packed = nullptr;  // the whole weight, made by pack (its own scales inside)
  float* c = nullptr;                 // row 0, column 0 of the whole width
  int64_t ldc = 0;
  int64_t rows = 0, n = 0, k = 0;
  int64_t col_begin = 0, col_end = 0;  // col_begin a multiple of `cols`
  Epilogue epilogue;
  float* scratch = nullptr;  // tile_scratch_bytes(rows, cols, k), 64-byte aligned
};

// The reduced products of one arithmetic; all null where a level has none.
struct ReducedKernels {
  int row_step = 0, cols = 0;  // a tile begins at a row that is a multiple of row_step, and a column of cols
  int64_t (*packed_bytes)(int64_t n, int64_t k) = nullptr;
  // Columns [first, first + count) of w row-major [n, k], first a multiple of cols; packed: the whole weight.
  void (*pack)(const float* w, int64_t n, int64_t first, int64_t count, int64_t k,
               std::byte* packed) = nullptr;
  // Row r of A, a multiple of row_step, is prepared r * row_bytes after the first; in between they may lie in
  // any order, with room for whole row steps. A call of prepare_rows begins with such a row and ends before
  // another, or with the last.
  int64_t (*row_bytes)(int64_t k) = nullptr;
  void (*prepare_rows)(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out,
                       float* row_scale) = nullptr;
  int64_t (*tile_scratch_bytes)(int64_t rows, int64_t cols, int64_t k) = nullptr;
  void (*tile)(const ReducedTile&) = nullptr;
};

// A product of bf16 tensors as they lie, rounded to bf16 after each of its steps.
struct HalfTile {
  // a: rows of bf16, zero from k to a multiple of 32, row_bytes apart; of the epilogue bias and residual
  // alone.
  ReducedTile product;
  uint16_t* out = nullptr;  // row 0, column 0 of the result in bf16; null: in f32, to product.c
};

// Products of bf16 tensors; all null where a level has none. Weights are packed as ReducedKernels' of bf16.
struct HalfKernels {
  int row_step = 0;  // rows of a tile are best a multiple
  // Columns [first, first + count) of a weight that lies as w[n, k], or as w[k, n]; first a multiple of cols.
  void (*pack_rows)(const uint16_t* w, int64_t n, int64_t first, int64_t count, int64_t k,
                    std::byte* packed) = nullptr;
  void (*pack_matrix)(const uint16_t* w, int64_t n, int64_t first, int64_t count, int64_t k,
                      std::byte* packed) = nullptr;
  // y[cols, rows] = x[rows, cols]^T, rows of y filled up with zeros to a multiple of 32.
  void (*transpose)(const uint16_t* x, int64_t ldx, int64_t rows, int64_t cols, uint16_t* y,
                    int64_t ldy) = nullptr;
  // c = residual + bf16(bf16(sum) + bias)
  void (*tile)(const HalfTile&) = nullptr;
  // c = epilogue(sum) in f32; a as HalfTile's.
  void (*wide_tile)(const ReducedTile&) = nullptr;
};

struct IsaKernels {
  const char* name;
  int lanes;   // floats in a vector
  int mr, nr;  // rows and columns of the micro-kernel

  int64_t (*packed_elems)(int64_t n, int64_t k);
  void (*pack_weights)(const float* w, int64_t n, int64_t k, float* packed);  // w row-major [n, k]
  // b row-major [k, n] into panels of `depth` >= k rows; packed points at the first row to fill.
  void (*pack_matrix)(const float* b, int64_t ldb, int64_t k, int64_t n, int64_t depth, float* packed);
  int64_t (*gemm_scratch_elems)(int64_t rows, int64_t cols, int64_t k);
  void (*gemm_tile)(const GemmTile&);
  // Only the last step of gemm_tile: c = epilogue(sums), sums[rows, col_end - col_begin] with row stride lds.
  void (*finish_tile)(const GemmTile&, const float* sums, int64_t lds);

  // x[rows, cols] in groups of mr or nr columns, each `depth` >= rows rows long and padded to whole width;
  // packed points at the first row to fill.
  void (*pack_strips)(const float* x, int64_t ldx, int64_t rows, int64_t cols, int64_t depth, float* packed);
  void (*pack_panels)(const float* x, int64_t ldx, int64_t rows, int64_t cols, int64_t depth, float* packed);
  void (*row_product_tile)(const RowProductTile&);
  void (*panel_product)(const PanelProduct&);

  int64_t (*attention_scratch_elems)(int64_t queries, int64_t keys, int64_t head_size);
  void (*attention_tile)(const AttentionTile&);
  int64_t (*attention_grad_scratch_elems)(int64_t queries, int64_t keys, int64_t head_size);
  void (*attention_grad_tile)(const AttentionGradTile&);

  void (*layernorm_rows)(const NormRows&);
  void (*softmax_rows)(const float* x, int64_t rows, int64_t width, float* y);  // contiguous; y may be x
  void (*activate)(Activation act, const float* x, int64_t count, float* y);    // y may be x
  void (*add)(const float* a, const float* b, int64_t count, float* y);         // y = a + b
  void (*add_row)(const float* x, const float* row, int64_t rows, int64_t width, float* y);    // y = x + row
  void (*scale_row)(const float* x, const float* row, int64_t rows, int64_t width, float* y);  // y = x * row
  // y[width] = mean over `rows` rows of x.
  void (*mean_rows)(const float* x, int64_t x_stride, int64_t rows, int64_t width, float* y);

  void (*layernorm_grad_rows)(const NormGradRows&);
  void (*activate_grad)(Activation act, const float* x, const float* dy, int64_t count, float* dx);
  void (*tanh_grad)(const float* y, const float* dy, int64_t count, float* dx);
  // out[width] = sum over `rows` rows of x, of x * y when y is not null; out may be row 0 of x.
  void (*sum_rows)(const float* x, const float* y, int64_t stride, int64_t rows, int64_t width, float* out);
  void (*multiply)(const float* x, float factor, int64_t count, float* y);  // y may be x
  void (*drop_elements)(const DropElements&);

  double (*square_sum)(const float* x, int64_t count);
  void (*sgd_update)(const UpdateElements&, float* m, float momentum, bool nesterov);  // m null: none
  void (*adam_update)(const UpdateElements&, const MomentElements&);
  void (*lion_update)(const UpdateElements&, float* m, float mix_rate, float m_rate);
  // LAMB: the moments, and the squares of w and of u = direction + coupled * w; then w -= lr * u.
  SquareSums (*lamb_moments)(const UpdateElements&, const MomentElements&);
  void (*lamb_update)(const UpdateElements&, const MomentElements&);
  void (*move_towards)(const float* x, float rate, int64_t count, float* mean);  // mean += rate * (x - mean)

  void (*widen)(Half from, const uint16_t* x, int64_t count, float* y);
  void (*narrow)(Half to, const float* x, int64_t count, uint16_t* y);  // to nearest even

  ReducedKernels bf16, int8;
  ReducedKernels split;  // f32 products by parts in bf16; null where a level has none
  HalfKernels halves;

  // The yardstick: independent multiply-adds on registers alone, spin_flops floating-point operations a
  // round.
  int64_t spin_flops;
  float (*spin)(int64_t rounds);  // the result only keeps the compiler honest
};

namespace baseline {
const IsaKernels& kernels();
}
namespace avx2 {
const IsaKernels& kernels();
}
namespace avx512 {
const IsaKernels& kernels();
}
namespace vnni {
const IsaKernels& kernels();
}
namespace amx {
const IsaKernels& kernels();
}

}  // namespace vitrail
