// Launches of what writes persistent values: copies, gradient sums, the step's numbers and the optimizers'
// updates. The step's numbers stay in device memory and are not read here.
#include <cstddef>

#include "backend/cuda/launch.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/grouped.h"
#include "ops/persistent.h"
#include "ops/update/adam.h"
#include "ops/update/control.h"
#include "ops/update/ema.h"
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

template <typename T>
T* numbers(const TensorView& view) {
  return reinterpret_cast<T*>(view.as<double>());
}

// Accepts f32, bf16 and f16 among the first `count` inputs; the inputs after them are numbers of the step.
std::string declines_doubles(const NodeView& node, size_t count) {
  for (const TensorDesc& desc : node.ins.first(count)) {
    if (!desc.packing.empty()) return "changes row-major values only";
    if (!is_float(desc.dtype) || desc.dtype == DType::kF64) return "computes in f32, bf16 and f16";
  }
  return {};
}

std::string declines_any_double(const NodeView& node, const DeviceInfo&) {
  return declines_doubles(node, node.ins.size());
}

// One node, or each of the nodes that were grouped into one.
struct Part {
  const Op& op;
  std::span<const TensorView> ins;
};

std::vector<Part> parts_of(const KernelArgs& args) {
  const auto* many = dynamic_cast<const GroupedOp*>(&args.op);
  if (!many) return {{args.op, args.ins}};
  std::vector<Part> parts;
  for (const GroupedOp::Part& part : many->parts())
    parts.push_back({*part.op, args.ins.subspan(part.first, part.count)});
  return parts;
}

std::vector<NodeView> nodes_of(const NodeView& node) {
  const auto* many = dynamic_cast<const GroupedOp*>(&node.op);
  if (!many) return {node};
  std::vector<NodeView> nodes;
  for (const GroupedOp::Part& part : many->parts())
    nodes.push_back({*part.op, node.ins.subspan(part.first, part.count), {}});
  return nodes;
}

// Runs the parts in as few launches as hold them; call_of makes the call of one part.
template <typename Call>
void launch_parts(const KernelArgs& args, void (*launch)(Session&, const Call&), Call (*call_of)(const Part&),
                  const Call& start = {}) {
  Call call = start;
  for (const Part& part : parts_of(args)) {
    const Call one = call_of(part);
    if (call.segments.count == call.segments.kMost || (call.segments.count > 0 && call.rule != one.rule)) {
      launch(session(args), call);
      call = start;
    }
    call.rule = one.rule;
    call.segments.add(one.segments.items[0]);
  }
  launch(session(args), call);
}

// ---- copies and sums ----

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
  api().updates.step_control(session(args), {.square_sum = args.ins[0].as<double>(),
                                             .hyper = numbers<HyperNumbers>(args.ins[1]),
                                             .loss_scale = args.ins[2].as<double>(),
                                             .counters = numbers<CounterNumbers>(args.ins[3]),
                                             .step = numbers<StepNumbers>(args.outs[0]),
                                             .max_norm = op.max_norm(),
                                             .dynamic = scale.dynamic,
                                             .min_scale = scale.min,
                                             .max_scale = scale.max,
                                             .window = static_cast<double>(scale.window)});
}

// ---- optimizers: param, gradient sum, states, control ----

std::string declines_update(const NodeView& node, const DeviceInfo&) {
  for (const NodeView& part : nodes_of(node))
    if (std::string reason = declines_doubles(part, part.ins.size() - 1); !reason.empty()) return reason;
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
  return {.beta1 = moments.beta1, .beta2 = moments.beta2, .eps = moments.eps};
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
UpdateCall lamb_call(const Part& part) {
  const auto& op = dynamic_cast<const LambUpdateOp&>(part.op);
  UpdateCall call = update_call(part, op.scale(), rule_of(op.moments()));
  call.segments.items[0].adapts = op.adapts();
  return call;
}

void run_sgd_update(const KernelArgs& args) {
  launch_parts(args, api().updates.sgd, sgd_call);
}
void run_adam_update(const KernelArgs& args) {
  launch_parts(args, api().updates.adam, adam_call);
}
void run_lion_update(const KernelArgs& args) {
  launch_parts(args, api().updates.lion, lion_call);
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
  call.rule = rule_of(op.moments());
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
      {"load_param", {cuda_kernel("chunks", run_load_param)}},
      {"square_sum", {cuda_kernel("chunks", run_square_sum, declines_any_double, square_sum_scratch)}},
      {"step_control", {cuda_kernel("one_thread", run_step_control, accepts)}},
      {"lamb_moments", {cuda_kernel("chunks", run_lamb_moments, declines_update, lamb_scratch)}},
      {"lamb_move", {cuda_kernel("chunks", run_lamb_move, declines_lamb_move)}},
      {"fused", {cuda_kernel("cast_sum", run_cast_sum, declines_cast_sum)}}};
  // Each of these kernels takes one node, or all nodes of a kind grouped into one.
  static const std::pair<std::string, Kernel> kGrouped[] = {
      {"accumulate", cuda_kernel("chunks", run_plain_accumulate)},
      {"copy_into", cuda_kernel("chunks", run_copy_into, declines_any_double)},
      {"ema_update", cuda_kernel("chunks", run_ema_update, declines_ema)},
      {"sgd_update", cuda_kernel("chunks", run_sgd_update, declines_update)},
      {"adam_update", cuda_kernel("chunks", run_adam_update, declines_update)},
      {"lion_update", cuda_kernel("chunks", run_lion_update, declines_update)},
      {"lamb_update", cuda_kernel("chunks", run_lamb_update, declines_update, lamb_scratch)}};
  static const std::vector<std::string> kMany = [] {
    std::vector<std::string> names;
    for (const auto& [op, kernel] : kGrouped) names.push_back(GroupedOp::kind_of(op));
    return names;
  }();
  for (size_t i = 0; i < kMany.size(); ++i) {
    list.push_back({kGrouped[i].first, {kGrouped[i].second}});
    list.push_back({kMany[i], {kGrouped[i].second}});
  }
  return list;
}

}  // namespace vitrail::cuda
