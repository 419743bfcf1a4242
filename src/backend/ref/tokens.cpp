// Reference loops of the ops that move tokens and parameters.
#include <algorithm>
#include <vector>

#include "backend/ref/loops.h"
#include "ops/concat_tokens.h"
#include "ops/persistent.h"
#include "ops/pool_tokens.h"
#include "ops/sincos_positions.h"

namespace vitrail::ref {

namespace {

void concat_tokens(const KernelArgs& args) {
  const Shape& out_shape = args.outs[0].shape();
  const int64_t out_elems = out_shape.local('N') * out_shape.local('D');
  for (int64_t b = 0; b < out_shape.local('B'); ++b) {
    double* target = args.outs[0].as<double>() + b * out_elems;
    for (const TensorView& prefix : args.ins.first(args.ins.size() - 1))
      target = std::copy_n(prefix.as<double>(), prefix.desc().elems(), target);
    const int64_t patch_elems = args.ins.back().desc().elems() / out_shape.local('B');
    std::copy_n(args.ins.back().as<double>() + b * patch_elems, patch_elems, target);
  }
}

void select_token(const KernelArgs& args) {
  const Shape& x = args.ins[0].shape();
  const HeldTokens token = static_cast<const SelectTokenOp&>(args.op).held(x[1]);
  const int64_t width = x[2].local;
  std::fill_n(args.outs[0].as<double>(), x[0].local * width, 0.0);
  for (int64_t b = 0; b < x[0].local; ++b)
    std::copy_n(args.ins[0].as<double>() + (b * x[1].local + token.first) * width, token.count * width,
                args.outs[0].as<double>() + b * width);
}

void drop_tokens(const KernelArgs& args) {
  const int64_t first = static_cast<const DropTokensOp&>(args.op).first();
  const Shape& x = args.ins[0].shape();
  const int64_t tokens = x[1].local, width = x[2].local;
  double* target = args.outs[0].as<double>();
  for (int64_t b = 0; b < x[0].local; ++b)
    target = std::copy_n(args.ins[0].as<double>() + (b * tokens + first) * width, (tokens - first) * width,
                         target);
}

void mean_tokens(const KernelArgs& args) {
  const auto& op = static_cast<const MeanTokensOp&>(args.op);
  const Shape& x = args.ins[0].shape();
  const HeldTokens held = op.held(x[1]);
  const int64_t tokens = x[1].local, width = x[2].local;
  for (int64_t b = 0; b < x[0].local; ++b)
    for (int64_t d = 0; d < width; ++d) {
      double sum = 0;
      for (int64_t n = held.first; n < held.first + held.count; ++n)
        sum += args.ins[0].as<double>()[(b * tokens + n) * width + d];
      args.outs[0].as<double>()[b * width + d] = sum / static_cast<double>(x[1].extent - op.first());
    }
}

void sincos_positions(const KernelArgs& args) {
  const std::vector<double> table = static_cast<const SincosPositionsOp&>(args.op).table();
  std::copy(table.begin(), table.end(), args.outs[0].as<double>());
}

void select_token_grad(const KernelArgs& args) {
  const Shape& dx = args.outs[0].shape();
  const HeldTokens token = static_cast<const SelectTokenGradOp&>(args.op).held();
  const int64_t width = dx[2].local;
  std::fill_n(args.outs[0].as<double>(), dx.elems(), 0.0);
  for (int64_t b = 0; b < dx[0].local; ++b)
    std::copy_n(args.ins[0].as<double>() + b * width, token.count * width,
                args.outs[0].as<double>() + (b * dx[1].local + token.first) * width);
}

void mean_tokens_grad(const KernelArgs& args) {
  const auto& op = static_cast<const MeanTokensGradOp&>(args.op);
  const Shape& dx = args.outs[0].shape();
  const HeldTokens held = op.held();
  const int64_t tokens = dx[1].local, width = dx[2].local;
  for (int64_t i = 0; i < dx.elems(); ++i) {
    const int64_t b = i / (tokens * width), n = i / width % tokens;
    const bool shares = n >= held.first && n < held.first + held.count;
    args.outs[0].as<double>()[i] =
        shares ? args.ins[0].as<double>()[b * width + i % width] / static_cast<double>(op.averaged()) : 0.0;
  }
}

void drop_tokens_grad(const KernelArgs& args) {
  const Shape& dx = args.outs[0].shape();
  const int64_t first = static_cast<const DropTokensGradOp&>(args.op).first();
  const int64_t tokens = dx[1].local, width = dx[2].local;
  const double* dy = args.ins[0].as<double>();
  std::fill_n(args.outs[0].as<double>(), dx.elems(), 0.0);
  for (int64_t b = 0; b < dx[0].local; ++b)
    std::copy_n(dy + b * (tokens - first) * width, (tokens - first) * width,
                args.outs[0].as<double>() + (b * tokens + first) * width);
}

void sum_tokens(const KernelArgs& args) {
  const auto& op = static_cast<const SumTokensOp&>(args.op);
  const Shape& x = args.ins[0].shape();
  const int64_t count = args.outs[0].desc().elems(), image = x.elems() / x[0].local;
  std::fill_n(args.outs[0].as<double>(), count, 0.0);
  for (int64_t b = 0; b < x[0].local; ++b)
    for (int64_t i = 0; i < count; ++i)
      args.outs[0].as<double>()[i] += args.ins[0].as<double>()[b * image + op.first() * x[2].local + i];
}

void load_param(const KernelArgs& args) {
  convert_floats(args.ins[0].data(), args.ins[0].dtype(), args.outs[0].data(), args.outs[0].dtype(),
                 static_cast<size_t>(args.ins[0].desc().elems()));
}

}  // namespace

std::vector<OpKernels> tokens_kernels() {
  return {
      in_double<ConcatTokensOp, concat_tokens>(),
      in_double<SelectTokenOp, select_token>(),
      in_double<DropTokensOp, drop_tokens>(),
      in_double<MeanTokensOp, mean_tokens>(),
      in_double<SincosPositionsOp, sincos_positions>(),
      in_double<SelectTokenGradOp, select_token_grad>(),
      in_double<MeanTokensGradOp, mean_tokens_grad>(),
      in_double<DropTokensGradOp, drop_tokens_grad>(),
      in_double<SumTokensOp, sum_tokens>(),
      as_it_is<LoadParamOp, load_param>(),
  };
}

}  // namespace vitrail::ref
