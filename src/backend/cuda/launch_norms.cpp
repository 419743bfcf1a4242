// Launches of norms, softmaxes and their gradients on the GPU.
#include <algorithm>

#include "backend/cuda/launch.h"
#include "ops/layernorm.h"
#include "ops/qk_norm.h"
#include "ops/rmsnorm.h"
#include "ops/softmax.h"

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

Prepared prepare_layernorm(const NodeView& node, const DeviceInfo&) {
  Bound<NormCall> call;
  call->rows = layernorm_rows(node.ins[0], node.ins[1], op_of<LayernormOp>(node).eps());
  call.bind(call->x, input(node, 0)).bind(call->y, output(node));
  call.bind(call->weight[0], input(node, 1)).bind(call->bias[0], input(node, 2));
  call.bind_fixed(call->early, {1, 2});
  return prepared(&NormsApi::norm, call);
}

Prepared prepare_qk_norm(const NodeView& node, const DeviceInfo&) {
  Bound<NormCall> call;
  call->rows = qk_rows(node.ins[0], op_of<QkNormOp>(node).eps());
  call.bind(call->x, input(node, 0)).bind(call->y, output(node));
  for (int part : {0, 1}) {
    call.bind(call->weight[part], input(node, 1 + 2 * part));
    call.bind(call->bias[part], input(node, 2 + 2 * part));
  }
  return prepared(&NormsApi::norm, call);
}

// The number of blocks that the rows are divided among: as many as run at once, fewer for wide rows, and at
// most one per eight rows.
int64_t grad_blocks(const NormRows& rows, const DeviceInfo& device) {
  const int64_t processors = processors_of(device);
  return std::clamp<int64_t>((rows.rows + 7) / 8, 1, processors * (rows.width <= 512 ? 2 : 1));
}

Bound<NormGradCall> grad_call(const NodeView& node, const NormRows& rows, int dy, const DeviceInfo& device) {
  Bound<NormGradCall> call;
  call->rows = rows;
  call->blocks = grad_blocks(rows, device);
  call.bind(call->x, input(node, 0)).bind(call->dy, input(node, dy)).bind(call->dx, output(node));
  return call.bind(call->partials, scratch());
}

size_t partial_bytes(const Bound<NormGradCall>& call, size_t sums) {
  return static_cast<size_t>(call->blocks) * sums * static_cast<size_t>(call->rows.width) * sizeof(float);
}

Prepared prepare_layernorm_grad(const NodeView& node, const DeviceInfo& device) {
  const auto& op = op_of<LayernormGradOp>(node);
  Bound<NormGradCall> call = grad_call(node, layernorm_rows(node.ins[0], node.ins[1], op.eps()), 2, device);
  call.bind(call->weight[0], input(node, 1));
  if (op.parameters()) call.bind(call->dweight[0], output(node, 1)).bind(call->dbias[0], output(node, 2));
  if (op.row_sums()) call.bind(call->column_sums, output(node, op.sums_at()));
  if (op.copy()) call.bind(call->copy, output(node, op.copy_at()));
  if (node.ins.size() > 3) call.bind(call->residual, input(node, 3));
  return prepared(&NormsApi::norm_grad, call, partial_bytes(call, op.copy_at() - 1));
}

Prepared prepare_qk_norm_grad(const NodeView& node, const DeviceInfo& device) {
  const NormRows rows = qk_rows(node.ins[0], op_of<QkNormGradOp>(node).eps());
  Bound<NormGradCall> call = grad_call(node, rows, 3, device);
  for (size_t part : {0u, 1u}) {
    call.bind(call->weight[part], input(node, static_cast<int>(1 + part)));
    if (node.outs.size() == 1) continue;
    call.bind(call->dweight[part], output(node, 1 + 2 * part));
    call.bind(call->dbias[part], output(node, 2 + 2 * part));
  }
  return prepared(&NormsApi::norm_grad, call, partial_bytes(call, node.outs.size() - 1));
}

Bound<RmsCall> rms_call(const NodeView& node, double eps) {
  const int64_t width = node.ins[1].elems();
  Bound<RmsCall> call;
  call->rows = node.ins[0].elems() / width;
  call->width = width;
  call->eps = static_cast<float>(eps);
  return call.bind(call->x, input(node, 0)).bind(call->weight, input(node, 1));
}

template <typename NormOp>
std::string declines_simple(const NodeView& node, const DeviceInfo& device) {
  if (op_of<NormOp>(node).simple()) return "the simple norm runs on CPUs alone";
  return declines_unless_plain(node, device);
}

Prepared prepare_rmsnorm(const NodeView& node, const DeviceInfo&) {
  Bound<RmsCall> call = rms_call(node, op_of<RmsnormOp>(node).eps());
  return prepared(&NormsApi::rms, call.bind(call->y, output(node)));
}

Prepared prepare_rmsnorm_grad(const NodeView& node, const DeviceInfo&) {
  const auto& op = op_of<RmsnormGradOp>(node);
  Bound<RmsCall> call = rms_call(node, op.eps());
  call.bind(call->dy, input(node, 2)).bind(call->dx, output(node)).bind(call->inverse, scratch());
  if (op.parameters()) call.bind(call->dweight, output(node, 1));
  return prepared(&NormsApi::rms_grad, call, static_cast<size_t>(call->rows) * sizeof(float));
}

Bound<SoftmaxCall> softmax_call(const TensorDesc& rows) {
  return Bound<SoftmaxCall>({.rows = row_count(rows), .width = row_length(rows)});
}

Prepared prepare_softmax(const NodeView& node, const DeviceInfo&) {
  Bound<SoftmaxCall> call = softmax_call(node.ins[0]);
  call.bind(call->x, input(node, 0)).bind(call->y, output(node));
  return prepared(&NormsApi::softmax, call);
}

Prepared prepare_softmax_grad(const NodeView& node, const DeviceInfo&) {
  Bound<SoftmaxCall> call = softmax_call(node.ins[0]);
  call.bind(call->y, input(node, 0)).bind(call->dy, input(node, 1)).bind(call->dx, output(node));
  return prepared(&NormsApi::softmax_grad, call);
}

}  // namespace

std::vector<OpKernels> norm_kernels() {
  return {
      row<LayernormOp>({cuda_kernel("norm", prepare_layernorm)}),
      row<LayernormGradOp>({cuda_kernel("norm_grad", prepare_layernorm_grad)}),
      row<QkNormOp>({cuda_kernel("norm", prepare_qk_norm)}),
      row<QkNormGradOp>({cuda_kernel("norm_grad", prepare_qk_norm_grad)}),
      row<RmsnormOp>({cuda_kernel("rms", prepare_rmsnorm, declines_simple<RmsnormOp>)}),
      row<RmsnormGradOp>({cuda_kernel("rms_grad", prepare_rmsnorm_grad, declines_simple<RmsnormGradOp>)}),
      row<SoftmaxOp>({cuda_kernel("rows", prepare_softmax)}),
      row<SoftmaxGradOp>({cuda_kernel("rows", prepare_softmax_grad)}),
  };
}

}  // namespace vitrail::cuda
