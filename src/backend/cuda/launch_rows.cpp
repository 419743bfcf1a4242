// Launches of elementwise ops, dropout and sums over rows on the GPU.
#include <algorithm>

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

Bound<MapCall> map_call(const NodeView& node) {
  Bound<MapCall> call;
  call->count = node.outs[0].elems();
  call.bind(call->a, input(node, 0)).bind(call->y, output(node));
  if (node.ins.size() > 1) {
    call.bind(call->b, input(node, 1));
    call->period = node.ins[1].elems();
  }
  return call;
}

auto map_of(MapKind kind) {
  return [kind](Session& session, const MapCall& call) { api().rows.map(session, kind, call); };
}

Prepared prepared_map(MapKind kind, const Bound<MapCall>& call, size_t scratch_bytes = 0) {
  return prepared(map_of(kind), call, scratch_bytes);
}

template <MapKind kKind>
Prepared prepare_map(const NodeView& node, const DeviceInfo&) {
  return prepared_map(kKind, map_call(node));
}

Prepared prepare_gelu(const NodeView& node, const DeviceInfo&) {
  const bool tanh_form = op_of<GeluOp>(node).tanh_form();
  return prepared_map(tanh_form ? MapKind::kGeluTanh : MapKind::kGeluErf, map_call(node));
}

template <typename ActOp, MapKind kKind>
Prepared prepare_activate(const NodeView& node, const DeviceInfo&) {
  Bound<MapCall> call = map_call(node);
  call->act = op_of<ActOp>(node).act();
  return prepared_map(kKind, call);
}

// Declines the activations that no GPU has been seen to compute.
template <typename ActOp>
std::string declines_rare(const NodeView& node, const DeviceInfo& device) {
  const ActKind act = op_of<ActOp>(node).act();
  if (act > ActKind::kSigmoid) return std::string(enum_name(act)) + " runs on CPUs alone";
  return declines_unless_plain(node, device);
}

Prepared prepare_multiply(const NodeView& node, const DeviceInfo&) {
  Bound<MapCall> call = map_call(node);
  call->factor = static_cast<float>(op_of<MultiplyOp>(node).factor());
  return prepared_map(MapKind::kMultiply, call);
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
    inner *= shape[d].local;
    stride *= shape[d].extent;
  }
  std::reverse(call.terms, call.terms + call.term_count);
}

void place_samples(DropoutCall& call, const Shape& shape) {
  const int64_t samples = shape[0].local;
  add_term(call, {samples == 0 ? 0 : shape.elems() / samples, samples, 1});
  call.base = static_cast<uint64_t>(shape[0].offset);
  call.step = 1;
}

std::string declines_dropout(const NodeView& node, const DeviceInfo& device) {
  if (node.ins[0].shape.rank() > DropoutCall::kMaxTerms) return "takes values of at most 8 dims";
  return declines_unless_plain(node, device);
}

Prepared prepare_dropout(const NodeView& node, const DeviceInfo&) {
  const auto& op = op_of<DropoutOp>(node);
  const Shape& shape = node.ins[0].shape;
  Bound<DropoutCall> call;
  call->count = shape.elems();
  call->key = op.key();
  call->threshold = op.threshold();
  call->scale = static_cast<float>(op.scale());
  if (op.unit() == DropUnit::kSample)
    place_samples(*call, shape);
  else
    place_elements(*call, shape);
  call.bind(call->x, input(node, 0)).bind(call->y, output(node)).bind(call->counters, input(node, 1));
  return prepared(&RowsApi::dropout, call);
}

// Says what a node sums over rows, from which inputs, and the input that it is added to; -1: it is written to
// the output.
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
  if (members[1].sources[1] != made_by(0) || !members[1].sources[0].is_input())
    return {.ins = {}, .known = false};
  return {inputs_of(members[0]), members[1].sources[0].input()};
}

// Divides the rows into parts: enough blocks to keep the GPU busy, each with enough rows to be worth its
// partial sums.
ColumnSums column_sums(int64_t elems, int64_t width, const DeviceInfo& device) {
  const int64_t processors = processors_of(device);
  const int64_t across = width % 8 == 0 ? (width + 255) / 256 : (width + 31) / 32, rows = elems / width;
  const int64_t most = std::max<int64_t>(1, 6 * processors / across);
  return {.rows = rows, .width = width, .parts = std::clamp<int64_t>((rows + 63) / 64, 1, most)};
}

size_t partial_bytes(const ColumnSums& sums) {
  return static_cast<size_t>(sums.parts * sums.width) * sizeof(float);
}

Prepared prepare_gelu_slope(const NodeView& node, const DeviceInfo&) {
  const bool tanh_form = op_of<GeluSlopeOp>(node).tanh_form();
  Bound<MapCall> slope = map_call(node);
  slope.bind(slope->y, output(node, 1));
  Calls calls;
  calls.add(map_of(tanh_form ? MapKind::kGeluTanh : MapKind::kGeluErf), map_call(node));
  calls.add(map_of(tanh_form ? MapKind::kGeluTanhSlope : MapKind::kGeluErfSlope), slope);
  return std::move(calls).prepared();
}

MapKind gelu_grad_kind(const NodeView& node) {
  if (is<GeluSlopeGradOp>(node.op)) return MapKind::kProduct;
  return op_of<GeluGradOp>(node).tanh_form() ? MapKind::kGeluTanhGrad : MapKind::kGeluErfGrad;
}

Prepared prepare_gelu_grad(const NodeView& node, const DeviceInfo& device) {
  const MapKind kind = gelu_grad_kind(node);
  Bound<MapCall> call = map_call(node);
  if (node.outs.size() < 2) return prepared_map(kind, call);
  call->sums = column_sums(call->count, node.outs[1].elems(), device);
  call.bind(call->sums.target, output(node, 1)).bind(call->sums.partials, scratch());
  return prepared_map(kind, call, partial_bytes(call->sums));
}

std::string declines_sum(const NodeView& node, const DeviceInfo& device) {
  if (!parse_sum(node.op).known) return "not a sum over rows added to a parameter's gradient";
  return declines_unless_plain(node, device);
}

Prepared prepare_sum(const NodeView& node, const DeviceInfo& device) {
  const RowSum sum = parse_sum(node.op);
  const bool adds = sum.target >= 0;
  const TensorDesc &target = adds ? node.ins[sum.target] : node.outs[0], &x = node.ins[sum.ins[0]];
  Bound<SumCall> call;
  call->sums = column_sums(x.elems(), target.elems(), device);
  call->sums.add = adds;
  call.bind(call->x, input(node, sum.ins[0]));
  if (sum.ins.size() > 1) call.bind(call->y, input(node, sum.ins[1]));
  call.bind(call->sums.target, adds ? input(node, sum.target) : output(node));
  call.bind(call->sums.partials, scratch());
  return prepared(&RowsApi::sum, call, partial_bytes(call->sums));
}

template <typename Served, MapKind kKind>
OpKernels map_row() {
  return row<Served>({cuda_kernel("map", prepare_map<kKind>)});
}

}  // namespace

std::vector<OpKernels> row_kernels() {
  return {
      row<GeluOp>({cuda_kernel("map", prepare_gelu)}),
      row<GeluGradOp>({cuda_kernel("map", prepare_gelu_grad)}),
      row<GeluSlopeOp>({cuda_kernel("map twice", prepare_gelu_slope)}),
      row<GeluSlopeGradOp>({cuda_kernel("map", prepare_gelu_grad)}),
      row<ActivateOp>(
          {cuda_kernel("map", prepare_activate<ActivateOp, MapKind::kActivate>, declines_rare<ActivateOp>)}),
      row<ActivateGradOp>({cuda_kernel("map", prepare_activate<ActivateGradOp, MapKind::kActivateGrad>,
                                       declines_rare<ActivateGradOp>)}),
      map_row<TanhOp, MapKind::kTanh>(),
      map_row<TanhGradOp, MapKind::kTanhGrad>(),
      map_row<BiasOp, MapKind::kAdd>(),
      map_row<ScaleOp, MapKind::kProduct>(),
      map_row<AddOp, MapKind::kAdd>(),
      map_row<AverageOp, MapKind::kAverage>(),
      map_row<CastOp, MapKind::kCopy>(),
      row<MultiplyOp>({cuda_kernel("map", prepare_multiply)}),
      row<ScaleByOp>({cuda_kernel("map", prepare_map<MapKind::kScaleBy>, declines_scale_by)}),
      row<DropoutOp>({cuda_kernel("dropout", prepare_dropout, declines_dropout)}),
      row<SumRowsOp>({cuda_kernel("sum_columns", prepare_sum, declines_sum)}),
      row<ScaleDwOp>({cuda_kernel("sum_columns", prepare_sum, declines_sum)}),
      fused_row({cuda_kernel("sum_columns", prepare_sum, declines_sum)}),
  };
}

}  // namespace vitrail::cuda
