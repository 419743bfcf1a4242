// Launches of copies into persistent values, gradient sums and moving averages.
#include "backend/cuda/launch_parts.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/persistent.h"
#include "ops/update/ema.h"

namespace vitrail::cuda {

namespace {

PairCall pair(const TensorView& to, const TensorView& from) {
  PairCall call;
  call.segments.add({.to = operand(to), .from = operand(from), .elems = to.desc().elems()});
  return call;
}

PairCall copy_call(const Part& part) {
  return pair(part.ins[0], part.ins[1]);
}

void run_copy_into(const KernelArgs& args) {
  launch_parts(args, api().updates.copy, copy_call);
}

void run_load_param(const KernelArgs& args) {
  api().updates.copy(session(args), pair(args.outs[0], args.ins[0]));
}

void run_plain_accumulate(const KernelArgs& args) {
  launch_parts(args, api().updates.accumulate, copy_call);
}

std::string declines_cast_sum(const NodeView& node, const DeviceInfo& device) {
  const auto* fused = dynamic_cast<const FusedOp*>(&node.op);
  if (!fuses<CastOp, AccumulateOp>(node.op)) return "not a cast added to a sum";
  if (fused->member_outputs(node.ins)[0].dtype != DType::kF32) return "adds in f32 only";
  return declines_unless_plain(node, device);
}

void run_cast_sum(const KernelArgs& args) {
  const auto& members = op_of<FusedOp>(args).members();
  api().updates.accumulate(session(args),
                           pair(args.ins[members[1].sources[0]], args.ins[members[0].sources[0]]));
}

std::string declines_ema(const NodeView& node, const DeviceInfo&) {
  for (const NodeView& part : nodes_of(node))
    if (std::string reason = declines_doubles(part, 2); !reason.empty()) return reason;
  return {};
}

PairCall ema_call(const Part& part) {
  PairCall call = pair(part.ins[0], part.ins[1]);
  call.rule = {.step = numbers<StepNumbers>(part.ins[3]),
               .hyper = numbers<HyperNumbers>(part.ins[2]),
               .warmup = dynamic_cast<const EmaUpdateOp&>(part.op).warmup()};
  return call;
}

void run_ema_update(const KernelArgs& args) {
  launch_parts(args, api().updates.average, ema_call);
}

}  // namespace

std::vector<OpKernels> sum_kernels() {
  std::vector<OpKernels> list = {{"load_param", {cuda_kernel("chunks", run_load_param)}},
                                 {"fused", {cuda_kernel("cast_sum", run_cast_sum, declines_cast_sum)}}};
  add_grouped(list, {{"accumulate", cuda_kernel("chunks", run_plain_accumulate)},
                     {"copy_into", cuda_kernel("chunks", run_copy_into, declines_any_double)},
                     {"ema_update", cuda_kernel("chunks", run_ema_update, declines_ema)}});
  return list;
}

}  // namespace vitrail::cuda
