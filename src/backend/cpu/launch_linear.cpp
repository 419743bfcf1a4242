// Products, alone or fused with their neighbours, with weights packed at load or on each call.
#include "backend/cpu/context.h"
#include "backend/cpu/launch.h"
#include "backend/cpu/product.h"
#include "backend/cpu/tiles.h"

namespace vitrail::cpu {

namespace {

std::string exact_misfit(const NodeView& node) {
  if (std::string reason = misfit(node); !reason.empty()) return reason;
  const Arithmetic arithmetic = parse_product(node.op).arithmetic;
  return arithmetic == Arithmetic::kExact ? "" : strf("computes in f32, not %s", enum_name(arithmetic));
}

// By level; those above avx512 have its f32 kernels.
constexpr std::string_view kPackings[] = {"panels-baseline", "panels-avx2", "panels64-avx512",
                                          "panels64-avx512", "panels64-avx512"};

}  // namespace

PatchEmbedArgs patch_args(const Shape& x, const Shape& w) {
  const int64_t n = w.local('D'), patches = (x.local('Y') / w.local('P')) * (x.local('X') / w.local('Q'));
  return {.batch = x.local('B'),
          .channels = x.local('C'),
          .height = x.local('Y'),
          .width = x.local('X'),
          .patch_h = w.local('P'),
          .patch_w = w.local('Q'),
          .n = n,
          .out_stride = n,
          .image_out_stride = n * patches};
}

std::string declines_unless_f32(const NodeView& node, const DeviceInfo&) {
  for (const TensorDesc& desc : node.ins)
    if (desc.dtype != DType::kF32 || !desc.packing.empty())
      return "takes row-major f32 only, not " + to_string(desc);
  for (const TensorDesc& desc : node.outs)
    if (desc.dtype != DType::kF32) return strf("writes f32 only, not %s", to_string(desc.dtype));
  return {};
}

std::string declines_linear(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = exact_misfit(node); !reason.empty()) return reason;
  if (node.ins[parse_product(node.op).weight].packing != kPackings[device.isa])
    return "the weight is not packed for this instruction set";
  return {};
}

std::string declines_plain_linear(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = exact_misfit(node); !reason.empty()) return reason;
  return declines_unless_f32(node, device);
}

size_t linear_scratch_bytes(const NodeView& node, const DeviceInfo& device) {
  const Product p = parse_product(node.op);
  const Shape &x = node.ins[p.x].shape, &w = node.ins[p.weight].shape;
  if (p.is_patch_embed) return patch_embed_scratch(isa_of(device), patch_args(x, w)).total(device.threads);
  const MatmulExtents e = product_extents(p, x, w);
  return linear_scratch(isa_of(device), e.m, e.n, e.k, p.norm != nullptr).total(device.threads);
}

namespace {

void run_product(const KernelArgs& args, const CpuContext& context, const Product& p, const float* packed) {
  const Shape &x = args.ins[p.x].shape(), &w = args.ins[p.weight].shape();
  const MatmulExtents e = product_extents(p, x, w);
  if (p.is_patch_embed) {
    PatchEmbedArgs patches = patch_args(x, w);
    patches.image = args.ins[p.x].as<float>();
    patches.packed = packed;
    patches.out = args.outs[0].as<float>();
    patches.epilogue = epilogue_of(args, p, e.n);
    return parallel_patch_embed(context, patches);
  }
  LinearArgs linear = linear_args(args, p, e);
  linear.packed = packed;
  parallel_linear(context, linear);
}

size_t packed_bytes(const IsaKernels& isa, const MatmulExtents& e) {
  return cpu_tiles::padded_bytes(isa.packed_elems(e.n, e.k));
}

}  // namespace

void run_linear(const KernelArgs& args) {
  const Product p = parse_product(args.op);
  run_product(args, context_of(args), p, static_cast<const float*>(args.ins[p.weight].data()));
}

size_t plain_linear_scratch_bytes(const NodeView& node, const DeviceInfo& device) {
  const Product p = parse_product(node.op);
  const MatmulExtents e = product_extents(p, node.ins[p.x].shape, node.ins[p.weight].shape);
  return packed_bytes(isa_of(device), e) + linear_scratch_bytes(node, device);
}

void run_plain_linear(const KernelArgs& args) {
  const Product p = parse_product(args.op);
  const MatmulExtents e = product_extents(p, args.ins[p.x].shape(), args.ins[p.weight].shape());
  const CpuContext context = context_of(args);
  auto* packed = reinterpret_cast<float*>(context.scratch.data());
  parallel_pack_weights(context, args.ins[p.weight].as<float>(), e.n, e.k, packed);
  run_product(args, cpu_tiles::past(context, packed_bytes(context.isa, e)), p, packed);
}

Packing weight_packing(const NodeView& node, const DeviceInfo& device) {
  const Product p = parse_product(node.op);
  if (!p.misfit.empty() || p.arithmetic != Arithmetic::kExact || node.ins[p.weight].dtype != DType::kF32)
    return {};
  const MatmulExtents e = product_extents(p, node.ins[p.x].shape, node.ins[p.weight].shape);
  const auto elems = static_cast<size_t>(isa_of(device).packed_elems(e.n, e.k));
  return {p.weight, kPackings[device.isa], e.n, elems * sizeof(float)};
}

std::string declines_pack(const NodeView& node, const DeviceInfo& device) {
  if (node.outs[0].packing != kPackings[device.isa]) return "not a packing of this instruction set";
  return {};
}

void run_pack(const KernelArgs& args) {
  const int64_t rows = args.outs[0].desc().packed_rows, columns = args.ins[0].desc().elems() / rows;
  parallel_pack_weights(context_of(args), args.ins[0].as<float>(), rows, columns,
                        static_cast<float*>(args.outs[0].data()));
}

}  // namespace vitrail::cpu
