// Launches of attention: where a node's queries, keys and values are stored, and which of the plugin's
// kernels takes the node.
#include <cmath>

#include "backend/cuda/api/attention_scratch.h"
#include "backend/cuda/launch.h"
#include "ops/attention.h"
#include "ops/attention_bias_grad.h"
#include "ops/attention_sums.h"

namespace vitrail::cuda {

namespace {

constexpr int kStreamCompute = 90;

float score_scale(int64_t head_size) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_size)));
}

AttentionGeometry grad_geometry(const NodeView& node) {
  return attention_geometry(node.op, node.ins.first(node.ins.size() - 1));
}

template <typename Call>
void bind_heads(Bound<Call>& call, HeadRows& rows, Place place, const AttentionStrides& strides) {
  rows.dtype = place.dtype;
  rows.batch = strides.batch;
  rows.row = strides.row;
  rows.head = strides.head;
  place.offset = static_cast<size_t>(strides.base) * size_of(place.dtype);
  call.bind(rows.data, place);
}

// Returns what a call and that of its gradient share; keys and values are in the input `keys`.
template <typename Call>
Bound<Call> call_of(const NodeView& node, const AttentionGeometry& g, size_t keys) {
  Bound<Call> call;
  call->batch = g.batch;
  call->heads = g.heads;
  call->queries = g.queries;
  call->keys = g.keys;
  call->head_size = g.head_size;
  call->scale = score_scale(g.head_size);
  const Place kv = input(node, static_cast<int>(keys));
  bind_heads(call, call->q, input(node, 0), g.q);
  bind_heads(call, call->k, kv, g.k);
  bind_heads(call, call->v, kv, g.v);
  return call;
}

// Nothing is launched for no images.
template <typename Function, typename Call>
Prepared prepared_unless_empty(Function function, const Bound<Call>& call, size_t scratch_bytes = 0) {
  return call->batch > 0 ? prepared(function, call, scratch_bytes) : Calls().prepared(scratch_bytes);
}

Bound<AttentionCall> forward_call(const NodeView& node, const AttentionGeometry& g,
                                  const AttentionStrides& out) {
  Bound<AttentionCall> call = call_of<AttentionCall>(node, g, node.ins.size() - 1);
  bind_heads(call, call->out, output(node), out);
  return call;
}

template <auto kFunction>
Prepared prepare_forward(const NodeView& node, const DeviceInfo&) {
  const AttentionGeometry g = attention_geometry(node.op, node.ins);
  return prepared_unless_empty(kFunction, forward_call(node, g, g.out));
}

Prepared prepare_weights(const NodeView& node, const DeviceInfo&) {
  const AttentionGeometry g = attention_geometry(node.op, node.ins);
  const AttentionStrides rows = {0, g.heads * g.queries * g.keys, g.keys, g.queries * g.keys};
  return prepared_unless_empty(&AttentionApi::weights, forward_call(node, g, rows));
}

Prepared prepare_forward_keeping(const NodeView& node, const DeviceInfo&) {
  const AttentionGeometry g = attention_geometry(node.op, node.ins);
  Bound<AttentionCall> call = forward_call(node, g, g.out);
  call.bind(call->log_sums, output(node, 1));
  return prepared_unless_empty(&AttentionApi::stream_forward, call);
}

Bound<AttentionGradCall> backward_call(const NodeView& node, const AttentionGeometry& g, size_t keys) {
  Bound<AttentionGradCall> call = call_of<AttentionGradCall>(node, g, keys);
  const Place dkv = output(node, node.outs.size() - 1);
  bind_heads(call, call->dout, input(node, static_cast<int>(node.ins.size()) - 1), g.out);
  bind_heads(call, call->dq, output(node), g.q);
  bind_heads(call, call->dk, dkv, g.k);
  bind_heads(call, call->dv, dkv, g.v);
  return call.bind(call->scratch, scratch());
}

using GradScratch = size_t (*)(const NodeView&, const AttentionGeometry&);
template <auto kFunction, GradScratch scratch_bytes>
Prepared prepare_backward(const NodeView& node, const DeviceInfo&) {
  const AttentionGeometry g = grad_geometry(node);
  return prepared_unless_empty(kFunction, backward_call(node, g, node.ins.size() - 2),
                               scratch_bytes(node, g));
}

size_t stream_grad_scratch(const NodeView&, const AttentionGeometry& g) {
  return stream_scratch_bytes(g.batch, g.heads, g.queries, g.head_size, false);
}
size_t one_grad_scratch(const NodeView&, const AttentionGeometry& g) {
  return one_query_scratch_bytes(g.batch, g.heads, g.keys);
}

Prepared prepare_backward_with_sums(const NodeView& node, const DeviceInfo&) {
  const AttentionGeometry g = attention_geometry(node.op, node.ins.first(1));
  const NodeView gradient{node.op, node.ins, node.outs.first(1)};
  Bound<AttentionGradCall> call = backward_call(gradient, g, 0);
  call.bind(call->sums.target, output(node, 1)).bind(call->sums.partials, scratch());
  return prepared_unless_empty(
      &AttentionApi::group_backward, call,
      static_cast<size_t>(g.batch * kGroupParts * 3 * g.heads * g.head_size) * sizeof(float));
}

Prepared prepare_backward_from_kept(const NodeView& node, const DeviceInfo&) {
  const AttentionGeometry g = attention_geometry(node.op, node.ins.first(1));
  Bound<AttentionGradCall> call = backward_call(node, g, 0);
  bind_heads(call, call->out, input(node, 1), g.out);
  call.bind(call->log_sums, input(node, 2));
  return prepared_unless_empty(&AttentionApi::stream_backward, call,
                               stream_scratch_bytes(g.batch, g.heads, g.queries, g.head_size, true));
}

std::string declines_plain(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = declines_unless_plain(node, device); !reason.empty()) return reason;
  const int64_t size = node.ins[0].shape.local('E');
  if (size > kPlainHeadSize)
    return strf("heads of %lld elements; it takes up to %lld", static_cast<long long>(size),
                static_cast<long long>(kPlainHeadSize));
  return {};
}

std::string unless_one_query(const AttentionGeometry& g) {
  return g.queries == 1 ? "" : strf("%lld queries; it takes one", static_cast<long long>(g.queries));
}

std::string declines_one(const NodeView& node, const DeviceInfo& device) {
  const std::string reason = unless_one_query(attention_geometry(node.op, node.ins));
  return reason.empty() ? declines_plain(node, device) : reason;
}

std::string declines_one_grad(const NodeView& node, const DeviceInfo& device) {
  if (node.ins.size() == 3) return "takes an image's own query, not one that all share";
  const std::string reason = unless_one_query(grad_geometry(node));
  return reason.empty() ? declines_plain(node, device) : reason;
}

std::string declines_grad(const NodeView& node, const DeviceInfo& device) {
  const AttentionGeometry g = grad_geometry(node);
  if (node.ins.size() == 2 && g.queries != g.keys)
    return "writes gradients of tokens that ask, and of no others";
  return declines_plain(node, device);
}

// Returns whether an operand is f32 whatever the others are: the logarithms of the softmax's sums, [B H N],
// or the gradient of a bias, [T H E].
bool is_sums(const NodeView& node, const TensorDesc& desc) {
  if (desc.dtype != DType::kF32) return false;
  return is<AttentionBiasGradOp>(node.op)
             ? !desc.shape.has('N')
             : is<AttentionSumsOp, AttentionSumsGradOp>(node.op) && !desc.shape.has('E');
}

// Declines operands that the tensor-core kernels cannot take.
std::string declines_unless_16bit(const NodeView& node, int64_t most_elements) {
  const DType dtype = node.ins[0].dtype;
  if (dtype != DType::kBF16 && dtype != DType::kF16) return "computes in bf16 and f16";
  for (const DescSpan descs : {node.ins, node.outs})
    for (const TensorDesc& desc : descs)
      if ((desc.dtype != dtype && !is_sums(node, desc)) || !desc.packing.empty())
        return "takes operands of one type";
  const int64_t size = node.ins[0].shape.local('E');
  if (size % 8 != 0 || size > most_elements)
    return strf("heads of %lld elements; it takes multiples of 8 up to %lld", static_cast<long long>(size),
                static_cast<long long>(most_elements));
  return {};
}

size_t backward_scratch(const NodeView& node, const AttentionGeometry& g) {
  const bool shared = node.ins.size() == 3,
             exact = shared || !declines_unless_16bit(node, kLongHeadSize).empty();
  return attention_grad_scratch_bytes(g.batch, g.heads, g.queries, g.head_size, exact, shared);
}

std::string declines_short(const NodeView& node, const DeviceInfo&) {
  // A head's keys and values lie in a block's shared memory, of which every GPU has at least 99 KiB.
  static_assert(kShortKeys * 2 * kShortHeadSize * 2 <= 99 * 1024);
  if (std::string reason = declines_unless_16bit(node, kShortHeadSize); !reason.empty()) return reason;
  const AttentionGeometry g = attention_geometry(node.op, node.ins);
  if (g.keys > kShortKeys || g.queries > g.keys)
    return strf("%lld queries and %lld keys; it takes up to %lld keys and no more queries than keys",
                static_cast<long long>(g.queries), static_cast<long long>(g.keys),
                static_cast<long long>(kShortKeys));
  return {};
}

std::string declines_long(const NodeView& node, const DeviceInfo&) {
  return declines_unless_16bit(node, kLongHeadSize);
}

constexpr const char* kOwnQueriesOnly = "takes an image's own queries, not ones that all share";

// Declines what the kernels for long sequences on Hopper do not take, or what others do faster.
std::string declines_stream(const NodeView& node, const DeviceInfo& device, const AttentionGeometry& g) {
  if (device.compute != kStreamCompute) return "needs compute capability 9.0";
  const int64_t fewest = g.head_size <= kShortHeadSize ? kStreamKeys : kStreamLargeKeys;
  if (g.keys < fewest || g.queries != g.keys)
    return strf("%lld queries and %lld keys; it takes as many of both, from %lld on",
                static_cast<long long>(g.queries), static_cast<long long>(g.keys),
                static_cast<long long>(fewest));
  return declines_unless_16bit(node, kStreamHeadSize);
}
std::string declines_stream_forward(const NodeView& node, const DeviceInfo& device) {
  if (node.ins.size() == 2) return kOwnQueriesOnly;
  return declines_stream(node, device, attention_geometry(node.op, node.ins));
}
std::string declines_stream_grad(const NodeView& node, const DeviceInfo& device) {
  if (node.ins.size() == 3) return kOwnQueriesOnly;
  return declines_stream(node, device, grad_geometry(node));
}

std::string declines_stream_kept(const NodeView& node, const DeviceInfo& device) {
  return declines_stream(node, device, attention_geometry(node.op, node.ins.first(1)));
}

std::string declines_group_sums(const NodeView& node, const DeviceInfo& device) {
  if (device.compute != kStreamCompute) return "needs compute capability 9.0";
  const int64_t tokens = node.ins[0].shape.local('N');
  if (tokens < kGroupLeastKeys || tokens > kGroupMostKeys)
    return strf("%lld tokens; it takes %lld to %lld", static_cast<long long>(tokens),
                static_cast<long long>(kGroupLeastKeys), static_cast<long long>(kGroupMostKeys));
  return declines_unless_16bit(node, kShortHeadSize);
}

// On tensor cores the weights and the gradients of scores are operands, so they are rounded to the type of
// the other operands.
Kernel on_tensor_cores(Kernel kernel) {
  kernel.rounding = [](const NodeView& node) {
    return Rounding{.weights = declines_unless_16bit(node, kLongHeadSize).empty()};
  };
  return kernel;
}

}  // namespace

std::vector<OpKernels> attention_kernels() {
  return {row<AttentionOp>(
              {cuda_kernel("one_query", prepare_forward<&AttentionApi::one_forward>, declines_one),
               on_tensor_cores(cuda_kernel("stream_heads", prepare_forward<&AttentionApi::stream_forward>,
                                           declines_stream_forward)),
               on_tensor_cores(
                   cuda_kernel("short_heads", prepare_forward<&AttentionApi::short_forward>, declines_short)),
               on_tensor_cores(
                   cuda_kernel("long_heads", prepare_forward<&AttentionApi::long_forward>, declines_long)),
               cuda_kernel("plain_heads", prepare_forward<&AttentionApi::plain_forward>, declines_plain)}),
          row<AttentionProbsOp>({cuda_kernel("plain_weights", prepare_weights, declines_plain)}),
          row<AttentionGradOp>(
              {cuda_kernel("one_query", prepare_backward<&AttentionApi::one_backward, one_grad_scratch>,
                           declines_one_grad),
               on_tensor_cores(cuda_kernel(
                   "stream_heads", prepare_backward<&AttentionApi::stream_backward, stream_grad_scratch>,
                   declines_stream_grad)),
               on_tensor_cores(cuda_kernel(
                   "heads", prepare_backward<&AttentionApi::backward, backward_scratch>, declines_grad))}),
          row<AttentionBiasGradOp>(
              {on_tensor_cores(cuda_kernel("group_heads", prepare_backward_with_sums, declines_group_sums))}),
          row<AttentionSumsOp>(
              {on_tensor_cores(cuda_kernel("stream_heads", prepare_forward_keeping, declines_stream_kept))}),
          row<AttentionSumsGradOp>({on_tensor_cores(
              cuda_kernel("stream_heads", prepare_backward_from_kept, declines_stream_kept))})};
}

}  // namespace vitrail::cuda
