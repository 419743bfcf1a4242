// 16-bit floats as storage: values are widened into scratch, the op's f32 kernel runs on those, and what it
// wrote is rounded back. It serves every op that has an f32 kernel, and plain conversions.
#include "backend/cpu/launch.h"
#include "backend/cpu/lowp/convert.h"
#include "backend/cpu/tiles.h"
#include "ops/fused.h"

namespace vitrail::cpu {

namespace {

std::vector<TensorDesc> in_f32(DescSpan descs) {
  std::vector<TensorDesc> wide(descs.begin(), descs.end());
  for (TensorDesc& desc : wide)
    if (is_float16(desc.dtype)) desc.dtype = DType::kF32;
  return wide;
}

bool any_float16(DescSpan descs) {
  for (const TensorDesc& desc : descs)
    if (is_float16(desc.dtype)) return true;
  return false;
}

// Whether a fused node passes a 16-bit value from member to member. Its f32 kernel would not round that
// value, and the result would differ from that of the members run one by one, which a step with recomputation
// may do.
bool rounds_between_members(const NodeView& node) {
  const auto* fused = dynamic_cast<const FusedOp*>(&node.op);
  if (!fused) return false;
  const std::vector<TensorDesc> outs = fused->member_outputs(node.ins);
  return any_float16(DescSpan(outs).first(fused->members().size() - 1));
}

size_t copies_bytes(DescSpan descs) {
  size_t bytes = 0;
  for (const TensorDesc& desc : descs)
    if (is_float16(desc.dtype)) bytes += padded_bytes(desc.elems());
  return bytes;
}

// The kernel that accepts the node in f32; null: none.
const Kernel* f32_kernel(const Op& op, DescSpan ins, DescSpan outs, const DeviceInfo& device) {
  const bool fused = dynamic_cast<const FusedOp*>(&op) != nullptr;
  for (const OpKernels& row : f32_kernels()) {
    if (row.op != (fused ? "fused" : op.kind())) continue;
    for (const Kernel& kernel : row.kernels)
      if (kernel.declines({op, ins, outs}, device).empty()) return &kernel;
  }
  return nullptr;
}

// Views in f32: 16-bit tensors get copies in scratch, from `next` on, the others stay as they are.
std::vector<TensorView> wide_views(std::span<const TensorView> views, std::byte*& next) {
  std::vector<TensorView> wide;
  for (const TensorView& view : views) {
    if (!is_float16(view.dtype())) {
      wide.push_back(view);
      continue;
    }
    wide.emplace_back(next, TensorDesc{DType::kF32, view.shape()});
    next += padded_bytes(view.desc().elems());
  }
  return wide;
}

std::string declines_widened(const NodeView& node, const DeviceInfo& device) {
  if (!any_float16(node.ins) && !any_float16(node.outs)) return "there is no 16-bit float to widen";
  if (rounds_between_members(node)) return "its members round to 16 bits in between";
  const std::vector<TensorDesc> ins = in_f32(node.ins), outs = in_f32(node.outs);
  return f32_kernel(node.op, ins, outs, device) ? "" : "no kernel takes it in f32 either";
}

// A node's operands in f32, and the f32 kernel prepared for them.
struct Widened {
  std::vector<int> updates;
  Prepared inner;

  void operator()(const KernelArgs& args) const {
    const CpuContext context = context_of(args);
    std::byte* next = args.scratch.data();
    const std::vector<TensorView> ins = wide_views(args.ins, next), outs = wide_views(args.outs, next);
    const auto used = static_cast<size_t>(next - args.scratch.data());
    for (size_t i = 0; i < ins.size(); ++i)
      if (is_float16(args.ins[i].dtype())) parallel_convert(context, args.ins[i], ins[i]);
    inner.run({args.op, ins, outs, args.scratch.subspan(used), args.context});
    for (size_t i = 0; i < outs.size(); ++i)
      if (is_float16(args.outs[i].dtype())) parallel_convert(context, outs[i], args.outs[i]);
    for (int i : updates)
      if (is_float16(args.ins[i].dtype())) parallel_convert(context, ins[i], args.ins[i]);
  }
};

Prepared prepare_widened(const NodeView& node, const DeviceInfo& device) {
  const std::vector<TensorDesc> ins = in_f32(node.ins), outs = in_f32(node.outs);
  const Kernel* kernel = f32_kernel(node.op, ins, outs, device);
  VT_CHECK(kernel, "no f32 kernel for %s", std::string(node.op.kind()).c_str());
  Widened widened{node.op.updates(), kernel->prepare({node.op, ins, outs}, device)};
  const size_t bytes = copies_bytes(node.ins) + copies_bytes(node.outs) + widened.inner.scratch_bytes;
  return {bytes, std::move(widened)};
}

std::string declines_cast(const NodeView& node, const DeviceInfo&) {
  return converts(node.ins[0].dtype, node.outs[0].dtype) ? "" : "converts between f32 and 16-bit floats only";
}

void run_cast(const KernelArgs& args) {
  parallel_convert(context_of(args), args.ins[0], args.outs[0]);
}

std::string declines_copy_into(const NodeView& node, const DeviceInfo&) {
  return converts(node.ins[1].dtype, node.ins[0].dtype) ? "" : "converts between f32 and 16-bit floats only";
}

void run_copy_into(const KernelArgs& args) {
  parallel_convert(context_of(args), args.ins[1], args.ins[0]);
}

}  // namespace

Kernel widened() {
  return {.name = "in f32", .declines = declines_widened, .prepare = prepare_widened};
}

std::vector<OpKernels> convert_kernels() {
  return {
      {"cast", {kernel("parallel copy", run_cast, declines_cast)}},
      {"copy_into", {kernel("parallel copy", run_copy_into, declines_copy_into)}},
  };
}

}  // namespace vitrail::cpu
