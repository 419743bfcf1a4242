// Launches of attention, attention weights and the gradient of attention. Strides are derived from the shapes
// once, when a kernel is prepared.
#include <cmath>

#include "backend/cpu/attention/attention.h"
#include "backend/cpu/launch.h"
#include "ops/attention.h"

namespace vitrail::cpu {

namespace {

// Sizes and strides, and where q, k and v begin in the inputs that hold them.
struct Geometry {
  AttentionArgs sizes;
  int64_t q, k, v;

  Geometry(const Op& op, DescSpan ins) {
    const AttentionGeometry g = attention_geometry(op, ins);
    const auto strides = [](const AttentionStrides& s) { return AttentionView{s.batch, s.row, s.head}; };
    sizes = {.q_strides = strides(g.q),
             .k_strides = strides(g.k),
             .v_strides = strides(g.v),
             .out_strides = strides(g.out),
             .batch = g.batch,
             .heads = g.heads,
             .queries = g.queries,
             .keys = g.keys,
             .head_size = g.head_size,
             .scale = 1.0f / std::sqrt(static_cast<float>(g.head_size))};
    q = g.q.base;
    k = g.k.base;
    v = g.v.base;
  }
  AttentionArgs at(const float* query, const float* key_value) const {
    AttentionArgs args = sizes;
    args.q = query + q;
    args.k = key_value + k;
    args.v = key_value + v;
    return args;
  }
};

using ScratchOf = ScratchNeed (*)(const IsaKernels&, int64_t queries, int64_t keys, int64_t head_size);

size_t bytes_of(ScratchOf need, const AttentionArgs& sizes, const DeviceInfo& device) {
  return need(isa_of(device), sizes.queries, sizes.keys, sizes.head_size).total(device.threads);
}

// Prepares attention or the attention weights, which differ only in the function that runs.
template <ScratchOf need, void (*run)(const CpuContext&, const AttentionArgs&)>
Prepared prepare_forward(const NodeView& node, const DeviceInfo& device) {
  const Geometry geometry(node.op, node.ins);
  return {bytes_of(need, geometry.sizes, device), [geometry](const KernelArgs& args) {
            AttentionArgs attention = geometry.at(args.ins[0].as<float>(), args.ins.back().as<float>());
            attention.out = args.outs[0].as<float>();
            run(context_of(args), attention);
          }};
}

std::string declines_grad(const NodeView& node, const DeviceInfo& device) {
  if (node.ins.size() != 2) return "takes packed qkv only";
  return declines_unless_f32(node, device);
}

Prepared prepare_grad(const NodeView& node, const DeviceInfo& device) {
  const Geometry geometry(node.op, node.ins.first(1));
  return {bytes_of(attention_grad_scratch, geometry.sizes, device), [geometry](const KernelArgs& args) {
            const float* qkv = args.ins[0].as<float>();
            float* dqkv = args.outs[0].as<float>();
            parallel_attention_grad(context_of(args), {.forward = geometry.at(qkv, qkv),
                                                       .dout = args.ins[1].as<float>(),
                                                       .dq = dqkv + geometry.q,
                                                       .dk = dqkv + geometry.k,
                                                       .dv = dqkv + geometry.v});
          }};
}

}  // namespace

std::vector<OpKernels> attention_kernels() {
  return {
      row<AttentionOp>({{.name = "blocked online softmax",
                         .declines = declines_unless_f32,
                         .prepare = prepare_forward<attention_scratch, parallel_attention>}}),
      row<AttentionProbsOp>(
          {{.name = "products and softmax rows",
            .declines = declines_unless_f32,
            .prepare = prepare_forward<attention_probs_scratch, parallel_attention_probs>}}),
      row<AttentionGradOp>(
          {{.name = "blocks of queries", .declines = declines_grad, .prepare = prepare_grad}}),
  };
}

}  // namespace vitrail::cpu
