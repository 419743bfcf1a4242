// 16-bit floats as storage: values are widened into scratch, the op's f32 kernel runs on those, and what it
// wrote is rounded back. It serves every op that has an f32 kernel, and plain conversions.
#include <algorithm>

#include "backend/cpu/launch.h"
#include "backend/cpu/lowp/convert.h"
#include "backend/cpu/tiles.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/persistent.h"

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

// Returns whether a fused node passes a 16-bit value from member to member. Its f32 kernel would not round
// that value, and the result would differ from that of the members run one by one, which a step with
// recomputation may do.
bool rounds_between_members(const NodeView& node) {
  const auto* fused = dynamic_cast<const FusedOp*>(&node.op);
  if (!fused) return false;
  const std::vector<TensorDesc> outs = fused->member_outputs(node.ins);
  return any_float16(DescSpan(outs).first(fused->members().size() - 1));
}

// The kernel that accepts the node in f32; null: none.
const Kernel* f32_kernel(const Op& op, DescSpan ins, DescSpan outs, const DeviceInfo& device) {
  for (const OpKernels& row : f32_kernels()) {
    if (row.op != row_name(op)) continue;
    for (const Kernel& kernel : row.kernels)
      if (kernel.declines({op, ins, outs}, device).empty()) return &kernel;
  }
  return nullptr;
}

std::string declines_widened(const NodeView& node, const DeviceInfo& device) {
  if (!any_float16(node.ins) && !any_float16(node.outs)) return "there is no 16-bit float to widen";
  if (rounds_between_members(node)) return "its members round to 16 bits in between";
  const std::vector<TensorDesc> ins = in_f32(node.ins), outs = in_f32(node.outs);
  return f32_kernel(node.op, ins, outs, device) ? "" : "no kernel takes it in f32 either";
}

// The operands of a node on one side: which of them lie in scratch as f32, and where.
class WideViews {
 public:
  // Copies lie from `bytes` on, which grows by them.
  WideViews(DescSpan descs, size_t& bytes) : wide_(in_f32(descs)) {
    for (size_t i = 0; i < descs.size(); ++i) {
      if (!is_float16(descs[i].dtype)) continue;
      copies_.push_back({i, bytes, {descs[i].dtype, DType::kF32, descs[i].elems()}});
      bytes += padded_bytes(descs[i].elems());
    }
  }
  std::vector<TensorView> of(std::span<const TensorView> views, std::byte* scratch) const {
    std::vector<TensorView> wide(views.begin(), views.end());
    for (const Copy& copy : copies_) wide[copy.operand] = {scratch + copy.place, wide_[copy.operand]};
    return wide;
  }
  void widen(const CpuContext& context, std::span<const TensorView> from,
             std::span<const TensorView> wide) const {
    for (const Copy& copy : copies_)
      parallel_convert(context, copy.widening, from[copy.operand].data(), wide[copy.operand].data());
  }
  // Rounds back those that `wanted` names.
  template <typename Wanted>
  void round(const CpuContext& context, std::span<const TensorView> wide, std::span<const TensorView> to,
             const Wanted& wanted) const {
    for (const Copy& copy : copies_)
      if (wanted(static_cast<int>(copy.operand)))
        parallel_convert(context, {DType::kF32, copy.widening.from, copy.widening.elems},
                         wide[copy.operand].data(), to[copy.operand].data());
  }

 private:
  struct Copy {
    size_t operand, place;
    Conversion widening;
  };
  std::vector<TensorDesc> wide_;
  std::vector<Copy> copies_;
};

// A node's operands in f32, and the f32 kernel prepared for them.
struct Widened {
  std::vector<int> updates;
  WideViews wide_ins, wide_outs;
  size_t copies;  // bytes of scratch before the inner kernel's
  Prepared inner;

  void operator()(const KernelArgs& args) const {
    const CpuContext context = context_of(args);
    const std::vector<TensorView> ins = wide_ins.of(args.ins, args.scratch.data()),
                                  outs = wide_outs.of(args.outs, args.scratch.data());
    wide_ins.widen(context, args.ins, ins);
    inner.run({args.op, ins, outs, args.scratch.subspan(copies), args.context});
    wide_outs.round(context, outs, args.outs, [](int) { return true; });
    wide_ins.round(context, ins, args.ins,
                   [this](int i) { return std::find(updates.begin(), updates.end(), i) != updates.end(); });
  }
};

Prepared prepare_widened(const NodeView& node, const DeviceInfo& device) {
  const std::vector<TensorDesc> ins = in_f32(node.ins), outs = in_f32(node.outs);
  const Kernel* kernel = f32_kernel(node.op, ins, outs, device);
  VT_CHECK(kernel, "no f32 kernel for %s", std::string(node.op.kind()).c_str());
  size_t copies = 0;
  WideViews wide_ins(node.ins, copies), wide_outs(node.outs, copies);
  const std::span<const int> updates = node.op.updates();
  Widened widened{{updates.begin(), updates.end()},
                  std::move(wide_ins),
                  std::move(wide_outs),
                  copies,
                  kernel->prepare({node.op, ins, outs}, device)};
  const size_t bytes = copies + widened.inner.scratch_bytes;
  return {bytes, std::move(widened)};
}

std::string declines_cast(const NodeView& node, const DeviceInfo&) {
  return converts(node.ins[0].dtype, node.outs[0].dtype) ? "" : "converts between f32 and 16-bit floats only";
}

Prepared prepare_cast(const NodeView& node, const DeviceInfo&) {
  const Conversion what{node.ins[0].dtype, node.outs[0].dtype, node.ins[0].elems()};
  return {0, [what](const KernelArgs& args) {
            parallel_convert(context_of(args), what, args.ins[0].data(), args.outs[0].data());
          }};
}

std::string declines_copy_into(const NodeView& node, const DeviceInfo&) {
  return converts(node.ins[1].dtype, node.ins[0].dtype) ? "" : "converts between f32 and 16-bit floats only";
}

Prepared prepare_copy_into(const NodeView& node, const DeviceInfo&) {
  const Conversion what{node.ins[1].dtype, node.ins[0].dtype, node.ins[1].elems()};
  return {0, [what](const KernelArgs& args) {
            parallel_convert(context_of(args), what, args.ins[1].data(), args.ins[0].data());
          }};
}

}  // namespace

Kernel widened() {
  return {.name = "in f32", .declines = declines_widened, .prepare = prepare_widened};
}

std::vector<OpKernels> convert_kernels() {
  return {
      row<CastOp>({kernel("parallel copy", prepare_cast, declines_cast)}),
      row<CopyIntoOp>({kernel("parallel copy", prepare_copy_into, declines_copy_into)}),
  };
}

}  // namespace vitrail::cpu
