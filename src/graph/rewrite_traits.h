// Says which fusions the kernels of a backend support, and how many launches it can afford. A backend fills
// it in, and the pass pipeline rewrites accordingly.
#pragma once

#include <functional>

#include "graph/op.h"

namespace vitrail {

using GemmRule = bool (*)(const Op& gemm);

struct RewriteTraits {
  // Says which GEMMs can fuse the layernorm before them; null: none can.
  GemmRule norms = [](const Op&) { return true; };
  // Says which GEMMs can fuse the linear, bias and gelu that produce their input; null: none can.
  GemmRule chains = nullptr;
  // A GEMM that fp8 makes faster has at least so many rows, and in training, where weights and gradients are
  // rounded at every step, so many inputs and outputs; with fewer, rounding costs more than fp8 saves, and it
  // is exact.
  int64_t fp8_rows = 0, fp8_trained_width = 0;
  bool first_attention = false;  // whether class-token attention fuses the qkv linear (f32)
  bool residual_rows = false;    // whether what follows an exchange (bias to layernorm) is one pass over rows
  bool positions = false;        // whether tokens are joined and get their positions in one pass
  bool few_launches = false;     // whether nodes are merged until few, large launches are left
  // Says which kinds of updates have a kernel for many parameters at once; null: none have.
  std::function<bool(std::string_view kind)> groups = {};
};

}  // namespace vitrail
