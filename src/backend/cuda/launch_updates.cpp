// Launches of what makes an update: the step's numbers and the optimizers' own. The step's numbers stay in
// device memory and are not read here.
#include <cstddef>

#include "backend/cuda/launch_parts.h"
#include "ops/update/adam.h"
#include "ops/update/control.h"
#include "ops/update/copied.h"
#include "ops/update/lamb_parts.h"
#include "ops/update/lion.h"
#include "ops/update/sgd.h"

namespace vitrail::cuda {

namespace {

static_assert(kChunk == kSquareSumChunk);
static_assert(sizeof(StepNumbers) == kControlCount * sizeof(double));
static_assert(sizeof(HyperNumbers) == kHyperCount * sizeof(double));
static_assert(offsetof(HyperNumbers, lr) == kHyperLr * sizeof(double));
static_assert(offsetof(HyperNumbers, decay) == kHyperDecay * sizeof(double));
static_assert(offsetof(HyperNumbers, ema) == kHyperEma * sizeof(double));
static_assert(sizeof(CounterNumbers) == kUpdateCounters * sizeof(double));
static_assert(offsetof(CounterNumbers, good) == kGoodUpdates * sizeof(double));
static_assert(offsetof(CounterNumbers, applied) == kAppliedUpdates * sizeof(double));
static_assert(offsetof(CounterNumbers, skipped) == kSkippedUpdates * sizeof(double));
static_assert(offsetof(CounterNumbers, skipped_in_a_row) == kSkippedInARow * sizeof(double));

// ---- the step's numbers ----

// The sums of the squares of so many inputs that one call takes, each call's after those of the one before.
Prepared prepare_square_sum(const NodeView& node, const DeviceInfo&) {
  Calls calls;
  int64_t chunks = 0;
  const auto begin = [&] {
    Bound<SquareSumCall> call;
    return call.bind(call->partial, scratch(static_cast<size_t>(chunks) * sizeof(double)));
  };
  Bound<SquareSumCall> call = begin();
  for (size_t i = 0; i < node.ins.size(); ++i) {
    if (call->segments.count == call->segments.kMost) {
      calls.add(&UpdatesApi::square_sum, call);
      call = begin();
    }
    call->segments.add({.x = {}, .elems = node.ins[i].elems()});
    call.bind(call->segments.items[call->segments.count - 1].x, input(node, static_cast<int>(i)));
    chunks += chunks_of(node.ins[i].elems());
  }
  calls.add(&UpdatesApi::square_sum, call);
  Bound<TotalCall> total({.count = chunks});
  calls.add(&UpdatesApi::total, total.bind(total->partial, scratch()).bind(total->total, output(node)));
  return std::move(calls).prepared(static_cast<size_t>(chunks) * sizeof(double));
}

std::string accepts(const NodeView&, const DeviceInfo&) {
  return {};
}

Prepared prepare_step_control(const NodeView& node, const DeviceInfo&) {
  const auto& op = op_of<StepControlOp>(node);
  const LossScaleRule& scale = op.loss_scale();
  Bound<StepControlCall> call({.max_norm = op.max_norm(),
                               .dynamic = scale.dynamic,
                               .min_scale = scale.min,
                               .max_scale = scale.max,
                               .window = static_cast<double>(scale.window),
                               .hysteresis = static_cast<double>(scale.hysteresis),
                               .consecutive = scale.consecutive});
  call.bind(call->square_sum, input(node, 0)).bind(call->hyper, input(node, 1));
  call.bind(call->loss_scale, input(node, 2)).bind(call->counters, input(node, 3));
  if (op.counts_overflows()) call.bind(call->passed, input(node, 4));
  call.bind(call->step, output(node));
  return prepared(&UpdatesApi::step_control, call);
}

// ---- optimizers: param, gradient sum, states, control ----

// The update of a part, without the copy that it may write too.
Part without_copy(const Part& part) {
  const auto* copied = dynamic_cast<const CopiedUpdateOp*>(&part.op);
  return copied ? Part{*copied->update(), part.ins.first(part.ins.size() - 1), part.first} : part;
}

std::string declines_update(const NodeView& node, const DeviceInfo&) {
  for (const Part& part : parts_of(node)) {
    const DescSpan plain = without_copy(part).ins, copy = part.ins.subspan(plain.size());
    if (std::string reason = declines_doubles(plain.first(plain.size() - 1)); !reason.empty()) return reason;
    if (std::string reason = declines_doubles(copy); !reason.empty()) return reason;
  }
  return {};
}

// An update's rates are multiples of the step's lr and decay, so they are computed with both set to 1.
void set_scale(UpdateSegment& segment, const UpdateScale& scale) {
  const StepValues unit{.lr = 1, .decay = 1};
  segment.lr = scale.lr(unit);
  segment.coupled = scale.coupled(unit);
  segment.shrink = scale.shrink(unit);
}

using UpdateShare = Bound<Share<UpdateCall>>;

UpdateShare update_share(const Part& part, const UpdateScale& scale, const UpdateRule& rule) {
  const size_t states = part.ins.size() - 3;
  UpdateShare share({.rule = rule});
  share.bind(share->rule.step, part.input(part.ins.size() - 1));
  UpdateSegment& segment = share->segment;
  segment.elems = part.ins[0].elems();
  set_scale(segment, scale);
  share.bind(segment.param, part.input(0)).bind(segment.sum, part.input(1));
  if (states > 0) share.bind(segment.m, part.input(2));
  if (states > 1) share.bind(segment.v, part.input(3));
  return share;
}

UpdateRule rule_of(const Moments& moments) {
  return {.beta1 = moments.beta1, .beta2 = moments.beta2, .eps = moments.eps, .corrected = moments.corrected};
}
UpdateRule rule_of(const LambUpdateOp& op) {
  UpdateRule rule = rule_of(op.moments());
  rule.trust_min = op.trust().min;
  rule.trust_max = op.trust().max;
  return rule;
}

UpdateShare sgd_share(const Part& part) {
  const auto& op = dynamic_cast<const SgdUpdateOp&>(part.op);
  return update_share(part, op.scale(), {.beta1 = op.momentum(), .nesterov = op.nesterov()});
}
UpdateShare adam_share(const Part& part) {
  const auto& op = dynamic_cast<const AdamUpdateOp&>(part.op);
  return update_share(part, op.scale(), rule_of(op.moments()));
}
UpdateShare lion_share(const Part& part) {
  const auto& op = dynamic_cast<const LionUpdateOp&>(part.op);
  return update_share(part, op.scale(), {.beta1 = op.beta1(), .beta2 = op.beta2()});
}
UpdateShare lamb_share(const Part& part) {
  const auto& op = dynamic_cast<const LambUpdateOp&>(part.op);
  UpdateShare share = update_share(part, op.scale(), rule_of(op));
  share->segment.adapts = op.adapts();
  return share;
}

// An update that may write a copy too.
template <UpdateShare (*share_of)(const Part&)>
UpdateShare with_copy(const Part& part) {
  const Part plain = without_copy(part);
  UpdateShare share = share_of(plain);
  if (plain.ins.size() < part.ins.size()) share.bind(share->segment.copy, part.input(plain.ins.size()));
  return share;
}

template <UpdateFunction<UpdateCall> function, UpdateShare (*share_of)(const Part&)>
Prepared prepare_update(const NodeView& node, const DeviceInfo&) {
  return prepared_shares(function, shares_of(node, with_copy<share_of>));
}

// Every chunk has two partial sums.
size_t lamb_scratch(const NodeView& node) {
  int64_t chunks = 0;
  for (const Part& part : parts_of(node)) chunks += chunks_of(part.ins[0].elems());
  return static_cast<size_t>(chunks) * 2 * sizeof(double);
}

Prepared prepare_lamb_update(const NodeView& node, const DeviceInfo&) {
  Bound<UpdateCall> start;
  start.bind(start->squares, scratch());
  return prepared_shares(&UpdatesApi::lamb, shares_of(node, lamb_share), start, lamb_scratch(node));
}

// One of the two parts of an update, without what the other one changes alone.
UpdateShare lamb_part_share(const NodeView& node, const LambUpdateOp& op) {
  UpdateShare share({.rule = rule_of(op)});
  share->segment.elems = node.ins[0].elems();
  share->segment.adapts = op.adapts();
  set_scale(share->segment, op.scale());
  return share.bind(share->rule.step, input(node, 4)).bind(share->segment.param, input(node, 0));
}

Prepared prepare_lamb_moments(const NodeView& node, const DeviceInfo&) {
  UpdateShare share = lamb_part_share(node, op_of<LambMomentsOp>(node).whole());
  share.bind(share->segment.sum, input(node, 1));
  share.bind(share->segment.m, input(node, 2)).bind(share->segment.v, input(node, 3));
  Bound<UpdateCall> start;
  start.bind(start->totals, output(node)).bind(start->squares, scratch());
  return prepared_shares(&UpdatesApi::lamb_moments, {share}, start, lamb_scratch(node));
}

Prepared prepare_lamb_move(const NodeView& node, const DeviceInfo&) {
  UpdateShare share = lamb_part_share(node, op_of<LambMoveOp>(node).whole());
  share.bind(share->segment.m, input(node, 1)).bind(share->segment.v, input(node, 2));
  Bound<UpdateCall> start;
  start.bind(start->totals, input(node, 3));
  return prepared_shares(&UpdatesApi::lamb_move, {share}, start);
}

std::string declines_lamb_move(const NodeView& node, const DeviceInfo&) {
  return declines_doubles(node.ins.first(3));
}

// Adds an optimizer's update, alone and with the copy of its parameter that it writes.
template <typename Update>
void add_update(std::vector<OpKernels>& list, PrepareNode prepare) {
  const Kernel kernel = cuda_kernel("chunks", prepare, declines_update);
  add_grouped(list, row<Update>({kernel}));
  add_grouped(list, {CopiedUpdateOp::kind_of(Update::kKind), {kernel}});
}

}  // namespace

std::vector<OpKernels> update_kernels() {
  std::vector<OpKernels> list = {
      row<SquareSumOp>({cuda_kernel("chunks", prepare_square_sum, declines_any_double)}),
      row<StepControlOp>({cuda_kernel("one_thread", prepare_step_control, accepts)}),
      row<LambMomentsOp>({cuda_kernel("chunks", prepare_lamb_moments, declines_update)}),
      row<LambMoveOp>({cuda_kernel("chunks", prepare_lamb_move, declines_lamb_move)})};
  add_update<SgdUpdateOp>(list, prepare_update<&UpdatesApi::sgd, sgd_share>);
  add_update<AdamUpdateOp>(list, prepare_update<&UpdatesApi::adam, adam_share>);
  add_update<LionUpdateOp>(list, prepare_update<&UpdatesApi::lion, lion_share>);
  add_grouped(list, row<LambUpdateOp>({cuda_kernel("chunks", prepare_lamb_update, declines_update)}));
  return list;
}

}  // namespace vitrail::cuda
