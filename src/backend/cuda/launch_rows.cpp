// Launches of elementwise ops, dropout and sums over rows on the GPU.
#include <algorithm>
#include <cmath>

#include "backend/cuda/launch.h"
#include "ops/activate.h"
#include "ops/bias.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/gelu_slope.h"
#include "ops/persistent.h"
#include "ops/scale.h"

namespace vitrail::cuda {

namespace {

MapCall map_call(const KernelArgs& args) {
  MapCall call{.a = operand(args.ins[0]), .y = operand(args.outs[0]), .count = args.outs[0].desc().elems()};
  if (args.ins.size() > 1) call.b = operand(args.ins[1]), call.period = args.ins[1].desc().elems();
  return call;
}

template <MapKind kKind>
void run_map(const KernelArgs& args) {
  api().rows.map(session(args), kKind, map_call(args));
}

void run_gelu(const KernelArgs& args) {
  const bool tanh_form = op_of<GeluOp>(args).tanh_form();
  api().rows.map(session(args), tanh_form ? MapKind::kGeluTanh : MapKind::kGeluErf, map_call(args));
}

template <typename ActOp, MapKind kKind>
void run_activate(const KernelArgs& args) {
  MapCall call = map_call(args);
  call.act = op_of<ActOp>(args).act();
  api().rows.map(session(args), kKind, call);
}

void run_multiply(const KernelArgs& args) {
  MapCall call = map_call(args);
  call.factor = static_cast<float>(op_of<MultiplyOp>(args).factor());
  api().rows.map(session(args), MapKind::kMultiply, call);
}

std::string declines_scale_by(const NodeView& node, const DeviceInfo& device) {
  if (!is_float(node.ins[1].dtype)) return "takes a factor in a float type only";
  return declines_unless_plain({node.op, node.ins.first(1), node.outs}, device);
}

// Adds a dim to the index computation; a dim that is not sharded is merged with the one before it.
void add_term(DropoutCall& call, const DropoutCall::Term& term) {
  DropoutCall::Term* inner = call.term_count > 0 ? &call.terms[call.term_count - 1] : nullptr;
  if (inner && inner->local * inner->stride == term.stride)
    inner->local *= term.local;
  else
    call.terms[call.term_count++] = term;
}

void place_elements(DropoutCall& call, const Shape& shape) {
  int64_t inner = 1, stride = 1;
  for (size_t d = shape.rank(); d-- > 0;) {
    add_term(call, {inner, shape[d].local, stride});
    call.base += static_cast<uint64_t>(shape[d].offset * stride);
    call.step = static_cast<uint64_t>(stride);
    inner *= shape[d].local, stride *= shape[d].extent;
  }
  std::reverse(call.terms, call.terms + call.term_count);
}

void place_samples(DropoutCall& call, const Shape& shape) {
  add_term(call, {shape.elems() / shape[0].local, shape[0].local, 1});
  call.base = static_cast<uint64_t>(shape[0].offset);
  call.step = 1;
}

std::string declines_dropout(const NodeView& node, const DeviceInfo& device) {
  if (node.ins[0].shape.rank() > DropoutCall::kMaxTerms) return "takes values of at most 8 dims";
  return declines_unless_plain(node, device);
}

void run_dropout(const KernelArgs& args) {
  const auto& op = op_of<DropoutOp>(args);
  const Shape& shape = args.ins[0].shape();
  // u / 2^53 >= p for an integer u is the same as u >= ceil(p 2^53), and both products are exact.
  DropoutCall call{.x = operand(args.ins[0]),
                   .y = operand(args.outs[0]),
                   .counters = static_cast<const int64_t*>(args.ins[1].data()),
                   .count = shape.elems(),
                   .key = op.key(),
                   .threshold = static_cast<uint64_t>(std::ceil(op.probability() * 0x1p53)),
                   .scale = static_cast<float>(1.0 / (1.0 - op.probability()))};
  if (op.unit() == DropUnit::kSample)
    place_samples(call, shape);
  else
    place_elements(call, shape);
  api().rows.dropout(session(args), call);
}

// What a node sums over rows, from which inputs, and the input that it is added to; -1: it is written to the
// output.
struct RowSum {
  std::vector<int> ins;
  int target = -1;
  bool known = true;
};

RowSum parse_sum(const Op& op) {
  const auto* fused = dynamic_cast<const FusedOp*>(&op);
  if (!fused) return {.ins = is<SumRowsOp>(op) ? std::vector{0} : std::vector{0, 1}};
  if (!fuses<SumRowsOp, AccumulateOp>(op) && !fuses<ScaleDwOp, AccumulateOp>(op))
    return {.ins = {}, .known = false};
  const auto& members = fused->members();
  if (members[1].sources[1] != ~0 || members[1].sources[0] < 0) return {.ins = {}, .known = false};
  return {members[0].sources, members[1].sources[0]};
}

// Divides the rows into parts: enough blocks to keep the GPU busy, each with enough rows to be worth its
// partial sums.
ColumnSums column_sums(int64_t elems, int64_t width, const DeviceInfo& device) {
  const int64_t processors = processors_of(device);
  const int64_t across = width % 8 == 0 ? (width + 255) / 256 : (width + 31) / 32, rows = elems / width;
  const int64_t most = std::max<int64_t>(1, 6 * processors / across);
  return {.rows = rows, .width = width, .parts = std::clamp<int64_t>((rows + 63) / 64, 1, most)};
}

size_t gelu_grad_scratch(const NodeView& node, const DeviceInfo& device) {
  if (node.outs.size() < 2) return 0;
  const ColumnSums sums = column_sums(node.outs[0].elems(), node.outs[1].elems(), device);
  return static_cast<size_t>(sums.parts * sums.width) * sizeof(float);
}

void run_gelu_slope(const KernelArgs& args) {
  const bool tanh_form = op_of<GeluSlopeOp>(args).tanh_form();
  MapCall call = map_call(args);
  api().rows.map(session(args), tanh_form ? MapKind::kGeluTanh : MapKind::kGeluErf, call);
  call.y = operand(args.outs[1]);
  api().rows.map(session(args), tanh_form ? MapKind::kGeluTanhSlope : MapKind::kGeluErfSlope, call);
}

MapKind gelu_grad_kind(const Op& op) {
  if (is<GeluSlopeGradOp>(op)) return MapKind::kProduct;
  return dynamic_cast<const GeluGradOp&>(op).tanh_form() ? MapKind::kGeluTanhGrad : MapKind::kGeluErfGrad;
}

void run_gelu_grad(const KernelArgs& args) {
  MapCall call = map_call(args);
  if (args.outs.size() > 1) {
    call.sums = column_sums(call.count, args.outs[1].desc().elems(), args.context.device);
    call.sums.target = operand(args.outs[1]);
    call.sums.partials = reinterpret_cast<float*>(args.scratch.data());
  }
  api().rows.map(session(args), gelu_grad_kind(args.op), call);
}

std::string declines_sum(const NodeView& node, const DeviceInfo& device) {
  if (!parse_sum(node.op).known) return "not a sum over rows added to a parameter's gradient";
  return declines_unless_plain(node, device);
}

size_t sum_scratch(const NodeView& node, const DeviceInfo& device) {
  const RowSum sum = parse_sum(node.op);
  const TensorDesc& target = sum.target < 0 ? node.outs[0] : node.ins[sum.target];
  const ColumnSums sums = column_sums(node.ins[sum.ins[0]].elems(), target.elems(), device);
  return static_cast<size_t>(sums.parts * sums.width) * sizeof(float);
}

void run_sum(const KernelArgs& args) {
  const RowSum sum = parse_sum(args.op);
  const TensorView& target = sum.target < 0 ? args.outs[0] : args.ins[sum.target];
  const TensorView& x = args.ins[sum.ins[0]];
  SumCall call{.x = operand(x),
               .sums = column_sums(x.desc().elems(), target.desc().elems(), args.context.device)};
  if (sum.ins.size() > 1) call.y = operand(args.ins[sum.ins[1]]);
  call.sums.target = operand(target);
  call.sums.add = sum.target >= 0;
  call.sums.partials = reinterpret_cast<float*>(args.scratch.data());
  api().rows.sum(session(args), call);
}

template <MapKind kKind>
OpKernels map_row(std::string_view op) {
  return {op, {cuda_kernel("map", run_map<kKind>)}};
}

}  // namespace

std::vector<OpKernels> row_kernels() {
  return {
      {"gelu", {cuda_kernel("map", run_gelu)}},
      {"gelu_grad", {cuda_kernel("map", run_gelu_grad, declines_unless_plain, gelu_grad_scratch)}},
      {"gelu_slope", {cuda_kernel("map twice", run_gelu_slope)}},
      {"gelu_slope_grad", {cuda_kernel("map", run_gelu_grad, declines_unless_plain, gelu_grad_scratch)}},
      {"activate", {cuda_kernel("map", run_activate<ActivateOp, MapKind::kActivate>)}},
      {"activate_grad", {cuda_kernel("map", run_activate<ActivateGradOp, MapKind::kActivateGrad>)}},
      map_row<MapKind::kTanh>("tanh"),
      map_row<MapKind::kTanhGrad>("tanh_grad"),
      map_row<MapKind::kAdd>("bias"),
      map_row<MapKind::kProduct>("scale"),
      map_row<MapKind::kAdd>("add"),
      map_row<MapKind::kAverage>("average"),
      map_row<MapKind::kCopy>("cast"),
      {"multiply", {cuda_kernel("map", run_multiply)}},
      {"scale_by", {cuda_kernel("map", run_map<MapKind::kScaleBy>, declines_scale_by)}},
      {"dropout", {cuda_kernel("dropout", run_dropout, declines_dropout)}},
      {"sum_rows", {cuda_kernel("sum_columns", run_sum, declines_sum, sum_scratch)}},
      {"scale_dw", {cuda_kernel("sum_columns", run_sum, declines_sum, sum_scratch)}},
      {"fused", {cuda_kernel("sum_columns", run_sum, declines_sum, sum_scratch)}},
  };
}

}  // namespace vitrail::cuda
