// Launches of the losses and their gradients.
#include "backend/cuda/launch.h"
#include "ops/cross_entropy.h"

namespace vitrail::cuda {

namespace {

LossCall loss_call(const KernelArgs& args, LossKind kind, const TensorView& losses) {
  LossCall call;
  call.logits = operand(args.ins[0]);
  call.targets = operand(args.ins[1]);
  call.losses = operand(losses);
  call.images = losses.desc().elems();
  call.classes = args.ins[0].shape().local('K');
  call.softmax = kind == LossKind::kSoftmax || kind == LossKind::kDivergence;
  call.less_entropy = kind == LossKind::kDivergence;
  if (kind == LossKind::kSigmoidMean) call.share = 1.0f / static_cast<float>(call.classes);
  return call;
}

void run_cross_entropy(const KernelArgs& args) {
  api().losses.forward(session(args), loss_call(args, op_of<CrossEntropyOp>(args).loss(), args.outs[0]));
}

void run_cross_entropy_grad(const KernelArgs& args) {
  LossCall call = loss_call(args, op_of<CrossEntropyGradOp>(args).loss(), args.ins[2]);
  call.dlogits = operand(args.outs[0]);
  api().losses.backward(session(args), call);
}

void run_loss_sum(const KernelArgs& args) {
  api().losses.sum(session(args), {.sums = args.ins[0].as<double>(),
                                   .losses = operand(args.ins[1]),
                                   .weights = operand(args.ins[2]),
                                   .images = args.ins[0].desc().elems()});
}

std::string declines_loss_sum(const NodeView& node, const DeviceInfo& device) {
  return declines_unless_plain({node.op, node.ins.subspan(1), node.outs}, device);
}

}  // namespace

std::vector<OpKernels> loss_kernels() {
  return {{"cross_entropy", {cuda_kernel("picture", run_cross_entropy)}},
          {"cross_entropy_grad", {cuda_kernel("picture", run_cross_entropy_grad)}},
          {"loss_sum", {cuda_kernel("elements", run_loss_sum, declines_loss_sum)}}};
}

}  // namespace vitrail::cuda
