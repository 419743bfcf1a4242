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
Bound<TokenMoveCall> move_into(const NodeView& node, int64_t images, int64_t tokens, int64_t width) {
  Bound<TokenMoveCall> call;
  call->images = images;
  call->tokens = tokens;
  call->width = width;
  return call.bind(call->out, output(node));
}
Bound<TokenMoveCall> move_into(const NodeView& node) {
  const Shape& out = node.outs[0].shape;
  return move_into(node, out[0].local, out[1].local, out[2].local);
}

void add_part(Bound<TokenMoveCall>& call, const Place& source, const TokenPart& part) {
  TokenPart& added = call->part[call->parts++];
  added = part;
  call.bind(added.source, source);
}

// The tokens of the one value that is moved.
Prepared moved(const NodeView& node, Bound<TokenMoveCall> call, const TokenPart& part) {
  add_part(call, input(node, 0), part);
  return prepared(&TokensApi::move, call);
}

std::string declines_concat(const NodeView& node, const DeviceInfo& device) {
  if (node.ins.size() > kMostTokenParts)
    return strf("joins %d values at most, not %zu", kMostTokenParts, node.ins.size());
  return declines_unless_plain(node, device);
}

Bound<TokenMoveCall> concat_call(const NodeView& node, size_t count) {
  Bound<TokenMoveCall> call = move_into(node);
  int64_t first = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool patches = i + 1 == count;
    const int64_t tokens = node.ins[i].shape[patches ? 1 : 0].local;
    add_part(call, input(node, static_cast<int>(i)),
             {.source = {},
              .first = first,
              .count = tokens,
              .image_stride = patches ? tokens * call->width : 0,
              .token_stride = call->width});
    first += tokens;
  }
  return call;
}

Prepared prepare_concat_tokens(const NodeView& node, const DeviceInfo&) {
  return prepared(&TokensApi::move, concat_call(node, node.ins.size()));
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

Prepared prepare_positions(const NodeView& node, const DeviceInfo&) {
  const size_t last = node.ins.size() - 1;
  Bound<TokenMoveCall> call = concat_call(node, last);
  call.bind(call->positions, input(node, static_cast<int>(last)));
  const std::vector<TensorDesc> made = op_of<FusedOp>(node).member_outputs(node.ins);
  call->rounded = made[made.size() - 2].dtype;
  return prepared(&TokensApi::move, call);
}

Rounding rounding_of_positions(const NodeView& node) {
  return {.members = fuses<ConcatTokensOp, CastOp, BiasOp>(node.op)};
}

Kernel positions_kernel() {
  Kernel kernel = cuda_kernel("move", prepare_positions, declines_positions);
  kernel.rounding = rounding_of_positions;
  return kernel;
}

Prepared prepare_select_token(const NodeView& node, const DeviceInfo&) {
  const Shape& x = node.ins[0].shape;
  const int64_t width = x[2].local;
  const HeldTokens token = op_of<SelectTokenOp>(node).held(x[1]);
  const Bound<TokenMoveCall> call = move_into(node, x[0].local, 1, width);
  if (token.count == 0) return prepared(&TokensApi::move, call);
  return moved(node, call,
               {.source = {}, .count = 1, .offset = token.first * width, .image_stride = x[1].local * width});
}

Prepared prepare_select_token_grad(const NodeView& node, const DeviceInfo&) {
  const Bound<TokenMoveCall> call = move_into(node);
  const HeldTokens token = op_of<SelectTokenGradOp>(node).held();
  if (token.count == 0) return prepared(&TokensApi::move, call);
  return moved(node, call, {.source = {}, .first = token.first, .count = 1, .image_stride = call->width});
}

Prepared prepare_drop_tokens(const NodeView& node, const DeviceInfo&) {
  const Bound<TokenMoveCall> call = move_into(node);
  return moved(node, call,
               {.source = {},
                .count = call->tokens,
                .offset = op_of<DropTokensOp>(node).first() * call->width,
                .image_stride = node.ins[0].shape[1].local * call->width,
                .token_stride = call->width});
}

Prepared prepare_drop_tokens_grad(const NodeView& node, const DeviceInfo&) {
  const Bound<TokenMoveCall> call = move_into(node);
  const int64_t first = op_of<DropTokensGradOp>(node).first(), kept = call->tokens - first;
  return moved(node, call,
               {.source = {},
                .first = first,
                .count = kept,
                .image_stride = kept * call->width,
                .token_stride = call->width});
}

Prepared prepare_mean_tokens_grad(const NodeView& node, const DeviceInfo&) {
  const Bound<TokenMoveCall> call = move_into(node);
  const auto& op = op_of<MeanTokensGradOp>(node);
  const HeldTokens held = op.held();
  if (held.count == 0) return prepared(&TokensApi::move, call);
  return moved(node, call,
               {.source = {},
                .first = held.first,
                .count = held.count,
                .image_stride = call->width,
                .factor = 1.0f / static_cast<float>(op.averaged())});
}

Prepared prepare_mean_tokens(const NodeView& node, const DeviceInfo&) {
  const Shape& x = node.ins[0].shape;
  const auto& op = op_of<MeanTokensOp>(node);
  const HeldTokens held = op.held(x[1]);
  const int64_t width = x[2].local;
  if (held.count == 0) return prepared(&TokensApi::move, move_into(node, x[0].local, 1, width));
  Bound<TokenSumCall> call({.x = {},
                            .out = {},
                            .offset = held.first * width,
                            .outer = x[0].local,
                            .outer_stride = x[1].local * width,
                            .terms = held.count,
                            .term_stride = width,
                            .columns = width,
                            .factor = 1.0f / static_cast<float>(x[1].extent - op.first())});
  call.bind(call->x, input(node, 0)).bind(call->out, output(node));
  return prepared(&TokensApi::sum, call);
}

Bound<TokenMaxCall> max_call(const NodeView& node, int64_t first) {
  const Shape& x = node.ins[0].shape;
  Bound<TokenMaxCall> call;
  call->images = x[0].local;
  call->tokens = x[1].local;
  call->width = x[2].local;
  call->first = first;
  return call.bind(call->x, input(node, 0));
}

Prepared prepare_max_tokens(const NodeView& node, const DeviceInfo&) {
  Bound<TokenMaxCall> call = max_call(node, op_of<MaxTokensOp>(node).first());
  return prepared(&TokensApi::max, call.bind(call->out, output(node)));
}

Prepared prepare_max_tokens_grad(const NodeView& node, const DeviceInfo&) {
  Bound<TokenMaxCall> call = max_call(node, op_of<MaxTokensGradOp>(node).first());
  call.bind(call->dy, input(node, 1)).bind(call->dx, output(node));
  return prepared(&TokensApi::max_grad, call);
}

Bound<TokenSumCall> sum_call(const NodeView& node, const SumTokensOp& op, int x, const Place& out) {
  const Shape& shape = node.ins[static_cast<size_t>(x)].shape;
  const int64_t width = shape[2].local;
  Bound<TokenSumCall> call({.x = {},
                            .out = {},
                            .offset = op.first() * width,
                            .terms = shape[0].local,
                            .term_stride = shape[1].local * width,
                            .columns = op.count() * width});
  return call.bind(call->x, input(node, x)).bind(call->out, out);
}

Prepared prepare_sum_tokens(const NodeView& node, const DeviceInfo&) {
  return prepared(&TokensApi::sum, sum_call(node, op_of<SumTokensOp>(node), 0, output(node)));
}

std::string declines_added_sum(const NodeView& node, const DeviceInfo& device) {
  if (!fuses<SumTokensOp, AccumulateOp>(node.op)) return "not a sum of tokens added to another";
  return declines_unless_plain(node, device);
}

Prepared prepare_added_sum(const NodeView& node, const DeviceInfo&) {
  const auto& members = op_of<FusedOp>(node).members();
  Bound<TokenSumCall> call =
      sum_call(node, dynamic_cast<const SumTokensOp&>(*members[0].op), members[0].sources[0].input(),
               input(node, members[1].sources[0].input()));
  call->adds = true;
  return prepared(&TokensApi::sum, call);
}

Prepared prepare_sincos_positions(const NodeView& node, const DeviceInfo&) {
  const auto& op = op_of<SincosPositionsOp>(node);
  Bound<SincosCall> call;
  call->rows = op.rows();
  call->columns = op.columns();
  call->width = op.width();
  return prepared(&TokensApi::sincos, call.bind(call->out, output(node)));
}

}  // namespace

std::vector<OpKernels> token_kernels() {
  return {row<ConcatTokensOp>({cuda_kernel("move", prepare_concat_tokens, declines_concat)}),
          row<SelectTokenOp>({cuda_kernel("move", prepare_select_token)}),
          row<SelectTokenGradOp>({cuda_kernel("move", prepare_select_token_grad)}),
          row<DropTokensOp>({cuda_kernel("move", prepare_drop_tokens)}),
          row<DropTokensGradOp>({cuda_kernel("move", prepare_drop_tokens_grad)}),
          row<MeanTokensGradOp>({cuda_kernel("move", prepare_mean_tokens_grad)}),
          row<MeanTokensOp>({cuda_kernel("sum", prepare_mean_tokens)}),
          row<MaxTokensOp>({cuda_kernel("max", prepare_max_tokens)}),
          row<MaxTokensGradOp>({cuda_kernel("max", prepare_max_tokens_grad)}),
          row<SumTokensOp>({cuda_kernel("sum", prepare_sum_tokens)}),
          row<SincosPositionsOp>({cuda_kernel("sincos", prepare_sincos_positions)}),
          fused_row({cuda_kernel("sum_tokens", prepare_added_sum, declines_added_sum), positions_kernel()})};
}

}  // namespace vitrail::cuda
