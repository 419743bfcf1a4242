// Launches of f32 GEMMs, alone or fused with their neighbours, with weights packed at load or on each call,
// and of the gradient for a linear's input. A node is parsed once, when its kernel is prepared.
#include "backend/cpu/launch.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/gemm_node.h"
#include "backend/cpu/gemm/packings.h"
#include "ops/fused.h"
#include "ops/gelu.h"

namespace vitrail::cpu {

std::string declines_unless_f32(const NodeView& node, const DeviceInfo&) {
  for (const TensorDesc& desc : node.ins)
    if (desc.dtype != DType::kF32 || !desc.packing.empty())
      return "takes row-major f32 only, not " + to_string(desc);
  for (const TensorDesc& desc : node.outs)
    if (desc.dtype != DType::kF32) return strf("writes f32 only, not %s", to_string(desc.dtype));
  return {};
}

namespace {

std::string exact_unsupported(const NodeView& node) {
  if (std::string reason = unsupported(node); !reason.empty()) return reason;
  const Arithmetic arithmetic = parse_gemm(node.op).arithmetic;
  return arithmetic == Arithmetic::kExact ? "" : strf("computes in f32, not %s", enum_name(arithmetic));
}

std::string declines_linear(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = exact_unsupported(node); !reason.empty()) return reason;
  if (node.ins[parse_gemm(node.op).weight].packing != packings_of(device).f32)
    return "the weight is not packed for this instruction set";
  return {};
}

std::string declines_plain_linear(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = exact_unsupported(node); !reason.empty()) return reason;
  return declines_unless_f32(node, device);
}

size_t packed_bytes(const IsaKernels& isa, const MatmulExtents& e) {
  return padded_bytes(isa.packed_elems(e.n, e.k));
}

// A node's GEMM with its sizes, and for a patch embedding those of the patches.
struct SizedGemm {
  GemmNode p;
  MatmulExtents e;
  PatchEmbedArgs patches;

  explicit SizedGemm(const NodeView& node) : p(parse_gemm(node.op)) {
    const Shape &x = node.ins[p.x].shape, &w = node.ins[p.weight].shape;
    e = gemm_extents(p, x, w);
    if (p.is_patch_embed) patches = patch_args(x, w);
  }
  size_t scratch_bytes(const DeviceInfo& device) const {
    const IsaKernels& isa = isa_of(device);
    const ScratchNeed need = p.is_patch_embed ? patch_embed_scratch(isa, patches)
                                              : linear_scratch(isa, e.m, e.n, e.k, p.norm.has_value());
    return need.total(device.threads);
  }
  void run(const KernelArgs& args, const CpuContext& context, const float* packed) const {
    if (!p.is_patch_embed) {
      LinearArgs linear = linear_args(args, p, e);
      linear.packed = packed;
      return parallel_linear(context, linear);
    }
    PatchEmbedArgs with = patches;
    with.image = args.ins[p.x].as<float>();
    with.packed = packed;
    with.out = args.outs[0].as<float>();
    with.epilogue = epilogue_of(args, p, e.n);
    parallel_patch_embed(context, with);
  }
};

Prepared prepare_packed(const NodeView& node, const DeviceInfo& device) {
  const SizedGemm gemm(node);
  return {gemm.scratch_bytes(device), [gemm](const KernelArgs& args) {
            const auto* packed = static_cast<const float*>(args.ins[gemm.p.weight].data());
            gemm.run(args, context_of(args), packed);
          }};
}

Prepared prepare_packing(const NodeView& node, const DeviceInfo& device) {
  const SizedGemm gemm(node);
  const size_t bytes = packed_bytes(isa_of(device), gemm.e);
  return {bytes + gemm.scratch_bytes(device), [gemm, bytes](const KernelArgs& args) {
            const CpuContext context = context_of(args);
            auto* packed = reinterpret_cast<float*>(context.scratch.data());
            parallel_pack_weights(context, args.ins[gemm.p.weight].as<float>(), gemm.e.n, gemm.e.k, packed);
            gemm.run(args, past(context, bytes), packed);
          }};
}

Packing weight_packing(const NodeView& node, const DeviceInfo& device) {
  const GemmNode p = parse_gemm(node.op);
  if (!p.unsupported.empty() || p.arithmetic != Arithmetic::kExact || node.ins[p.weight].dtype != DType::kF32)
    return {};
  const MatmulExtents e = gemm_extents(p, node.ins[p.x].shape, node.ins[p.weight].shape);
  const auto elems = static_cast<size_t>(isa_of(device).packed_elems(e.n, e.k));
  return {p.weight, packings_of(device).f32, e.n, elems * sizeof(float)};
}

std::string declines_pack(const NodeView& node, const DeviceInfo& device) {
  if (node.outs[0].packing != packings_of(device).f32) return "not a packing of this instruction set";
  return {};
}

Prepared prepare_pack(const NodeView& node, const DeviceInfo&) {
  const int64_t rows = node.outs[0].packed_rows, columns = node.ins[0].elems() / rows;
  return {0, [rows, columns](const KernelArgs& args) {
            parallel_pack_weights(context_of(args), args.ins[0].as<float>(), rows, columns,
                                  static_cast<float*>(args.outs[0].data()));
          }};
}

// The gelu whose gradient a fused node applies after the input gradient of the linear behind it; null: the op
// is not such a node.
const GeluGradOp* gelu_after_dx(const Op& op) {
  const auto* fused = dynamic_cast<const FusedOp*>(&op);
  if (!fused || fused->members().size() != 2) return nullptr;
  using Sources = std::vector<FusedOp::Source>;
  const auto &gemm = fused->members()[0], &gelu = fused->members()[1];
  if (!is<LinearDxOp>(*gemm.op) || !is<GeluGradOp>(*gelu.op)) return nullptr;
  if (gemm.sources != Sources{0, 1} || gelu.sources != Sources{2, made_by(0)}) return nullptr;
  return static_cast<const GeluGradOp*>(gelu.op.get());
}

// dx[m, k] = dy[m, n] . w[n, k]: to the GEMM w is a weight of k outputs that is stored by its inputs.
Prepared prepare_input_grad(const NodeView& node, const DeviceInfo& device) {
  const MatmulExtents e = linear_dx_extents(node.ins[0].shape, node.ins[1].shape);
  const IsaKernels& isa = isa_of(device);
  const size_t bytes = padded_bytes(isa.packed_elems(e.k, e.n));
  const GeluGradOp* gelu = gelu_after_dx(node.op);
  const Activation act = gelu ? activation_of<Activation>(gelu->tanh_form()) : Activation::kNone;
  const auto run = [e, bytes, act](const KernelArgs& args) {
    const CpuContext context = context_of(args);
    auto* packed = reinterpret_cast<float*>(context.scratch.data());
    parallel_pack_matrix(context, args.ins[1].as<float>(), e.n, e.k, packed);
    const LinearArgs linear{.a = args.ins[0].as<float>(),
                            .lda = e.n,
                            .packed = packed,
                            .c = args.outs[0].as<float>(),
                            .ldc = e.k,
                            .m = e.m,
                            .n = e.k,
                            .k = e.n,
                            .norm = {},
                            .epilogue = {}};
    const CpuContext rest = past(context, bytes);
    if (act == Activation::kNone) return parallel_linear(rest, linear);
    parallel_linear_activate_grad(rest, linear, act, args.ins[2].as<float>());
  };
  return {bytes + linear_scratch(isa, e.m, e.k, e.n, false).total(device.threads), run};
}

std::string declines_gelu_grad(const NodeView& node, const DeviceInfo& device) {
  if (!gelu_after_dx(node.op)) return "not the gradient of a GEMM behind a gelu";
  if (node.outs.size() > 1) return "makes one result";
  return declines_unless_f32(node, device);
}

}  // namespace

Kernel packed_gemm() {
  return {.name = "packed gemm",
          .declines = declines_linear,
          .prepare = prepare_packed,
          .packing = weight_packing};
}

Kernel packing_gemm() {
  return {.name = "gemm that packs", .declines = declines_plain_linear, .prepare = prepare_packing};
}

Kernel pack_weight() {
  return kernel("pack", prepare_pack, declines_pack);
}

Kernel input_grad_gemm() {
  return {.name = "gemm that packs", .declines = declines_unless_f32, .prepare = prepare_input_grad};
}

Kernel gelu_grad_gemm() {
  return {.name = "gemm with gelu slope", .declines = declines_gelu_grad, .prepare = prepare_input_grad};
}

}  // namespace vitrail::cpu
