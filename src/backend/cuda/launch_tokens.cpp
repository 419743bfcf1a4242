// Launches of moves and sums of tokens, [B N D], as rows that are copied from somewhere or are zero.
#include "backend/cuda/launch.h"
#include "ops/bias.h"
#include "ops/concat_tokens.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/max_tokens.h"
#include "ops/persistent.h"
#include "ops/pool_tokens.h"
#include "ops/sincos_positions.h"

namespace vitrail::cuda {

namespace {

// The call that sets all tokens of the result to zero; parts are added to it.
TokenMoveCall move_into(const TensorView& out, int64_t images, int64_t tokens, int64_t width) {
  TokenMoveCall call;
  call.out = operand(out);
  call.images = images, call.tokens = tokens, call.width = width;
  return call;
}
TokenMoveCall move_into(const TensorView& out) {
  return move_into(out, out.shape()[0].local, out.shape()[1].local, out.shape()[2].local);
}

void move(const KernelArgs& args, const TokenMoveCall& call) {
  api().tokens.move(session(args), call);
}
void move(const KernelArgs& args, TokenMoveCall call, const TokenPart& part) {
  call.part[call.parts++] = part;
  move(args, call);
}

std::string declines_concat(const NodeView& node, const DeviceInfo& device) {
  if (node.ins.size() > kMostTokenParts)
    return strf("joins %d values at most, not %zu", kMostTokenParts, node.ins.size());
  return declines_unless_plain(node, device);
}

TokenMoveCall concat_call(const TensorView& out, std::span<const TensorView> ins) {
  TokenMoveCall call = move_into(out);
  int64_t first = 0;
  for (const TensorView& in : ins) {
    const bool patches = &in == &ins.back();
    const int64_t count = in.shape()[patches ? 1 : 0].local;
    call.part[call.parts++] = {.source = operand(in),
                               .first = first,
                               .count = count,
                               .image_stride = patches ? count * call.width : 0,
                               .token_stride = call.width};
    first += count;
  }
  return call;
}

void run_concat_tokens(const KernelArgs& args) {
  move(args, concat_call(args.outs[0], args.ins));
}

// Tokens that are joined, perhaps cast, and get their positions. The kernel rounds once before it adds, so a
// cast must be of f32.
std::string declines_positions(const NodeView& node, const DeviceInfo& device) {
  const bool cast = fuses<ConcatTokensOp, CastOp, BiasOp>(node.op);
  if (!cast && !fuses<ConcatTokensOp, BiasOp>(node.op)) return "not tokens with their positions";
  const auto& fused = static_cast<const FusedOp&>(node.op);
  const TensorDesc joined = fused.member_outputs(node.ins)[0];
  if (cast && joined.dtype != DType::kF32) return "casts f32 only";
  if (node.ins.back().elems() * joined.shape[0].local != joined.elems()) return "adds a position per token";
  return declines_concat({node.op, node.ins.first(node.ins.size() - 1), node.outs}, device);
}

void run_positions(const KernelArgs& args) {
  std::vector<TensorDesc> descs;
  for (const TensorView& in : args.ins) descs.push_back(in.desc());
  TokenMoveCall call = concat_call(args.outs[0], args.ins.first(args.ins.size() - 1));
  call.positions = operand(args.ins.back());
  const std::vector<TensorDesc> made = op_of<FusedOp>(args).member_outputs(descs);
  call.rounded = made[made.size() - 2].dtype;
  move(args, call);
}

Rounding rounding_of_positions(const NodeView& node) {
  return {.members = fuses<ConcatTokensOp, CastOp, BiasOp>(node.op)};
}

Kernel positions_kernel() {
  Kernel kernel = cuda_kernel("move", run_positions, declines_positions);
  kernel.rounding = rounding_of_positions;
  return kernel;
}

void run_select_token(const KernelArgs& args) {
  const Shape& x = args.ins[0].shape();
  const int64_t width = x[2].local;
  const HeldTokens token = op_of<SelectTokenOp>(args).held(x[1]);
  const TokenMoveCall call = move_into(args.outs[0], x[0].local, 1, width);
  if (token.count == 0) return move(args, call);
  move(args, call,
       {.source = operand(args.ins[0]),
        .count = 1,
        .offset = token.first * width,
        .image_stride = x[1].local * width});
}

void run_select_token_grad(const KernelArgs& args) {
  const TokenMoveCall call = move_into(args.outs[0]);
  const HeldTokens token = op_of<SelectTokenGradOp>(args).held();
  if (token.count == 0) return move(args, call);
  move(args, call,
       {.source = operand(args.ins[0]), .first = token.first, .count = 1, .image_stride = call.width});
}

void run_drop_tokens(const KernelArgs& args) {
  const TokenMoveCall call = move_into(args.outs[0]);
  move(args, call,
       {.source = operand(args.ins[0]),
        .count = call.tokens,
        .offset = op_of<DropTokensOp>(args).first() * call.width,
        .image_stride = args.ins[0].shape()[1].local * call.width,
        .token_stride = call.width});
}

void run_drop_tokens_grad(const KernelArgs& args) {
  const TokenMoveCall call = move_into(args.outs[0]);
  const int64_t first = op_of<DropTokensGradOp>(args).first(), kept = call.tokens - first;
  move(args, call,
       {.source = operand(args.ins[0]),
        .first = first,
        .count = kept,
        .image_stride = kept * call.width,
        .token_stride = call.width});
}

void run_mean_tokens_grad(const KernelArgs& args) {
  const TokenMoveCall call = move_into(args.outs[0]);
  const auto& op = op_of<MeanTokensGradOp>(args);
  const HeldTokens held = op.held();
  if (held.count == 0) return move(args, call);
  move(args, call,
       {.source = operand(args.ins[0]),
        .first = held.first,
        .count = held.count,
        .image_stride = call.width,
        .factor = 1.0f / static_cast<float>(op.averaged())});
}

void run_mean_tokens(const KernelArgs& args) {
  const Shape& x = args.ins[0].shape();
  const auto& op = op_of<MeanTokensOp>(args);
  const HeldTokens held = op.held(x[1]);
  const int64_t width = x[2].local;
  if (held.count == 0) return move(args, move_into(args.outs[0], x[0].local, 1, width));
  api().tokens.sum(session(args), {.x = operand(args.ins[0]),
                                   .out = operand(args.outs[0]),
                                   .offset = held.first * width,
                                   .outer = x[0].local,
                                   .outer_stride = x[1].local * width,
                                   .terms = held.count,
                                   .term_stride = width,
                                   .columns = width,
                                   .factor = 1.0f / static_cast<float>(x[1].extent - op.first())});
}

TokenMaxCall max_call(const KernelArgs& args, int64_t first) {
  const Shape& x = args.ins[0].shape();
  return {.x = operand(args.ins[0]),
          .images = x[0].local,
          .tokens = x[1].local,
          .width = x[2].local,
          .first = first};
}

void run_max_tokens(const KernelArgs& args) {
  TokenMaxCall call = max_call(args, op_of<MaxTokensOp>(args).first());
  call.out = operand(args.outs[0]);
  api().tokens.max(session(args), call);
}

void run_max_tokens_grad(const KernelArgs& args) {
  TokenMaxCall call = max_call(args, op_of<MaxTokensGradOp>(args).first());
  call.dy = operand(args.ins[1]), call.dx = operand(args.outs[0]);
  api().tokens.max_grad(session(args), call);
}

void sum_tokens(const KernelArgs& args, const SumTokensOp& op, const TensorView& x, const TensorView& out,
                bool adds) {
  const int64_t width = x.shape()[2].local;
  api().tokens.sum(session(args), {.x = operand(x),
                                   .out = operand(out),
                                   .offset = op.first() * width,
                                   .terms = x.shape()[0].local,
                                   .term_stride = x.shape()[1].local * width,
                                   .columns = op.count() * width,
                                   .adds = adds});
}

void run_sum_tokens(const KernelArgs& args) {
  sum_tokens(args, op_of<SumTokensOp>(args), args.ins[0], args.outs[0], false);
}

std::string declines_added_sum(const NodeView& node, const DeviceInfo& device) {
  if (!fuses<SumTokensOp, AccumulateOp>(node.op)) return "not a sum of tokens added to another";
  return declines_unless_plain(node, device);
}

void run_added_sum(const KernelArgs& args) {
  const auto& members = op_of<FusedOp>(args).members();
  sum_tokens(args, dynamic_cast<const SumTokensOp&>(*members[0].op), args.ins[members[0].sources[0]],
             args.ins[members[1].sources[0]], true);
}

void run_sincos_positions(const KernelArgs& args) {
  const auto& op = op_of<SincosPositionsOp>(args);
  api().tokens.sincos(
      session(args),
      {.out = operand(args.outs[0]), .rows = op.rows(), .columns = op.columns(), .width = op.width()});
}

}  // namespace

std::vector<OpKernels> token_kernels() {
  return {{"concat_tokens", {cuda_kernel("move", run_concat_tokens, declines_concat)}},
          {"select_token", {cuda_kernel("move", run_select_token)}},
          {"select_token_grad", {cuda_kernel("move", run_select_token_grad)}},
          {"drop_tokens", {cuda_kernel("move", run_drop_tokens)}},
          {"drop_tokens_grad", {cuda_kernel("move", run_drop_tokens_grad)}},
          {"mean_tokens_grad", {cuda_kernel("move", run_mean_tokens_grad)}},
          {"mean_tokens", {cuda_kernel("sum", run_mean_tokens)}},
          {"max_tokens", {cuda_kernel("max", run_max_tokens)}},
          {"max_tokens_grad", {cuda_kernel("max", run_max_tokens_grad)}},
          {"sum_tokens", {cuda_kernel("sum", run_sum_tokens)}},
          {"sincos_positions", {cuda_kernel("sincos", run_sincos_positions)}},
          {"fused", {cuda_kernel("sum_tokens", run_added_sum, declines_added_sum), positions_kernel()}}};
}

}  // namespace vitrail::cuda
