// GEMMs spread over a thread pool: with packed weights or a library, of image patches, and the gradients.
// Tiles follow from shapes alone, so results are the same for every number of threads. Knows raw pointers and
// strides, not ops.
#pragma once

#include "backend/cpu/norm/norm.h"
#include "backend/cpu/tiles.h"

namespace vitrail::cpu {

// The LayerNorm of the rows of `a` before the GEMM; gamma null: none.
struct LinearNorm {
  const float *gamma = nullptr, *beta = nullptr;  // [k]
  float eps = 0;
};

// c[m, n] = epilogue(norm(a)[m, k] * w[n, k]^T), where w was packed by pack_weights of the same IsaKernels.
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
// Packs a weight that lies as w[n, k], or as w[k, n]. `packed` must hold isa.packed_elems(n, k) floats; no
// scratch is needed.
void parallel_pack_weights(const CpuContext& context, const float* w, int64_t n, int64_t k, float* packed);
void parallel_pack_matrix(const CpuContext& context, const float* w, int64_t k, int64_t n, float* packed);
ScratchNeed linear_scratch(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool norm);
void parallel_linear(const CpuContext& context, const LinearArgs& args);

// The same with a weight that is not packed, by a library's sgemm, called single-threaded on fixed tiles from
// our own pool. It serves weights that change (training), and as a yardstick. args.packed is unused; w is
// row-major [n, k] with row stride k. Throws Error(kDevice) when the library is missing.
struct GemmLibrary;
ScratchNeed library_linear_scratch(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool norm);
void parallel_library_linear(const CpuContext& context, const GemmLibrary& library, const LinearArgs& args,
                             const float* w);

// out[b, patch, :] = epilogue(w * patch): image [batch, channels, height, width], patches of patch_h x
// patch_w without overlap (pixels left over at the edges are not read), w [n, channels * patch_h * patch_w]
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
// Writes patches [first, first + rows) of all images as rows [channel, y, x], the order of a convolution's
// weight.
void gather_patches(const PatchEmbedArgs& args, int64_t first, int64_t rows, float* out);

inline int64_t patches_of(const PatchEmbedArgs& a) {
  return a.height / a.patch_h * (a.width / a.patch_w);
}

inline Epilogue at_row(Epilogue epilogue, int64_t row) {
  if (epilogue.residual) epilogue.residual += row * epilogue.residual_stride;
  return epilogue;
}

// The rows of A to multiply: in place, or normalised into the shared scratch. They are normalised once,
// before the tiles: a tile that normalised its own rows would repeat it for every block of columns, which
// costs more than one pass through the cache.
struct Rows {
  const float* data;
  int64_t stride;
};

inline Rows rows_of(const CpuContext& context, const LinearArgs& args, float* shared) {
  if (!args.norm.gamma) return {args.a, args.lda};
  parallel_layernorm(context, {args.a, args.lda, shared, args.k, args.m, args.k, args.norm.gamma,
                               args.norm.beta, args.norm.eps});
  return {shared, args.k};
}

// dw[n, k] (+)= sum over m of dy[m, n] x[m, k], all contiguous. Rows are taken in chunks, each packed once
// for all tiles. With `add` the sum is finished before it is added, so it rounds as if the two ops ran one
// after the other.
struct WeightGradArgs {
  const float *x = nullptr, *dy = nullptr;
  float* dw = nullptr;
  int64_t m = 0, n = 0, k = 0;
  bool add = false;
};

ScratchNeed weight_grad_scratch(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool add);
void parallel_weight_grad(const CpuContext& context, const WeightGradArgs& args);
// The same GEMM with image patches as x; patches.epilogue, packed and out are not read.
ScratchNeed patch_weight_grad_scratch(const IsaKernels& isa, const PatchEmbedArgs& patches, bool add);
void parallel_patch_weight_grad(const CpuContext& context, const PatchEmbedArgs& patches, const float* dy,
                                float* dw, bool add);
// args.c = act'(x) * (a w^T), x[m, n] contiguous: the input gradient of a linear times the derivative of the
// gelu before it, applied while a tile is in cache. The scratch is that of parallel_linear; norm and epilogue
// are not read.
void parallel_linear_activate_grad(const CpuContext& context, const LinearArgs& args, Activation act,
                                   const float* x);

}  // namespace vitrail::cpu
