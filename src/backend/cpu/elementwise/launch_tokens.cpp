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
  const HeldTokens token = static_cast<const SelectTokenOp&>(args.op).held(args.ins[0].shape()[1]);
  each_image(context_of(args), args.outs[0].shape(), [&](int64_t b) {
    float* target = args.outs[0].as<float>() + b * x.width;
    if (token.count == 0) return zero(target, x.width);
    copy(args.ins[0].as<float>() + b * x.image + token.first * x.width, x.width, target);
  });
}

void run_select_token_grad(const KernelArgs& args) {
  const Tokens dx(args.outs[0].shape());
  const HeldTokens token = static_cast<const SelectTokenGradOp&>(args.op).held();
  each_image(context_of(args), args.outs[0].shape(), [&](int64_t b) {
    float* target = args.outs[0].as<float>() + b * dx.image;
    zero(target, dx.image);
    copy(args.ins[0].as<float>() + b * dx.width, token.count * dx.width, target + token.first * dx.width);
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
  const auto& op = static_cast<const MeanTokensGradOp&>(args.op);
  const HeldTokens held = op.held();
  const float share = 1.0f / static_cast<float>(op.averaged());
  each_image(context, args.outs[0].shape(), [&](int64_t b) {
    float* target = args.outs[0].as<float>() + b * dx.image;
    zero(target, held.first * dx.width);
    for (int64_t n = held.first; n < dx.count; ++n)
      context.isa.multiply(args.ins[0].as<float>() + b * dx.width, share, dx.width, target + n * dx.width);
  });
}

std::string declines_dropout(const NodeView& node, const DeviceInfo&) {
  if (node.ins[0].dtype != DType::kF32) return strf("takes f32 only, not %s", to_string(node.ins[0].dtype));
  return {};
}

// The elements of a part as runs of neighbours in the whole value.
class Runs {
 public:
  // Of a value whose first dim begins at `position`.
  Runs(const Shape& shape, uint64_t position) : shape_(shape), position_(position) {
    for (size_t d = 0; d < shape.rank(); ++d)
      if (d == 0 || shape[d].local != shape[d].extent) cut_ = d;
    for (size_t d = cut_; d < shape.rank(); ++d) length_ *= shape[d].local;
  }

  int64_t length() const { return length_; }
  int64_t count() const { return shape_.elems() / length_; }
  // Where a run begins in the whole value.
  uint64_t start(int64_t run) const {
    uint64_t index = 0, rest = static_cast<uint64_t>(run), inner = static_cast<uint64_t>(count());
    for (size_t d = 0; d < shape_.rank(); ++d) {
      uint64_t place = static_cast<uint64_t>(shape_[d].offset) + (d == 0 ? position_ : 0);
      if (d < cut_) {
        inner /= static_cast<uint64_t>(shape_[d].local);
        place += rest / inner;
        rest %= inner;
      }
      index = index * static_cast<uint64_t>(shape_[d].extent) + place;
    }
    return index;
  }

 private:
  const Shape& shape_;
  uint64_t position_;
  size_t cut_ = 0;  // the last dim that is a part, or the first
  int64_t length_ = 1;
};

void drop_images(const KernelArgs& args, const DropoutOp& op, uint64_t stream, uint64_t position) {
  const CpuContext context = context_of(args);
  const Shape& shape = args.ins[0].shape();
  const int64_t image = shape.elems() / shape[0].local;
  const auto kept = static_cast<float>(1.0 / (1.0 - op.probability()));
  each_image(context, shape, [&](int64_t b) {
    float* target = args.outs[0].as<float>() + b * image;
    const uint64_t sample = position + static_cast<uint64_t>(shape[0].offset + b);
    if (!dropout_keeps(stream, sample, op.probability())) return zero(target, image);
    context.isa.multiply(args.ins[0].as<float>() + b * image, kept, image, target);
  });
}

void run_dropout(const KernelArgs& args) {
  const auto& op = static_cast<const DropoutOp&>(args.op);
  const auto* counters = static_cast<const int64_t*>(args.ins[1].data());
  const auto position = static_cast<uint64_t>(counters[2]);
  const uint64_t stream = dropout_stream(op.key(), counters[0], counters[1]);
  if (op.unit() == DropUnit::kSample) return drop_images(args, op, stream, position);
  const CpuContext context = context_of(args);
  const Runs runs(args.ins[0].shape(), position);
  // u / 2^53 >= p for an integer u is the same as u >= ceil(p 2^53), and both products are exact.
  const auto threshold = static_cast<uint64_t>(std::ceil(op.probability() * 0x1p53));
  const auto drop = [&](int64_t run, int64_t first, int64_t count) {
    const int64_t at = run * runs.length() + first;
    context.isa.drop_elements({.x = args.ins[0].as<float>() + at,
                               .y = args.outs[0].as<float>() + at,
                               .count = count,
                               .stream = stream,
                               .index = runs.start(run) + static_cast<uint64_t>(first),
                               .threshold = threshold,
                               .scale = static_cast<float>(1.0 / (1.0 - op.probability()))});
  };
  if (runs.count() == 1)
    return spread_rows(context, runs.length(), 1,
                       [&](int64_t first, int64_t count) { drop(0, first, count); });
  spread_rows(context, runs.count(), runs.length(), [&](int64_t first, int64_t count) {
    for (int64_t run = first; run < first + count; ++run) drop(run, 0, runs.length());
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
