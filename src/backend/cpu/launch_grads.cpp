// Gradients of activations on the CPU.
#include "backend/cpu/context.h"
#include "backend/cpu/grads.h"
#include "backend/cpu/launch.h"
#include "backend/cpu/tiles.h"
#include "ops/attention.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/qk_norm.h"

namespace vitrail::cpu {

namespace {

// The gelu whose gradient a fused node takes after that of the product behind it; null: it is not such a
// node.
const GeluGradOp* gelu_after_dx(const Op& op) {
  const auto* fused = dynamic_cast<const FusedOp*>(&op);
  if (!fused || fused->members().size() != 2) return nullptr;
  const auto &product = fused->members()[0], &gelu = fused->members()[1];
  if (!is<LinearDxOp>(*product.op) || !is<GeluGradOp>(*gelu.op)) return nullptr;
  if (product.sources != std::vector{0, 1} || gelu.sources != std::vector{2, ~0}) return nullptr;
  return static_cast<const GeluGradOp*>(gelu.op.get());
}

Activation activation_of(const GeluGradOp& op) {
  return op.tanh_form() ? Activation::kGeluTanh : Activation::kGeluErf;
}

}  // namespace

// dx[m, k] = dy[m, n] . w[n, k]: to the product w is a weight of k outputs that lies by its inputs.
size_t linear_dx_scratch_bytes(const NodeView& node, const DeviceInfo& device) {
  const MatmulExtents e = linear_dx_extents(node.ins[0].shape, node.ins[1].shape);
  const IsaKernels& isa = isa_of(device);
  return cpu_tiles::padded_bytes(isa.packed_elems(e.k, e.n)) +
         linear_scratch(isa, e.m, e.k, e.n, false).total(device.threads);
}

void run_linear_dx(const KernelArgs& args) {
  const MatmulExtents e = linear_dx_extents(args.ins[0].shape(), args.ins[1].shape());
  const CpuContext context = context_of(args);
  auto* packed = reinterpret_cast<float*>(context.scratch.data());
  parallel_pack_matrix(context, args.ins[1].as<float>(), e.n, e.k, packed);
  const LinearArgs linear{.a = args.ins[0].as<float>(),
                          .lda = e.n,
                          .packed = packed,
                          .c = args.outs[0].as<float>(),
                          .ldc = e.k,
                          .m = e.m,
                          .n = e.k,
                          .k = e.n,
                          .norm = {},
                          .epilogue = {}};
  const CpuContext rest =
      cpu_tiles::past(context, cpu_tiles::padded_bytes(context.isa.packed_elems(e.k, e.n)));
  if (const GeluGradOp* gelu = gelu_after_dx(args.op))
    return parallel_linear_activate_grad(rest, linear, activation_of(*gelu), args.ins[2].as<float>());
  parallel_linear(rest, linear);
}

std::string declines_gelu_dx(const NodeView& node, const DeviceInfo& device) {
  if (!gelu_after_dx(node.op)) return "not the gradient of a product behind a gelu";
  return declines_unless_f32(node, device);
}

std::string declines_attention_grad(const NodeView& node, const DeviceInfo& device) {
  if (node.ins.size() != 2) return "takes packed qkv only";
  return declines_unless_f32(node, device);
}

size_t attention_grad_scratch_bytes(const NodeView& node, const DeviceInfo& device) {
  const AttentionGeometry g = attention_geometry(node.op, node.ins.first(1));
  return attention_grad_scratch(isa_of(device), g.queries, g.keys, g.head_size).total(device.threads);
}

void run_attention_grad(const KernelArgs& args) {
  AttentionGradArgs grad{.forward = attention_args(args.op, args.ins.first(1)),
                         .dout = args.ins[1].as<float>()};
  const AttentionArgs& f = grad.forward;
  const float* qkv = args.ins[0].as<float>();
  float* dqkv = args.outs[0].as<float>();
  grad.dq = dqkv + (f.q - qkv), grad.dk = dqkv + (f.k - qkv), grad.dv = dqkv + (f.v - qkv);
  parallel_attention_grad(context_of(args), grad);
}

size_t layernorm_grad_scratch_bytes(const NodeView& node, const DeviceInfo& device) {
  const int64_t width = node.ins[1].elems();
  return layernorm_grad_scratch(node.ins[0].elems() / width, width, node.outs.size() > 1)
      .total(device.threads);
}

void run_layernorm_grad(const KernelArgs& args) {
  const int64_t width = args.ins[1].desc().elems();
  NormGradRows rows{.x = args.ins[0].as<float>(),
                    .dy = args.ins[2].as<float>(),
                    .dx = args.outs[0].as<float>(),
                    .stride = width,
                    .rows = args.ins[0].desc().elems() / width,
                    .width = width,
                    .gamma = args.ins[1].as<float>(),
                    .eps = static_cast<float>(static_cast<const LayernormGradOp&>(args.op).eps())};
  if (args.outs.size() > 1) rows.dgamma = args.outs[1].as<float>(), rows.dbeta = args.outs[2].as<float>();
  if (args.ins.size() > 3) rows.residual = args.ins[3].as<float>();
  parallel_layernorm_grad(context_of(args), rows);
}

size_t qk_norm_grad_scratch_bytes(const NodeView& node, const DeviceInfo& device) {
  const Shape& qkv = node.ins[0].shape;
  return qk_norm_grad_scratch(qkv.local('B') * qkv.local('N'), qkv.local('E')).total(device.threads);
}

void run_qk_norm_grad(const KernelArgs& args) {
  const Shape& qkv = args.ins[0].shape();
  QkNormGradArgs grad{.qkv = args.ins[0].as<float>(),
                      .dy = args.ins[3].as<float>(),
                      .gamma = {args.ins[1].as<float>(), args.ins[2].as<float>()},
                      .dqkv = args.outs[0].as<float>(),
                      .tokens = qkv.local('B') * qkv.local('N'),
                      .heads = qkv.local('H'),
                      .head_size = qkv.local('E'),
                      .eps = static_cast<float>(static_cast<const QkNormGradOp&>(args.op).eps())};
  for (size_t i = 1; i < args.outs.size(); ++i) grad.parameters[i - 1] = args.outs[i].as<float>();
  parallel_qk_norm_grad(context_of(args), grad);
}

void run_gelu_grad(const KernelArgs& args) {
  const CpuContext context = context_of(args);
  const Activation act = activation_of(static_cast<const GeluGradOp&>(args.op));
  const float *x = args.ins[0].as<float>(), *dy = args.ins[1].as<float>();
  float* dx = args.outs[0].as<float>();
  cpu_tiles::spread_rows(context, args.ins[0].desc().elems(), 1, [&](int64_t first, int64_t count) {
    context.isa.activate_grad(act, x + first, dy + first, count, dx + first);
  });
}

void run_tanh_grad(const KernelArgs& args) {
  const CpuContext context = context_of(args);
  const float *y = args.ins[0].as<float>(), *dy = args.ins[1].as<float>();
  float* dx = args.outs[0].as<float>();
  cpu_tiles::spread_rows(context, args.ins[0].desc().elems(), 1, [&](int64_t first, int64_t count) {
    context.isa.tanh_grad(y + first, dy + first, count, dx + first);
  });
}

}  // namespace vitrail::cpu
