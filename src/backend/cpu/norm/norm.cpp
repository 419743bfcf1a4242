#include "backend/cpu/norm/norm.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/reduce/reduce.h"
#include "backend/cpu/tiles.h"

namespace vitrail::cpu {
namespace {

constexpr int64_t kNormElems = 16384;  // values of the rows whose parameter gradients form one partial sum

int64_t norm_rows(int64_t width) {
  return std::max<int64_t>(1, kNormElems / width);
}

}  // namespace

void parallel_layernorm(const CpuContext& context, const NormRows& args) {
  spread_rows(context, args.rows, args.width, [&](int64_t row, int64_t rows) {
    NormRows part = args;
    part.x += row * args.x_stride;
    part.y += row * args.y_stride;
    part.rows = rows;
    context.isa.layernorm_rows(part);
  });
}

void parallel_softmax(const CpuContext& context, const float* x, int64_t rows, int64_t width, float* y) {
  spread_rows(context, rows, width, [&](int64_t row, int64_t count) {
    context.isa.softmax_rows(x + row * width, count, width, y + row * width);
  });
}

ScratchNeed layernorm_grad_scratch(int64_t rows, int64_t width, bool parameters) {
  if (!parameters) return {};
  return {.shared_bytes = padded_bytes(ceil_div(rows, norm_rows(width)) * 2 * width)};
}

void parallel_layernorm_grad(const CpuContext& context, const NormGradRows& args) {
  const bool parameters = args.dgamma != nullptr;
  const Scratch scratch(context, layernorm_grad_scratch(args.rows, args.width, parameters));
  const int64_t chunk = norm_rows(args.width), chunks = ceil_div(args.rows, chunk);
  float* partials = scratch.shared();
  spread(context, context.parallel.softmax, chunks, [&](int64_t task, int) {
    NormGradRows part = args;
    const int64_t at = task * chunk * args.stride;
    part.x += at;
    part.dy += at;
    part.dx += at;
    if (part.residual) part.residual += at;
    part.rows = std::min(chunk, args.rows - task * chunk);
    if (parameters) {
      part.dgamma = partials + task * 2 * args.width;
      part.dbeta = part.dgamma + args.width;
      std::memset(part.dgamma, 0, static_cast<size_t>(2 * args.width) * sizeof(float));
    }
    context.isa.layernorm_grad_rows(part);
  });
  if (!parameters) return;
  add_partials(context, partials, 2 * args.width, chunks, args.width, args.dgamma, false);
  add_partials(context, partials + args.width, 2 * args.width, chunks, args.width, args.dbeta, false);
}

ScratchNeed qk_norm_grad_scratch(int64_t tokens, int64_t head_size) {
  return {.shared_bytes = padded_bytes(ceil_div(tokens, kSumRows) * 4 * head_size)};
}

void parallel_qk_norm_grad(const CpuContext& context, const QkNormGradArgs& args) {
  const Scratch scratch(context, qk_norm_grad_scratch(args.tokens, args.head_size));
  const int64_t size = args.head_size, part = args.heads * size, chunks = ceil_div(args.tokens, kSumRows);
  float* partials = scratch.shared();
  const auto one_token = [&](int64_t token, float* sums) {
    for (int64_t t = 0; t < 2; ++t) {
      const int64_t at = (3 * token + t) * part;
      context.isa.layernorm_grad_rows({args.qkv + at, args.dy + at, args.dqkv + at, size, args.heads, size,
                                       args.gamma[t], args.eps, sums + 2 * t * size,
                                       sums + (2 * t + 1) * size});
    }
    const int64_t v = (3 * token + 2) * part;
    std::memcpy(args.dqkv + v, args.dy + v, static_cast<size_t>(part) * sizeof(float));
  };
  spread(context, context.parallel.softmax, chunks, [&](int64_t task, int) {
    float* sums = partials + task * 4 * size;
    std::memset(sums, 0, static_cast<size_t>(4 * size) * sizeof(float));
    const int64_t first = task * kSumRows, end = std::min(first + kSumRows, args.tokens);
    for (int64_t token = first; token < end; ++token) one_token(token, sums);
  });
  for (int64_t i = 0; i < 4; ++i)
    if (args.parameters[i])
      add_partials(context, partials + i * size, 4 * size, chunks, size, args.parameters[i], false);
}

}  // namespace vitrail::cpu
