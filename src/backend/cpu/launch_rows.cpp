// Attention and the row-wise ops on the CPU.
#include <cmath>
#include <cstring>

#include "backend/cpu/context.h"
#include "backend/cpu/launch.h"
#include "ops/attention.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/pool_tokens.h"
#include "ops/qk_norm.h"

namespace vitrail::cpu {

size_t attention_scratch_bytes(const NodeView& node, const DeviceInfo& device) {
  const AttentionGeometry g = attention_geometry(node.op, node.ins);
  return attention_scratch(isa_of(device), g.queries, g.keys, g.head_size).total(device.threads);
}

AttentionArgs attention_args(const Op& op, std::span<const TensorView> ins) {
  std::vector<TensorDesc> descs;
  for (const TensorView& view : ins) descs.push_back(view.desc());
  const AttentionGeometry g = attention_geometry(op, descs);
  const auto strides = [](const AttentionStrides& s) { return AttentionView{s.batch, s.row, s.head}; };
  const float *q = ins[0].as<float>(), *kv = ins.back().as<float>();
  return {.q = q + g.q.base,
          .k = kv + g.k.base,
          .v = kv + g.v.base,
          .q_strides = strides(g.q),
          .k_strides = strides(g.k),
          .v_strides = strides(g.v),
          .out_strides = strides(g.out),
          .batch = g.batch,
          .heads = g.heads,
          .queries = g.queries,
          .keys = g.keys,
          .head_size = g.head_size,
          .scale = 1.0f / std::sqrt(static_cast<float>(g.head_size))};
}

void run_attention(const KernelArgs& args) {
  AttentionArgs attention = attention_args(args.op, args.ins);
  attention.out = args.outs[0].as<float>();
  parallel_attention(context_of(args), attention);
}

size_t attention_probs_scratch_bytes(const NodeView& node, const DeviceInfo& device) {
  const AttentionGeometry g = attention_geometry(node.op, node.ins);
  return attention_probs_scratch(isa_of(device), g.queries, g.keys, g.head_size).total(device.threads);
}

void run_attention_probs(const KernelArgs& args) {
  AttentionArgs attention = attention_args(args.op, args.ins);
  attention.out = args.outs[0].as<float>();
  parallel_attention_probs(context_of(args), attention);
}

void run_layernorm(const KernelArgs& args) {
  const int64_t width = args.ins[1].desc().elems();
  parallel_layernorm(context_of(args),
                     {.x = args.ins[0].as<float>(),
                      .x_stride = width,
                      .y = args.outs[0].as<float>(),
                      .y_stride = width,
                      .rows = args.ins[0].desc().elems() / width,
                      .width = width,
                      .gamma = args.ins[1].as<float>(),
                      .beta = args.ins[2].as<float>(),
                      .eps = static_cast<float>(static_cast<const LayernormOp&>(args.op).eps())});
}

void run_qk_norm(const KernelArgs& args) {
  const Shape& shape = args.ins[0].shape();
  const int64_t heads = shape.local('H'), width = shape.local('E'), part = heads * width;
  const CpuContext context = context_of(args);
  const auto eps = static_cast<float>(static_cast<const QkNormOp&>(args.op).eps());
  const float* x = args.ins[0].as<float>();
  float* y = args.outs[0].as<float>();
  const auto token = [&](int64_t row, int) {
    for (int64_t t = 0; t < 2; ++t)
      context.isa.layernorm_rows({.x = x + (3 * row + t) * part,
                                  .x_stride = width,
                                  .y = y + (3 * row + t) * part,
                                  .y_stride = width,
                                  .rows = heads,
                                  .width = width,
                                  .gamma = args.ins[1 + 2 * t].as<float>(),
                                  .beta = args.ins[2 + 2 * t].as<float>(),
                                  .eps = eps});
    if (x != y) std::memcpy(y + (3 * row + 2) * part, x + (3 * row + 2) * part, part * sizeof(float));
  };
  const int64_t tokens = shape.local('B') * shape.local('N');
  if (context.parallel.softmax)
    context.pool.run(tokens, token);
  else
    for (int64_t row = 0; row < tokens; ++row) token(row, 0);
}

void run_softmax(const KernelArgs& args) {
  const int64_t width = args.ins[0].shape().local('K');
  parallel_softmax(context_of(args), args.ins[0].as<float>(), args.ins[0].desc().elems() / width, width,
                   args.outs[0].as<float>());
}

void run_gelu(const KernelArgs& args) {
  const bool tanh_form = static_cast<const GeluOp&>(args.op).tanh_form();
  parallel_activate(context_of(args), tanh_form ? Activation::kGeluTanh : Activation::kGeluErf,
                    args.ins[0].as<float>(), args.ins[0].desc().elems(), args.outs[0].as<float>());
}

void run_bias(const KernelArgs& args) {
  const int64_t width = args.ins[1].desc().elems();
  parallel_add_row(context_of(args), args.ins[0].as<float>(), args.ins[1].as<float>(),
                   args.ins[0].desc().elems() / width, width, args.outs[0].as<float>());
}

void run_scale(const KernelArgs& args) {
  const int64_t width = args.ins[1].desc().elems();
  parallel_scale_row(context_of(args), args.ins[0].as<float>(), args.ins[1].as<float>(),
                     args.ins[0].desc().elems() / width, width, args.outs[0].as<float>());
}

void run_add(const KernelArgs& args) {
  parallel_add(context_of(args), args.ins[0].as<float>(), args.ins[1].as<float>(), args.ins[0].desc().elems(),
               args.outs[0].as<float>());
}

void run_mean_tokens(const KernelArgs& args) {
  const Shape& x = args.ins[0].shape();
  const int64_t first = static_cast<const MeanTokensOp&>(args.op).first(), tokens = x[1].local,
                width = x[2].local;
  parallel_mean_tokens(context_of(args), args.ins[0].as<float>() + first * width, x[0].local, tokens * width,
                       tokens - first, width, args.outs[0].as<float>());
}

}  // namespace vitrail::cpu
