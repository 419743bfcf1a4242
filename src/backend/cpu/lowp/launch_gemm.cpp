// Launches of GEMMs in bf16 and int8, and in f32 by bf16 parts, alone or fused with their neighbours, with
// weights rounded or split into parts and packed at load.
#include <optional>

#include "backend/cpu/gemm/gemm_node.h"
#include "backend/cpu/gemm/packings.h"
#include "backend/cpu/launch.h"
#include "backend/cpu/lowp/lowp_gemm.h"

namespace vitrail::cpu {

namespace {

// The largest k for which the sums of int8 GEMMs stay within 32 bits.
constexpr int64_t kLongestInt8 = int64_t{0x7fffffff} / (127 * 127);

const LowpKernels& lowp_of(const IsaKernels& isa, Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::kExact) return isa.split;
  return arithmetic == Arithmetic::kInt8 ? isa.int8 : isa.bf16;
}

std::string_view packing_name(const DeviceInfo& device, Arithmetic arithmetic) {
  const Packings& packings = packings_of(device);
  if (arithmetic == Arithmetic::kExact) return packings.split;
  return arithmetic == Arithmetic::kInt8 ? packings.int8 : packings.bf16;
}

// The arithmetic that a weight was packed for; nullopt: it was not packed for this device's instruction set.
std::optional<Arithmetic> packed_for(std::string_view packing, const DeviceInfo& device) {
  for (Arithmetic arithmetic : {Arithmetic::kBF16, Arithmetic::kInt8, Arithmetic::kExact})
    if (packing == packing_name(device, arithmetic)) return arithmetic;
  return std::nullopt;
}

MatmulExtents extents_of(const NodeView& node, const GemmNode& p) {
  return gemm_extents(p, node.ins[p.x].shape, node.ins[p.weight].shape);
}

std::string lowp_unsupported(const NodeView& node, const DeviceInfo& device, Arithmetic arithmetic) {
  if (std::string reason = unsupported(node); !reason.empty()) return reason;
  const GemmNode p = parse_gemm(node.op);
  if (p.arithmetic != arithmetic)
    return strf("computes in %s, not %s", enum_name(arithmetic), enum_name(p.arithmetic));
  if (p.is_patch_embed) return "takes rows, not images";
  if (!lowp_of(isa_of(device), arithmetic).tile) return "this instruction set has none";
  if (arithmetic == Arithmetic::kInt8 && extents_of(node, p).k > kLongestInt8)
    return "the sums could overflow 32 bits";
  return {};
}

template <Arithmetic kIn>
std::string declines_lowp(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = lowp_unsupported(node, device, kIn); !reason.empty()) return reason;
  if (node.ins[parse_gemm(node.op).weight].packing != packing_name(device, kIn))
    return "the weight is not packed for this instruction set";
  return {};
}

Prepared prepare_lowp(const NodeView& node, const DeviceInfo& device) {
  const GemmNode p = parse_gemm(node.op);
  const MatmulExtents e = extents_of(node, p);
  const ScratchNeed need =
      lowp_linear_scratch(lowp_of(isa_of(device), p.arithmetic), e.m, e.n, e.k, p.norm.has_value());
  return {need.total(device.threads), [p, e](const KernelArgs& args) {
            const CpuContext context = context_of(args);
            parallel_lowp_linear(context, lowp_of(context.isa, p.arithmetic), linear_args(args, p, e),
                                 static_cast<const std::byte*>(args.ins[p.weight].data()));
          }};
}

template <Arithmetic kIn>
Packing lowp_packing(const NodeView& node, const DeviceInfo& device) {
  if (!lowp_unsupported(node, device, kIn).empty()) return {};
  const GemmNode p = parse_gemm(node.op);
  const MatmulExtents e = extents_of(node, p);
  const int64_t bytes = lowp_of(isa_of(device), kIn).packed_bytes(e.n, e.k);
  return {p.weight, packing_name(device, kIn), e.n, static_cast<size_t>(bytes)};
}

std::string declines_lowp_pack(const NodeView& node, const DeviceInfo& device) {
  if (packed_for(node.outs[0].packing, device)) return {};
  return "not a packing of this instruction set";
}

Prepared prepare_lowp_pack(const NodeView& node, const DeviceInfo& device) {
  const TensorDesc& packed = node.outs[0];
  const Arithmetic arithmetic = packed_for(packed.packing, device).value();
  return {0, [=, rows = packed.packed_rows,
              columns = node.ins[0].elems() / packed.packed_rows](const KernelArgs& args) {
            const CpuContext context = context_of(args);
            parallel_lowp_pack(context, lowp_of(context.isa, arithmetic), args.ins[0].as<float>(), rows,
                               columns, static_cast<std::byte*>(args.outs[0].data()));
          }};
}

template <Arithmetic kIn>
Kernel lowp_gemm(const char* name) {
  return {
      .name = name, .declines = declines_lowp<kIn>, .prepare = prepare_lowp, .packing = lowp_packing<kIn>};
}

}  // namespace

Kernel int8_gemm() {
  return lowp_gemm<Arithmetic::kInt8>("int8 gemm");
}

Kernel bf16_gemm() {
  return lowp_gemm<Arithmetic::kBF16>("bf16 gemm");
}

Kernel split_gemm() {
  Kernel gemm = lowp_gemm<Arithmetic::kExact>("gemm by bf16 parts");
  gemm.only_by_table = true;
  return gemm;
}

Kernel pack_lowp_weight() {
  return kernel("round and pack", prepare_lowp_pack, declines_lowp_pack);
}

}  // namespace vitrail::cpu
