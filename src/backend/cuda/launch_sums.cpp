// Launches of copies into persistent values, gradient sums and moving averages.
#include "backend/cuda/launch_parts.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/persistent.h"
#include "ops/update/ema.h"

namespace vitrail::cuda {

namespace {

Bound<Share<PairCall>> pair(const Place& to, const Place& from, int64_t elems) {
  Bound<Share<PairCall>> share;
  share->segment.elems = elems;
  return share.bind(share->segment.to, to).bind(share->segment.from, from);
}

Bound<Share<PairCall>> copy_share(const Part& part) {
  return pair(part.input(0), part.input(1), part.ins[0].elems());
}

Prepared prepare_copy_into(const NodeView& node, const DeviceInfo&) {
  return prepared_shares(&UpdatesApi::copy, shares_of(node, copy_share));
}

Prepared prepare_plain_accumulate(const NodeView& node, const DeviceInfo&) {
  return prepared_shares(&UpdatesApi::accumulate, shares_of(node, copy_share));
}

Prepared prepare_load_param(const NodeView& node, const DeviceInfo&) {
  return prepared_shares(&UpdatesApi::copy, {pair(output(node), input(node, 0), node.outs[0].elems())});
}

std::string declines_cast_sum(const NodeView& node, const DeviceInfo& device) {
  const auto* fused = dynamic_cast<const FusedOp*>(&node.op);
  if (!fuses<CastOp, AccumulateOp>(node.op)) return "not a cast added to a sum";
  if (fused->member_outputs(node.ins)[0].dtype != DType::kF32) return "adds in f32 only";
  return declines_unless_plain(node, device);
}

Prepared prepare_cast_sum(const NodeView& node, const DeviceInfo&) {
  const auto& members = op_of<FusedOp>(node).members();
  const int to = members[1].sources[0].input(), from = members[0].sources[0].input();
  const int64_t elems = node.ins[static_cast<size_t>(to)].elems();
  return prepared_shares(&UpdatesApi::accumulate, {pair(input(node, to), input(node, from), elems)});
}

std::string declines_ema(const NodeView& node, const DeviceInfo&) {
  for (const Part& part : parts_of(node))
    if (std::string reason = declines_doubles(part.ins.first(2)); !reason.empty()) return reason;
  return {};
}

Bound<Share<PairCall>> ema_share(const Part& part) {
  Bound<Share<PairCall>> share = copy_share(part);
  share->rule.warmup = dynamic_cast<const EmaUpdateOp&>(part.op).warmup();
  return share.bind(share->rule.step, part.input(3)).bind(share->rule.hyper, part.input(2));
}

Prepared prepare_ema_update(const NodeView& node, const DeviceInfo&) {
  return prepared_shares(&UpdatesApi::average, shares_of(node, ema_share));
}

}  // namespace

std::vector<OpKernels> sum_kernels() {
  std::vector<OpKernels> list = {row<LoadParamOp>({cuda_kernel("chunks", prepare_load_param)}),
                                 fused_row({cuda_kernel("cast_sum", prepare_cast_sum, declines_cast_sum)})};
  add_grouped(list, row<AccumulateOp>({cuda_kernel("chunks", prepare_plain_accumulate)}));
  add_grouped(list, row<CopyIntoOp>({cuda_kernel("chunks", prepare_copy_into, declines_any_double)}));
  add_grouped(list, row<EmaUpdateOp>({cuda_kernel("chunks", prepare_ema_update, declines_ema)}));
  return list;
}

}  // namespace vitrail::cuda
