// The arguments of ops on tokens as the program passes them to the CUDA plugin: which rows are moved where,
// and which are summed. Offsets and strides are in elements.
#pragma once

#include "backend/cuda/api/session.h"

namespace vitrail::cuda {

// The source of `count` tokens of every image; a stride of 0 repeats the same elements.
struct TokenPart {
  Operand source;
  int64_t first = 0, count = 0;  // the tokens of the result
  int64_t offset = 0;            // of the first image's first token in the source
  int64_t image_stride = 0, token_stride = 0;
  float factor = 1;
};

inline constexpr int kMostTokenParts = 8;

// The result [images tokens width], assembled from parts; tokens that belong to no part become zero. Where
// there are positions [tokens width], they are added to every image's tokens, rounded to a type before.
struct TokenMoveCall {
  Operand out;
  int64_t images = 0, tokens = 0, width = 0;
  int parts = 0;
  TokenPart part[kMostTokenParts];
  Operand positions = {};
  DType rounded = DType::kF32;
};

// out[o, c] = factor * sum over t of x[offset + o * outer_stride + t * term_stride + c], or out += the same.
struct TokenSumCall {
  Operand x, out;
  int64_t offset = 0;
  int64_t outer = 1, outer_stride = 0;
  int64_t terms = 0, term_stride = 0;
  int64_t columns = 0;
  float factor = 1;
  bool adds = false;
};

// Sine and cosine positions of a grid, [rows * columns, width].
struct SincosCall {
  Operand out;
  int64_t rows = 0, columns = 0, width = 0;
};

// The maximum of each column over the tokens from `first` on, [images width]; its gradient has dy and dx
// instead of out.
struct TokenMaxCall {
  Operand x, out = {}, dy = {}, dx = {};
  int64_t images = 0, tokens = 0, width = 0, first = 0;
};

struct TokensApi {
  void (*move)(Session&, const TokenMoveCall&);
  void (*sum)(Session&, const TokenSumCall&);
  void (*sincos)(Session&, const SincosCall&);
  void (*max)(Session&, const TokenMaxCall&);
  void (*max_grad)(Session&, const TokenMaxCall&);
};

}  // namespace vitrail::cuda
