// Launches of ops that move tokens, and of dropout, which drops elements or whole images.
#include <cmath>
#include <cstring>

#include "backend/cpu/launch.h"
#include "backend/cpu/tiles.h"
#include "ops/dropout.h"
#include "ops/pool_tokens.h"

namespace vitrail::cpu {

namespace {

void copy(const float* from, int64_t count, float* to) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}
void zero(float* to, int64_t count) {
  std::memset(to, 0, static_cast<size_t>(count) * sizeof(float));
}

// Calls body(b) for every image; a task has several images.
template <typename Body>
void each_image(const CpuContext& context, const Shape& wide, const Body& body) {
  const int64_t batch = wide[0].local;
  spread_rows(context, batch, wide.elems() / batch, [&](int64_t first, int64_t count) {
    for (int64_t b = first; b < first + count; ++b) body(b);
  });
}

// The token count, the width and the size of an image of [B N D], in elements.
struct Tokens {
  int64_t count, width, image;
  explicit Tokens(const Shape& s) : count(s[1].local), width(s[2].local), image(s[1].local * s[2].local) {}
};

void run_concat_tokens(const KernelArgs& args) {
  const Shape& out = args.outs[0].shape();
  const Tokens to(out);
  const int64_t patches = args.ins.back().desc().elems() / out[0].local;
  each_image(context_of(args), out, [&](int64_t b) {
    float* target = args.outs[0].as<float>() + b * to.image;
    for (const TensorView& prefix : args.ins.first(args.ins.size() - 1)) {
      copy(prefix.as<float>(), prefix.desc().elems(), target);
      target += prefix.desc().elems();
    }
    copy(args.ins.back().as<float>() + b * patches, patches, target);
  });
}

void run_select_token(const KernelArgs& args) {
  const Tokens x(args.ins[0].shape());
  const int64_t index = static_cast<const SelectTokenOp&>(args.op).index();
  each_image(context_of(args), args.outs[0].shape(), [&](int64_t b) {
    copy(args.ins[0].as<float>() + b * x.image + index * x.width, x.width,
         args.outs[0].as<float>() + b * x.width);
  });
}

void run_select_token_grad(const KernelArgs& args) {
  const Tokens dx(args.outs[0].shape());
  const int64_t index = static_cast<const SelectTokenGradOp&>(args.op).index();
  each_image(context_of(args), args.outs[0].shape(), [&](int64_t b) {
    float* target = args.outs[0].as<float>() + b * dx.image;
    zero(target, dx.image);
    copy(args.ins[0].as<float>() + b * dx.width, dx.width, target + index * dx.width);
  });
}

void run_drop_tokens(const KernelArgs& args) {
  const Tokens x(args.ins[0].shape());
  const int64_t skipped = static_cast<const DropTokensOp&>(args.op).first() * x.width,
                kept = x.image - skipped;
  each_image(context_of(args), args.ins[0].shape(), [&](int64_t b) {
    copy(args.ins[0].as<float>() + b * x.image + skipped, kept, args.outs[0].as<float>() + b * kept);
  });
}

void run_drop_tokens_grad(const KernelArgs& args) {
  const Tokens dx(args.outs[0].shape());
  const int64_t skipped = static_cast<const DropTokensGradOp&>(args.op).first() * dx.width,
                kept = dx.image - skipped;
  each_image(context_of(args), args.outs[0].shape(), [&](int64_t b) {
    float* target = args.outs[0].as<float>() + b * dx.image;
    zero(target, skipped);
    copy(args.ins[0].as<float>() + b * kept, kept, target + skipped);
  });
}

void run_mean_tokens_grad(const KernelArgs& args) {
  const CpuContext context = context_of(args);
  const Tokens dx(args.outs[0].shape());
  const int64_t first = static_cast<const MeanTokensGradOp&>(args.op).first();
  const float share = 1.0f / static_cast<float>(dx.count - first);
  each_image(context, args.outs[0].shape(), [&](int64_t b) {
    float* target = args.outs[0].as<float>() + b * dx.image;
    zero(target, first * dx.width);
    for (int64_t n = first; n < dx.count; ++n)
      context.isa.multiply(args.ins[0].as<float>() + b * dx.width, share, dx.width, target + n * dx.width);
  });
}

std::string declines_dropout(const NodeView& node, const DeviceInfo&) {
  if (node.ins[0].dtype != DType::kF32) return strf("takes f32 only, not %s", to_string(node.ins[0].dtype));
  const Shape& shape = node.ins[0].shape;
  for (size_t d = 1; d < shape.rank(); ++d)
    if (shape[d].local != shape[d].extent) return "takes whole images only";
  return {};
}

void run_dropout(const KernelArgs& args) {
  const auto& op = static_cast<const DropoutOp&>(args.op);
  const auto* counters = static_cast<const int64_t*>(args.ins[1].data());
  const Shape& shape = args.ins[0].shape();
  const auto position = static_cast<uint64_t>(counters[2] + shape[0].offset);
  const uint64_t stream = dropout_stream(op.key(), counters[0], counters[1]);
  const CpuContext context = context_of(args);
  const float* x = args.ins[0].as<float>();
  float* y = args.outs[0].as<float>();
  const auto kept = static_cast<float>(1.0 / (1.0 - op.probability()));
  const int64_t image = shape.elems() / shape[0].local;
  if (op.unit() == DropUnit::kSample)
    return each_image(context, shape, [&](int64_t b) {
      const bool stays = dropout_keeps(stream, position + static_cast<uint64_t>(b), op.probability());
      if (!stays) return zero(y + b * image, image);
      context.isa.multiply(x + b * image, kept, image, y + b * image);
    });
  // u / 2^53 >= p for an integer u is the same as u >= ceil(p 2^53), and both products are exact.
  const auto threshold = static_cast<uint64_t>(std::ceil(op.probability() * 0x1p53));
  const uint64_t start = position * static_cast<uint64_t>(image);
  spread_rows(context, shape.elems(), 1, [&](int64_t first, int64_t count) {
    context.isa.drop_elements({.x = x + first,
                               .y = y + first,
                               .count = count,
                               .stream = stream,
                               .index = start + static_cast<uint64_t>(first),
                               .threshold = threshold,
                               .scale = kept});
  });
}

Kernel copy_kernel(RunKernel run) {
  return kernel("parallel copy", run);
}

}  // namespace

std::vector<OpKernels> token_kernels() {
  return {
      {"dropout", {kernel("vector hashes", run_dropout, declines_dropout)}},
      {"concat_tokens", {copy_kernel(run_concat_tokens)}},
      {"select_token", {copy_kernel(run_select_token)}},
      {"drop_tokens", {copy_kernel(run_drop_tokens)}},
      {"select_token_grad", {copy_kernel(run_select_token_grad)}},
      {"drop_tokens_grad", {copy_kernel(run_drop_tokens_grad)}},
      {"mean_tokens_grad", {rows_kernel(run_mean_tokens_grad)}},
  };
}

}  // namespace vitrail::cpu
