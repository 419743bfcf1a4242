// Launches of attention: where a node's queries, keys and values are stored, and which of the plugin's
// kernels takes the node.
#include <cmath>

#include "backend/cuda/api/attention_scratch.h"
#include "backend/cuda/launch.h"
#include "ops/attention.h"
#include "ops/attention_sums.h"

namespace vitrail::cuda {

namespace {

constexpr int kStreamCompute = 90;

HeadRows head_rows(const TensorView& view, const AttentionStrides& strides) {
  std::byte* data = static_cast<std::byte*>(view.data());
  return {data + static_cast<size_t>(strides.base) * size_of(view.dtype()), view.dtype(), strides.batch,
          strides.row, strides.head};
}

float score_scale(int64_t head_size) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_size)));
}

AttentionGeometry geometry_of(const Op& op, std::span<const TensorView> forward_ins) {
  std::vector<TensorDesc> descs;
  for (const TensorView& view : forward_ins) descs.push_back(view.desc());
  return attention_geometry(op, descs);
}

AttentionCall forward_call(const KernelArgs& args, const AttentionGeometry& g, const AttentionStrides& out) {
  return {.batch = g.batch,
          .heads = g.heads,
          .queries = g.queries,
          .keys = g.keys,
          .head_size = g.head_size,
          .scale = score_scale(g.head_size),
          .q = head_rows(args.ins[0], g.q),
          .k = head_rows(args.ins.back(), g.k),
          .v = head_rows(args.ins.back(), g.v),
          .out = head_rows(args.outs[0], out)};
}

template <auto kFunction>
void run_forward(const KernelArgs& args) {
  const AttentionGeometry g = geometry_of(args.op, args.ins);
  if (g.batch > 0) (api().attention.*kFunction)(session(args), forward_call(args, g, g.out));
}

void run_weights(const KernelArgs& args) {
  const AttentionGeometry g = geometry_of(args.op, args.ins);
  const AttentionStrides rows = {0, g.heads * g.queries * g.keys, g.keys, g.queries * g.keys};
  AttentionCall call = forward_call(args, g, rows);
  if (g.batch > 0) api().attention.weights(session(args), call);
}

AttentionGradCall backward_call(const KernelArgs& args, std::span<const TensorView> forward,
                                const AttentionGeometry& g) {
  return {.batch = g.batch,
          .heads = g.heads,
          .queries = g.queries,
          .keys = g.keys,
          .head_size = g.head_size,
          .scale = score_scale(g.head_size),
          .q = head_rows(forward[0], g.q),
          .k = head_rows(forward.back(), g.k),
          .v = head_rows(forward.back(), g.v),
          .dout = head_rows(args.ins.back(), g.out),
          .dq = head_rows(args.outs[0], g.q),
          .dk = head_rows(args.outs.back(), g.k),
          .dv = head_rows(args.outs.back(), g.v),
          .scratch = args.scratch.data()};
}

template <auto kFunction>
void run_backward(const KernelArgs& args) {
  const auto forward = args.ins.first(args.ins.size() - 1);
  const AttentionGeometry g = geometry_of(args.op, forward);
  if (g.batch > 0) (api().attention.*kFunction)(session(args), backward_call(args, forward, g));
}

void run_forward_keeping(const KernelArgs& args) {
  const AttentionGeometry g = geometry_of(args.op, args.ins);
  AttentionCall call = forward_call(args, g, g.out);
  call.log_sums = args.outs[1].as<float>();
  if (g.batch > 0) api().attention.stream_forward(session(args), call);
}

void run_backward_from_kept(const KernelArgs& args) {
  const auto forward = args.ins.first(1);
  const AttentionGeometry g = geometry_of(args.op, forward);
  AttentionGradCall call = backward_call(args, forward, g);
  call.out = head_rows(args.ins[1], g.out);
  call.log_sums = args.ins[2].as<float>();
  if (g.batch > 0) api().attention.stream_backward(session(args), call);
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

AttentionGeometry grad_geometry(const NodeView& node) {
  return attention_geometry(node.op, node.ins.first(node.ins.size() - 1));
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

// Whether an operand is the logarithms of the softmax's sums, [B H N] in f32.
bool is_log_sums(const NodeView& node, const TensorDesc& desc) {
  return is<AttentionSumsOp, AttentionSumsGradOp>(node.op) && desc.dtype == DType::kF32 &&
         !desc.shape.has('E');
}

// Declines operands that the tensor-core kernels cannot take.
std::string declines_unless_16bit(const NodeView& node, int64_t most_elements) {
  const DType dtype = node.ins[0].dtype;
  if (dtype != DType::kBF16 && dtype != DType::kF16) return "computes in bf16 and f16";
  for (const DescSpan descs : {node.ins, node.outs})
    for (const TensorDesc& desc : descs)
      if ((desc.dtype != dtype && !is_log_sums(node, desc)) || !desc.packing.empty())
        return "takes operands of one type";
  const int64_t size = node.ins[0].shape.local('E');
  if (size % 8 != 0 || size > most_elements)
    return strf("heads of %lld elements; it takes multiples of 8 up to %lld", static_cast<long long>(size),
                static_cast<long long>(most_elements));
  return {};
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
size_t stream_kept_scratch(const NodeView& node, const DeviceInfo&) {
  const AttentionGeometry g = attention_geometry(node.op, node.ins.first(1));
  return stream_scratch_bytes(g.batch, g.heads, g.queries, g.head_size, true);
}

size_t stream_grad_scratch(const NodeView& node, const DeviceInfo&) {
  const AttentionGeometry g = grad_geometry(node);
  return stream_scratch_bytes(g.batch, g.heads, g.queries, g.head_size, false);
}

size_t backward_scratch(const NodeView& node, const DeviceInfo&) {
  const AttentionGeometry g = grad_geometry(node);
  return attention_grad_scratch_bytes(g.batch, g.heads, g.queries, g.head_size, node.ins.size() == 3);
}

size_t one_grad_scratch(const NodeView& node, const DeviceInfo&) {
  const AttentionGeometry g = grad_geometry(node);
  return one_query_scratch_bytes(g.batch, g.heads, g.keys);
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
  return {
      {"attention",
       {cuda_kernel("one_query", run_forward<&AttentionApi::one_forward>, declines_one),
        on_tensor_cores(
            cuda_kernel("stream_heads", run_forward<&AttentionApi::stream_forward>, declines_stream_forward)),
        on_tensor_cores(
            cuda_kernel("short_heads", run_forward<&AttentionApi::short_forward>, declines_short)),
        on_tensor_cores(cuda_kernel("long_heads", run_forward<&AttentionApi::long_forward>, declines_long)),
        cuda_kernel("plain_heads", run_forward<&AttentionApi::plain_forward>, declines_plain)}},
      {"attention_probs", {cuda_kernel("plain_weights", run_weights, declines_plain)}},
      {"attention_grad",
       {cuda_kernel("one_query", run_backward<&AttentionApi::one_backward>, declines_one_grad,
                    one_grad_scratch),
        on_tensor_cores(cuda_kernel("stream_heads", run_backward<&AttentionApi::stream_backward>,
                                    declines_stream_grad, stream_grad_scratch)),
        on_tensor_cores(
            cuda_kernel("heads", run_backward<&AttentionApi::backward>, declines_grad, backward_scratch))}},
      {"attention_sums",
       {on_tensor_cores(cuda_kernel("stream_heads", run_forward_keeping, declines_stream_kept))}},
      {"attention_sums_grad",
       {on_tensor_cores(
           cuda_kernel("stream_heads", run_backward_from_kept, declines_stream_kept, stream_kept_scratch))}}};
}

}  // namespace vitrail::cuda
