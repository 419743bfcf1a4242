// The raw f32 kernels of one instruction set as a table of functions, and what they take. Every kernel
// works on one fixed tile, single-threaded, in memory the caller gives; each output value is computed by
// the same chain of operations whatever tile it falls in, so tiling never changes a result.
// Used by the drivers of backend/cpu; knows nothing of ops, tensors or threads.
#pragma once

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

struct IsaKernels {
  const char* name;
  int lanes;   // floats in a vector
  int mr, nr;  // rows and columns of the micro-kernel

  int64_t (*packed_elems)(int64_t n, int64_t k);
  void (*pack_weights)(const float* w, int64_t n, int64_t k, float* packed);  // w row-major [n, k]
  int64_t (*gemm_scratch_elems)(int64_t rows, int64_t cols, int64_t k);
  void (*gemm_tile)(const GemmTile&);
  // Only the last step of gemm_tile: c = epilogue(sums), sums[rows, col_end - col_begin] with row stride lds.
  void (*finish_tile)(const GemmTile&, const float* sums, int64_t lds);

  int64_t (*attention_scratch_elems)(int64_t queries, int64_t keys, int64_t head_size);
  void (*attention_tile)(const AttentionTile&);

  void (*layernorm_rows)(const NormRows&);
  void (*softmax_rows)(const float* x, int64_t rows, int64_t width, float* y);  // contiguous; y may be x
  void (*activate)(Activation act, const float* x, int64_t count, float* y);    // y may be x
  void (*add)(const float* a, const float* b, int64_t count, float* y);         // y = a + b
  void (*add_row)(const float* x, const float* row, int64_t rows, int64_t width, float* y);    // y = x + row
  void (*scale_row)(const float* x, const float* row, int64_t rows, int64_t width, float* y);  // y = x * row
  // y[width] = mean over `rows` rows of x.
  void (*mean_rows)(const float* x, int64_t x_stride, int64_t rows, int64_t width, float* y);

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

}  // namespace vitrail
