// The CPU kernels spread over a thread pool: products with packed weights, patch embedding, attention,
// row-wise ops. Tiles follow from shapes alone, so results are the same for every number of threads.
// Used by the CPU backend's kernel table; knows raw pointers and strides, not ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/isa/table.h"
#include "base/thread_pool.h"

namespace vitrail {

// The three kinds of CPU parallelism; a kind that is off runs on the calling thread.
struct CpuParallelism {
  bool heads = true;    // attention: threads over (image, head, query block)
  bool rows = true;     // products: threads over blocks of rows and columns
  bool softmax = true;  // row-wise ops: softmax, layernorm, elementwise
};

struct ScratchNeed {
  size_t shared_bytes = 0, worker_bytes = 0;
  size_t total(int threads) const { return shared_bytes + worker_bytes * static_cast<size_t>(threads); }
};

// What every driver runs on. `scratch` is 64-byte aligned and at least
// <driver>_scratch(...).total(pool.threads()).
struct CpuContext {
  ThreadPool& pool;
  const IsaKernels& isa;
  CpuParallelism parallel;
  std::span<std::byte> scratch;
};

// LayerNorm of the rows of `a` before the product; gamma null: none.
struct LinearNorm {
  const float *gamma = nullptr, *beta = nullptr;  // [k]
  float eps = 0;
};

// c[m, n] = epilogue(norm(a)[m, k] * w[n, k]^T), w packed by pack_weights of the same IsaKernels.
struct LinearArgs {
  const float* a = nullptr;
  int64_t lda = 0;
  const float* packed = nullptr;
  float* c = nullptr;
  int64_t ldc = 0;
  int64_t m = 0, n = 0, k = 0;
  LinearNorm norm;
  Epilogue epilogue;
};
// packed must hold isa.packed_elems(n, k) floats; needs no scratch. The weight lies as w[n, k], or as w[k,
// n].
void parallel_pack_weights(const CpuContext& context, const float* w, int64_t n, int64_t k, float* packed);
void parallel_pack_matrix(const CpuContext& context, const float* w, int64_t k, int64_t n, float* packed);
ScratchNeed linear_scratch(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool norm);
void parallel_linear(const CpuContext& context, const LinearArgs& args);

// out[b, patch, :] = epilogue(w * patch): image [batch, channels, height, width], patches of
// patch_h x patch_w without overlap (what is left over is not read), w [n, channels * patch_h * patch_w]
// packed. out points at image 0's first patch row; the epilogue's residual (the position embedding) is
// indexed by patch and shared by all images.
struct PatchEmbedArgs {
  const float* image = nullptr;
  int64_t batch = 0, channels = 0, height = 0, width = 0;
  int64_t patch_h = 0, patch_w = 0;
  const float* packed = nullptr;
  int64_t n = 0;
  float* out = nullptr;
  int64_t out_stride = 0, image_out_stride = 0;  // elements between patches, between images
  Epilogue epilogue;
};
ScratchNeed patch_embed_scratch(const IsaKernels& isa, const PatchEmbedArgs& args);
void parallel_patch_embed(const CpuContext& context, const PatchEmbedArgs& args);
// Patches [first, first + rows) of all images as rows [channel, y, x], the order of a convolution's weight.
void gather_patches(const PatchEmbedArgs& args, int64_t first, int64_t rows, float* out);

// out[b, i, h, :] = softmax(scale * q k^T) v. Strides in elements; packed qkv [B, N, 3, H, E] has
// token stride 3*H*E, image stride N*3*H*E, head stride E, with k = q + H*E and v = q + 2*H*E.
struct AttentionView {
  int64_t image = 0, token = 0, head = 0;  // strides
};
struct AttentionArgs {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  AttentionView q_strides, k_strides, v_strides;
  float* out = nullptr;
  AttentionView out_strides;
  int64_t batch = 0, heads = 0, queries = 0, keys = 0, head_size = 0;
  float scale = 1;
};
ScratchNeed attention_scratch(const IsaKernels& isa, int64_t queries, int64_t keys, int64_t head_size);
void parallel_attention(const CpuContext& context, const AttentionArgs& args);

// The weights themselves: out[b, h, i, j] = softmax over j of scale * q_i k_j, contiguous. args.v and
// out_strides are not read.
ScratchNeed attention_probs_scratch(const IsaKernels& isa, int64_t queries, int64_t keys, int64_t head_size);
void parallel_attention_probs(const CpuContext& context, const AttentionArgs& args);

// Row-wise ops need no scratch. Contiguous unless a stride is given; outputs may be the inputs.
void parallel_layernorm(const CpuContext& context, const NormRows& args);
void parallel_softmax(const CpuContext& context, const float* x, int64_t rows, int64_t width, float* y);
void parallel_activate(const CpuContext& context, Activation act, const float* x, int64_t count, float* y);
void parallel_add(const CpuContext& context, const float* a, const float* b, int64_t count, float* y);
void parallel_multiply(const CpuContext& context, const float* x, float factor, int64_t count, float* y);
void parallel_add_row(const CpuContext& context, const float* x, const float* row, int64_t rows,
                      int64_t width, float* y);
void parallel_scale_row(const CpuContext& context, const float* x, const float* row, int64_t rows,
                        int64_t width, float* y);
// y[b, width] = mean over tokens of x[b, tokens, width].
void parallel_mean_tokens(const CpuContext& context, const float* x, int64_t batch, int64_t image_stride,
                          int64_t tokens, int64_t width, float* y);

}  // namespace vitrail
