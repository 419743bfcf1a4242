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

size_t square_sum_scratch(const NodeView& node, const DeviceInfo&) {
  int64_t chunks = 0;
  for (const TensorDesc& desc : node.ins) chunks += chunks_of(desc.elems());
  return static_cast<size_t>(chunks) * sizeof(double);
}

void run_square_sum(const KernelArgs& args) {
  auto* partial = reinterpret_cast<double*>(args.scratch.data());
  SquareSumCall call{.partial = partial, .segments = {}};
  for (const TensorView& in : args.ins) {
    if (call.segments.count == call.segments.kMost) {
      api().updates.square_sum(session(args), call);
      call = {.partial = call.partial + call.segments.chunks, .segments = {}};
    }
    call.segments.add({.x = operand(in), .elems = in.desc().elems()});
  }
  api().updates.square_sum(session(args), call);
  api().updates.total(session(args), {.partial = partial,
                                      .count = call.partial - partial + call.segments.chunks,
                                      .total = args.outs[0].as<double>()});
}

std::string accepts(const NodeView&, const DeviceInfo&) {
  return {};
}

void run_step_control(const KernelArgs& args) {
  const auto& op = op_of<StepControlOp>(args);
  const LossScaleRule& scale = op.loss_scale();
  api().updates.step_control(session(args),
                             {.square_sum = args.ins[0].as<double>(),
                              .hyper = numbers<HyperNumbers>(args.ins[1]),
                              .loss_scale = args.ins[2].as<double>(),
                              .counters = numbers<CounterNumbers>(args.ins[3]),
                              .step = numbers<StepNumbers>(args.outs[0]),
                              .max_norm = op.max_norm(),
                              .dynamic = scale.dynamic,
                              .min_scale = scale.min,
                              .max_scale = scale.max,
                              .window = static_cast<double>(scale.window),
                              .passed = op.counts_overflows() ? args.ins[4].as<double>() : nullptr,
                              .hysteresis = static_cast<double>(scale.hysteresis),
                              .consecutive = scale.consecutive});
}

// ---- optimizers: param, gradient sum, states, control ----

// The update of a part, without the copy that it may write too.
template <typename Update>
Update without_copy(const Update& part) {
  const auto* copied = dynamic_cast<const CopiedUpdateOp*>(&part.op);
  return copied ? Update{*copied->update(), part.ins.first(part.ins.size() - 1)} : part;
}

std::string declines_update(const NodeView& node, const DeviceInfo&) {
  for (const NodeView& part : nodes_of(node)) {
    const NodeView plain = without_copy(part);
    const NodeView copy{part.op, part.ins.subspan(plain.ins.size()), {}};
    if (std::string reason = declines_doubles(plain, plain.ins.size() - 1); !reason.empty()) return reason;
    if (std::string reason = declines_doubles(copy, copy.ins.size()); !reason.empty()) return reason;
  }
  return {};
}

// An update's rates are multiples of the step's lr and decay, so they are computed with both set to 1.
void set_scale(UpdateSegment& segment, const UpdateScale& scale) {
  const StepValues unit{.lr = 1, .decay = 1};
  segment.lr = scale.lr(unit), segment.coupled = scale.coupled(unit), segment.shrink = scale.shrink(unit);
}

UpdateCall update_call(const Part& part, const UpdateScale& scale, UpdateRule rule) {
  const size_t states = part.ins.size() - 3;
  rule.step = numbers<StepNumbers>(part.ins.back());
  UpdateSegment segment{.param = operand(part.ins[0]),
                        .sum = operand(part.ins[1]),
                        .m = states > 0 ? operand(part.ins[2]) : Operand{},
                        .v = states > 1 ? operand(part.ins[3]) : Operand{},
                        .elems = part.ins[0].desc().elems()};
  set_scale(segment, scale);
  UpdateCall call{.rule = rule, .segments = {}};
  call.segments.add(segment);
  return call;
}

UpdateRule rule_of(const Moments& moments) {
  return {.beta1 = moments.beta1, .beta2 = moments.beta2, .eps = moments.eps, .corrected = moments.corrected};
}
UpdateRule rule_of(const LambUpdateOp& op) {
  UpdateRule rule = rule_of(op.moments());
  rule.trust_min = op.trust().min, rule.trust_max = op.trust().max;
  return rule;
}

UpdateCall sgd_call(const Part& part) {
  const auto& op = dynamic_cast<const SgdUpdateOp&>(part.op);
  return update_call(part, op.scale(), {.beta1 = op.momentum(), .nesterov = op.nesterov()});
}
UpdateCall adam_call(const Part& part) {
  const auto& op = dynamic_cast<const AdamUpdateOp&>(part.op);
  return update_call(part, op.scale(), rule_of(op.moments()));
}
UpdateCall lion_call(const Part& part) {
  const auto& op = dynamic_cast<const LionUpdateOp&>(part.op);
  return update_call(part, op.scale(), {.beta1 = op.beta1(), .beta2 = op.beta2()});
}
// The call of an update that may write a copy too.
template <UpdateCall (*call_of)(const Part&)>
UpdateCall with_copy(const Part& part) {
  const Part plain = without_copy(part);
  UpdateCall call = call_of(plain);
  if (plain.ins.size() < part.ins.size()) call.segments.items[0].copy = operand(part.ins.back());
  return call;
}
UpdateCall lamb_call(const Part& part) {
  const auto& op = dynamic_cast<const LambUpdateOp&>(part.op);
  UpdateCall call = update_call(part, op.scale(), rule_of(op));
  call.segments.items[0].adapts = op.adapts();
  return call;
}

void run_sgd_update(const KernelArgs& args) {
  launch_parts(args, api().updates.sgd, with_copy<sgd_call>);
}
void run_adam_update(const KernelArgs& args) {
  launch_parts(args, api().updates.adam, with_copy<adam_call>);
}
void run_lion_update(const KernelArgs& args) {
  launch_parts(args, api().updates.lion, with_copy<lion_call>);
}

size_t lamb_scratch(const NodeView& node, const DeviceInfo&) {
  int64_t chunks = 0;
  for (const NodeView& part : nodes_of(node)) chunks += chunks_of(part.ins[0].elems());
  return static_cast<size_t>(chunks) * 2 * sizeof(double);
}

void run_lamb_update(const KernelArgs& args) {
  UpdateCall start;
  start.squares = reinterpret_cast<double*>(args.scratch.data());
  launch_parts(args, api().updates.lamb, lamb_call, start);
}

UpdateCall lamb_part_call(const LambUpdateOp& op, const UpdateSegment& segment, const TensorView& control,
                          double* totals) {
  UpdateCall call;
  call.rule = rule_of(op);
  call.rule.step = numbers<StepNumbers>(control);
  call.totals = totals;
  UpdateSegment scaled = segment;
  scaled.adapts = op.adapts();
  set_scale(scaled, op.scale());
  call.segments.add(scaled);
  return call;
}

void run_lamb_moments(const KernelArgs& args) {
  const auto& op = op_of<LambMomentsOp>(args).whole();
  UpdateCall call = lamb_part_call(op,
                                   {.param = operand(args.ins[0]),
                                    .sum = operand(args.ins[1]),
                                    .m = operand(args.ins[2]),
                                    .v = operand(args.ins[3]),
                                    .elems = args.ins[0].desc().elems()},
                                   args.ins[4], args.outs[0].as<double>());
  call.squares = reinterpret_cast<double*>(args.scratch.data());
  api().updates.lamb_moments(session(args), call);
}

void run_lamb_move(const KernelArgs& args) {
  const auto& op = op_of<LambMoveOp>(args).whole();
  api().updates.lamb_move(session(args), lamb_part_call(op,
                                                        {.param = operand(args.ins[0]),
                                                         .m = operand(args.ins[1]),
                                                         .v = operand(args.ins[2]),
                                                         .elems = args.ins[0].desc().elems()},
                                                        args.ins[4], args.ins[3].as<double>()));
}

std::string declines_lamb_move(const NodeView& node, const DeviceInfo&) {
  return declines_doubles(node, 3);
}

}  // namespace

std::vector<OpKernels> update_kernels() {
  std::vector<OpKernels> list = {
      {"square_sum", {cuda_kernel("chunks", run_square_sum, declines_any_double, square_sum_scratch)}},
      {"step_control", {cuda_kernel("one_thread", run_step_control, accepts)}},
      {"lamb_moments", {cuda_kernel("chunks", run_lamb_moments, declines_update, lamb_scratch)}},
      {"lamb_move", {cuda_kernel("chunks", run_lamb_move, declines_lamb_move)}}};
  const Kernel sgd = cuda_kernel("chunks", run_sgd_update, declines_update);
  const Kernel adam = cuda_kernel("chunks", run_adam_update, declines_update);
  const Kernel lion = cuda_kernel("chunks", run_lion_update, declines_update);
  add_grouped(list, {{"sgd_update", sgd},
                     {"sgd_update+copy_into", sgd},
                     {"adam_update", adam},
                     {"adam_update+copy_into", adam},
                     {"lion_update", lion},
                     {"lion_update+copy_into", lion},
                     {"lamb_update", cuda_kernel("chunks", run_lamb_update, declines_update, lamb_scratch)}});
  return list;
}

}  // namespace vitrail::cuda
