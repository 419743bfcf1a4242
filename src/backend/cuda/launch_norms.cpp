// Launches of norms, softmaxes and their gradients on the GPU.
#include <algorithm>

#include "backend/cuda/launch.h"
#include "ops/layernorm.h"
#include "ops/qk_norm.h"
#include "ops/rmsnorm.h"

namespace vitrail::cuda {

namespace {

NormRows layernorm_rows(const TensorDesc& x, const TensorDesc& weight, double eps) {
  const int64_t width = weight.elems();
  return {.rows = x.elems() / width, .width = width, .heads = 0, .eps = static_cast<float>(eps)};
}

NormRows qk_rows(const TensorDesc& x, double eps) {
  const int64_t width = x.shape.local('E');
  return {.rows = x.elems() / width / 3,
          .width = width,
          .heads = x.shape.local('H'),
          .eps = static_cast<float>(eps)};
}

void run_layernorm(const KernelArgs& args) {
  NormCall call{
      .rows = layernorm_rows(args.ins[0].desc(), args.ins[1].desc(), op_of<LayernormOp>(args).eps()),
      .x = operand(args.ins[0]),
      .y = operand(args.outs[0]),
      .early = args.is_fixed(1) && args.is_fixed(2)};
  call.weight[0] = operand(args.ins[1]), call.bias[0] = operand(args.ins[2]);
  api().norms.norm(session(args), call);
}

void run_qk_norm(const KernelArgs& args) {
  NormCall call{.rows = qk_rows(args.ins[0].desc(), op_of<QkNormOp>(args).eps()),
                .x = operand(args.ins[0]),
                .y = operand(args.outs[0])};
  for (size_t part : {0u, 1u}) {
    call.weight[part] = operand(args.ins[1 + 2 * part]);
    call.bias[part] = operand(args.ins[2 + 2 * part]);
  }
  api().norms.norm(session(args), call);
}

// The number of blocks that the rows are divided among: as many as run at once, fewer for wide rows, and at
// most one per eight rows.
int64_t grad_blocks(const NormRows& rows, const DeviceInfo& device) {
  const int64_t processors = processors_of(device);
  return std::clamp<int64_t>((rows.rows + 7) / 8, 1, processors * (rows.width <= 512 ? 2 : 1));
}

size_t partial_bytes(const NormRows& rows, int64_t sums, const DeviceInfo& device) {
  return static_cast<size_t>(grad_blocks(rows, device) * sums * rows.width) * sizeof(float);
}

size_t layernorm_grad_scratch(const NodeView& node, const DeviceInfo& device) {
  const auto sums = static_cast<int64_t>(static_cast<const LayernormGradOp&>(node.op).copy_at()) - 1;
  return partial_bytes(layernorm_rows(node.ins[0], node.ins[1], 0), sums, device);
}

size_t qk_norm_grad_scratch(const NodeView& node, const DeviceInfo& device) {
  const auto sums = static_cast<int64_t>(node.outs.size()) - 1;
  return partial_bytes(qk_rows(node.ins[0], 0), sums, device);
}

NormGradCall grad_call(const KernelArgs& args, const NormRows& rows, const TensorView& dy) {
  NormGradCall call;
  call.rows = rows;
  call.x = operand(args.ins[0]), call.dy = operand(dy), call.dx = operand(args.outs[0]);
  call.partials = reinterpret_cast<float*>(args.scratch.data());
  call.blocks = grad_blocks(rows, args.context.device);
  return call;
}

void run_layernorm_grad(const KernelArgs& args) {
  const NormRows rows =
      layernorm_rows(args.ins[0].desc(), args.ins[1].desc(), op_of<LayernormGradOp>(args).eps());
  NormGradCall call = grad_call(args, rows, args.ins[2]);
  call.weight[0] = operand(args.ins[1]);
  const auto& op = op_of<LayernormGradOp>(args);
  if (op.parameters()) call.dweight[0] = operand(args.outs[1]), call.dbias[0] = operand(args.outs[2]);
  if (op.row_sums()) call.column_sums = operand(args.outs[op.sums_at()]);
  if (op.copy()) call.copy = operand(args.outs[op.copy_at()]);
  if (args.ins.size() > 3) call.residual = operand(args.ins[3]);
  api().norms.norm_grad(session(args), call);
}

void run_qk_norm_grad(const KernelArgs& args) {
  const NormRows rows = qk_rows(args.ins[0].desc(), op_of<QkNormGradOp>(args).eps());
  NormGradCall call = grad_call(args, rows, args.ins[3]);
  for (size_t part : {0u, 1u}) {
    call.weight[part] = operand(args.ins[1 + part]);
    if (args.outs.size() == 1) continue;
    call.dweight[part] = operand(args.outs[1 + 2 * part]);
    call.dbias[part] = operand(args.outs[2 + 2 * part]);
  }
  api().norms.norm_grad(session(args), call);
}

RmsCall rms_call(const KernelArgs& args, double eps) {
  const int64_t width = args.ins[1].desc().elems();
  return {.rows = args.ins[0].desc().elems() / width,
          .width = width,
          .eps = static_cast<float>(eps),
          .x = operand(args.ins[0]),
          .weight = operand(args.ins[1])};
}

void run_rmsnorm(const KernelArgs& args) {
  RmsCall call = rms_call(args, op_of<RmsnormOp>(args).eps());
  call.y = operand(args.outs[0]);
  api().norms.rms(session(args), call);
}

size_t rmsnorm_grad_scratch(const NodeView& node, const DeviceInfo&) {
  return static_cast<size_t>(node.ins[0].elems() / node.ins[1].elems()) * sizeof(float);
}

void run_rmsnorm_grad(const KernelArgs& args) {
  RmsCall call = rms_call(args, op_of<RmsnormGradOp>(args).eps());
  call.dy = operand(args.ins[2]), call.dx = operand(args.outs[0]);
  if (op_of<RmsnormGradOp>(args).parameters()) call.dweight = operand(args.outs[1]);
  call.inverse = reinterpret_cast<float*>(args.scratch.data());
  api().norms.rms_grad(session(args), call);
}

void run_softmax(const KernelArgs& args) {
  const TensorDesc& x = args.ins[0].desc();
  api().norms.softmax(
      session(args),
      {.x = operand(args.ins[0]), .y = operand(args.outs[0]), .rows = row_count(x), .width = row_length(x)});
}

void run_softmax_grad(const KernelArgs& args) {
  const TensorDesc& y = args.ins[0].desc();
  api().norms.softmax_grad(session(args), {.y = operand(args.ins[0]),
                                           .dy = operand(args.ins[1]),
                                           .dx = operand(args.outs[0]),
                                           .rows = row_count(y),
                                           .width = row_length(y)});
}

}  // namespace

std::vector<OpKernels> norm_kernels() {
  return {
      {"layernorm", {cuda_kernel("norm", run_layernorm)}},
      {"layernorm_grad",
       {cuda_kernel("norm_grad", run_layernorm_grad, declines_unless_plain, layernorm_grad_scratch)}},
      {"qk_norm", {cuda_kernel("norm", run_qk_norm)}},
      {"qk_norm_grad",
       {cuda_kernel("norm_grad", run_qk_norm_grad, declines_unless_plain, qk_norm_grad_scratch)}},
      {"rmsnorm", {cuda_kernel("rms", run_rmsnorm)}},
      {"rmsnorm_grad",
       {cuda_kernel("rms_grad", run_rmsnorm_grad, declines_unless_plain, rmsnorm_grad_scratch)}},
      {"softmax", {cuda_kernel("rows", run_softmax)}},
      {"softmax_grad", {cuda_kernel("rows", run_softmax_grad)}},
  };
}

}  // namespace vitrail::cuda
