// Launches of ops that move tokens, and of dropout, which drops elements or whole images. Sizes are read from
// a node once, when its kernel is prepared.
#include <cstring>

#include "backend/cpu/elementwise/dropping.h"
#include "backend/cpu/launch.h"
#include "backend/cpu/tiles.h"
#include "ops/concat_tokens.h"
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

// The images of a value, as tasks have them: several each.
struct Images {
  int64_t count, elems;
  explicit Images(const Shape& shape) : count(shape[0].local), elems(shape.elems() / count) {}

  // Calls body(b) for every image.
  template <typename Body>
  void each(const CpuContext& context, const Body& body) const {
    spread_rows(context, count, elems, [&](int64_t first, int64_t some) {
      for (int64_t b = first; b < first + some; ++b) body(b);
    });
  }
};

// The token count, the width and the size of an image of [B N D], in elements.
struct Tokens {
  int64_t count, width, image;
  explicit Tokens(const Shape& s) : count(s[1].local), width(s[2].local), image(s[1].local * s[2].local) {}
};

Prepared prepare_concat_tokens(const NodeView& node, const DeviceInfo&) {
  const Shape& out = node.outs[0].shape;
  const Images images(out);
  const int64_t size = Tokens(out).image, patches = node.ins.back().elems() / out[0].local;
  std::vector<int64_t> prefixes;
  for (const TensorDesc& prefix : node.ins.first(node.ins.size() - 1)) prefixes.push_back(prefix.elems());
  return {0, [=](const KernelArgs& args) {
            images.each(context_of(args), [&](int64_t b) {
              float* target = args.outs[0].as<float>() + b * size;
              for (size_t i = 0; i < prefixes.size(); target += prefixes[i++])
                copy(args.ins[i].as<float>(), prefixes[i], target);
              copy(args.ins.back().as<float>() + b * patches, patches, target);
            });
          }};
}

Prepared prepare_select_token(const NodeView& node, const DeviceInfo&) {
  const Tokens x(node.ins[0].shape);
  const Images images(node.outs[0].shape);
  const HeldTokens token = static_cast<const SelectTokenOp&>(node.op).held(node.ins[0].shape[1]);
  return {0, [=](const KernelArgs& args) {
            images.each(context_of(args), [&](int64_t b) {
              float* target = args.outs[0].as<float>() + b * x.width;
              if (token.count == 0) return zero(target, x.width);
              copy(args.ins[0].as<float>() + b * x.image + token.first * x.width, x.width, target);
            });
          }};
}

Prepared prepare_select_token_grad(const NodeView& node, const DeviceInfo&) {
  const Tokens dx(node.outs[0].shape);
  const Images images(node.outs[0].shape);
  const HeldTokens token = static_cast<const SelectTokenGradOp&>(node.op).held();
  return {0, [=](const KernelArgs& args) {
            images.each(context_of(args), [&](int64_t b) {
              float* target = args.outs[0].as<float>() + b * dx.image;
              zero(target, dx.image);
              copy(args.ins[0].as<float>() + b * dx.width, token.count * dx.width,
                   target + token.first * dx.width);
            });
          }};
}

Prepared prepare_drop_tokens(const NodeView& node, const DeviceInfo&) {
  const Tokens x(node.ins[0].shape);
  const Images images(node.ins[0].shape);
  const int64_t skipped = static_cast<const DropTokensOp&>(node.op).first() * x.width,
                kept = x.image - skipped;
  return {0, [=](const KernelArgs& args) {
            images.each(context_of(args), [&](int64_t b) {
              copy(args.ins[0].as<float>() + b * x.image + skipped, kept,
                   args.outs[0].as<float>() + b * kept);
            });
          }};
}

Prepared prepare_drop_tokens_grad(const NodeView& node, const DeviceInfo&) {
  const Tokens dx(node.outs[0].shape);
  const Images images(node.outs[0].shape);
  const int64_t skipped = static_cast<const DropTokensGradOp&>(node.op).first() * dx.width,
                kept = dx.image - skipped;
  return {0, [=](const KernelArgs& args) {
            images.each(context_of(args), [&](int64_t b) {
              float* target = args.outs[0].as<float>() + b * dx.image;
              zero(target, skipped);
              copy(args.ins[0].as<float>() + b * kept, kept, target + skipped);
            });
          }};
}

Prepared prepare_mean_tokens_grad(const NodeView& node, const DeviceInfo&) {
  const Tokens dx(node.outs[0].shape);
  const Images images(node.outs[0].shape);
  const auto& op = static_cast<const MeanTokensGradOp&>(node.op);
  const int64_t begin = op.held().first;
  const float share = 1.0f / static_cast<float>(op.averaged());
  return {0, [=](const KernelArgs& args) {
            const CpuContext context = context_of(args);
            images.each(context, [&](int64_t b) {
              float* target = args.outs[0].as<float>() + b * dx.image;
              zero(target, begin * dx.width);
              for (int64_t n = begin; n < dx.count; ++n)
                context.isa.multiply(args.ins[0].as<float>() + b * dx.width, share, dx.width,
                                     target + n * dx.width);
            });
          }};
}

std::string declines_dropout(const NodeView& node, const DeviceInfo&) {
  if (node.ins[0].dtype != DType::kF32) return strf("takes f32 only, not %s", to_string(node.ins[0].dtype));
  return {};
}

Prepared prepare_dropout(const NodeView& node, const DeviceInfo&) {
  const Dropping drop(static_cast<const DropoutOp&>(node.op), node.ins[0].shape);
  return {0, [drop, elems = node.ins[0].elems()](const KernelArgs& args) {
            const CpuContext context = context_of(args);
            const float* x = args.ins[0].as<float>();
            float* y = args.outs[0].as<float>();
            spread_rows(context, elems, 1, [&](int64_t first, int64_t count) {
              drop(context, args.ins[1], {first, count}, x + first, y + first);
            });
          }};
}

}  // namespace

std::vector<OpKernels> token_kernels() {
  constexpr const char* kCopy = "parallel copy";
  return {
      row<DropoutOp>({kernel("vector hashes", prepare_dropout, declines_dropout)}),
      row<ConcatTokensOp>({kernel(kCopy, prepare_concat_tokens)}),
      row<SelectTokenOp>({kernel(kCopy, prepare_select_token)}),
      row<DropTokensOp>({kernel(kCopy, prepare_drop_tokens)}),
      row<SelectTokenGradOp>({kernel(kCopy, prepare_select_token_grad)}),
      row<DropTokensGradOp>({kernel(kCopy, prepare_drop_tokens_grad)}),
      row<MeanTokensGradOp>({rows_kernel(prepare_mean_tokens_grad)}),
  };
}

}  // namespace vitrail::cpu
