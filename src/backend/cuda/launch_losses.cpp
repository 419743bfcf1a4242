// Launches of the losses and their gradients.
#include "backend/cuda/launch.h"
#include "ops/cross_entropy.h"

namespace vitrail::cuda {

namespace {

Bound<LossCall> loss_call(const NodeView& node, LossKind kind, const TensorDesc& losses) {
  Bound<LossCall> call;
  call.bind(call->logits, input(node, 0)).bind(call->targets, input(node, 1));
  call->images = losses.elems();
  call->classes = node.ins[0].shape.local('K');
  call->softmax = kind == LossKind::kSoftmax || kind == LossKind::kDivergence;
  call->less_entropy = kind == LossKind::kDivergence;
  if (kind == LossKind::kSigmoidMean) call->share = 1.0f / static_cast<float>(call->classes);
  return call;
}

Prepared prepare_cross_entropy(const NodeView& node, const DeviceInfo&) {
  Bound<LossCall> call = loss_call(node, op_of<CrossEntropyOp>(node).loss(), node.outs[0]);
  call.bind(call->losses, output(node));
  return prepared(&LossesApi::forward, call);
}

Prepared prepare_cross_entropy_grad(const NodeView& node, const DeviceInfo&) {
  Bound<LossCall> call = loss_call(node, op_of<CrossEntropyGradOp>(node).loss(), node.ins[2]);
  call.bind(call->losses, input(node, 2)).bind(call->dlogits, output(node));
  return prepared(&LossesApi::backward, call);
}

Prepared prepare_loss_sum(const NodeView& node, const DeviceInfo&) {
  Bound<LossSumCall> call;
  call->images = node.ins[0].elems();
  call.bind(call->sums, input(node, 0));
  call.bind(call->losses, input(node, 1)).bind(call->weights, input(node, 2));
  return prepared(&LossesApi::sum, call);
}

std::string declines_loss_sum(const NodeView& node, const DeviceInfo& device) {
  return declines_unless_plain({node.op, node.ins.subspan(1), node.outs}, device);
}

}  // namespace

std::vector<OpKernels> loss_kernels() {
  return {row<CrossEntropyOp>({cuda_kernel("picture", prepare_cross_entropy)}),
          row<CrossEntropyGradOp>({cuda_kernel("picture", prepare_cross_entropy_grad)}),
          row<LossSumOp>({cuda_kernel("elements", prepare_loss_sum, declines_loss_sum)})};
}

}  // namespace vitrail::cuda
