// The kernels of the reference backend, one per op, and the dispatch over float types they share.
#pragma once

#include "backend/kernel.h"

namespace vitrail::ref {

// Calls body with a value of the C++ type behind a float dtype.
template <typename Body>
void dispatch(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::kF64:
      return body(double{});
    case DType::kF32:
      return body(float{});
    case DType::kF16:
      return body(F16{});
    case DType::kBF16:
      return body(BF16{});
    default:
      throw Error(ErrorKind::kInternal, strf("no reference kernel for %s", to_string(dtype)));
  }
}

void linear(const KernelArgs& args);
void patch_embed(const KernelArgs& args);
void attention(const KernelArgs& args);
void attention_probs(const KernelArgs& args);
void layernorm(const KernelArgs& args);
void qk_norm(const KernelArgs& args);
void softmax(const KernelArgs& args);
void gelu(const KernelArgs& args);
void tanh(const KernelArgs& args);
void bias(const KernelArgs& args);
void scale(const KernelArgs& args);
void add(const KernelArgs& args);
void average(const KernelArgs& args);
void concat_tokens(const KernelArgs& args);
void select_token(const KernelArgs& args);
void drop_tokens(const KernelArgs& args);
void mean_tokens(const KernelArgs& args);
void sincos_positions(const KernelArgs& args);
void load_param(const KernelArgs& args);

}  // namespace vitrail::ref
