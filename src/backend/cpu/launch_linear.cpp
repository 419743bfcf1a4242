// Products, alone or fused with their neighbours, with weights packed at load or on each call.
#include "backend/cpu/lane.h"
#include "backend/cpu/launch.h"
#include "backend/cpu/tiles.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/linear.h"

namespace vitrail::cpu {

namespace {

// Where the parts of a product stand among a node's inputs; -1: absent.
struct Product {
  bool is_patch_embed = false;
  const LayernormOp* norm = nullptr;
  const GeluOp* gelu = nullptr;
  int x = -1, weight = -1, gamma = -1, beta = -1, bias = -1, scale = -1, residual = -1;
  std::string misfit;  // why the node is not a product of this form
};

// The input a two-input member reads besides the value flowing through the fused node.
int other_source(const FusedOp::Member& member) {
  return member.sources[0] >= 0 ? member.sources[0] : member.sources[1];
}

void take_member(Product& p, const FusedOp::Member& member) {
  const std::string_view kind = member.op->kind();
  const bool started = p.weight >= 0;
  if (kind == "layernorm" && !started && !p.norm) {
    p.norm = static_cast<const LayernormOp*>(member.op.get());
    p.x = member.sources[0], p.gamma = member.sources[1], p.beta = member.sources[2];
  } else if ((kind == "linear" || kind == "patch_embed") && !started) {
    p.is_patch_embed = kind == "patch_embed";
    if (member.sources[0] >= 0) p.x = member.sources[0];
    p.weight = member.sources[1];
  } else if (kind == "bias" && started && p.bias < 0 && !p.gelu && p.scale < 0 && p.residual < 0) {
    p.bias = other_source(member);
  } else if (kind == "gelu" && started && !p.gelu && p.scale < 0 && p.residual < 0) {
    p.gelu = static_cast<const GeluOp*>(member.op.get());
  } else if (kind == "scale" && started && p.scale < 0 && p.residual < 0) {
    p.scale = other_source(member);
  } else if (kind == "add" && started && p.residual < 0) {
    p.residual = other_source(member);
  } else {
    p.misfit = "no place for " + std::string(kind) + " around a product";
  }
}

Product parse(const Op& op) {
  Product p;
  if (const auto* fused = dynamic_cast<const FusedOp*>(&op)) {
    for (const FusedOp::Member& member : fused->members())
      if (p.misfit.empty()) take_member(p, member);
    if (p.misfit.empty() && p.weight < 0) p.misfit = "no product in it";
  } else {
    p.x = 0, p.weight = 1, p.is_patch_embed = op.kind() == "patch_embed";
  }
  return p;
}

// A weight as a matrix [n, k]: for the patch embedding every dim but the first is contracted, for a linear
// those it shares with x.
MatmulExtents extents(const Product& p, const Shape& x, const Shape& w) {
  if (!p.is_patch_embed) return linear_extents(x, w);
  const int64_t n = w.local('D'), k = w.elems() / n;
  return {x.elems() / k, n, k};
}

Epilogue epilogue_of(const KernelArgs& args, const Product& p, int64_t n) {
  const auto floats = [&](int input) { return input < 0 ? nullptr : args.ins[input].as<float>(); };
  Epilogue e{
      .bias = floats(p.bias), .scale = floats(p.scale), .residual = floats(p.residual), .residual_stride = n};
  if (p.gelu) e.act = p.gelu->tanh_form() ? Activation::kGeluTanh : Activation::kGeluErf;
  return e;
}

// Why a node is not a product this file can run, wherever its weight comes from.
std::string misfit(const NodeView& node) {
  const Product p = parse(node.op);
  if (!p.misfit.empty()) return p.misfit;
  if (p.is_patch_embed && (p.norm || p.residual >= 0))
    return "a patch embedding takes bias, gelu and scale only";
  for (const TensorDesc& desc : node.ins)
    if (desc.dtype != DType::kF32) return strf("takes f32 only, not %s", to_string(desc.dtype));
  const MatmulExtents e = extents(p, node.ins[p.x].shape, node.ins[p.weight].shape);
  for (int row : {p.bias, p.scale})
    if (row >= 0 && node.ins[row].elems() != e.n)
      return "a bias or scale does not cover the product's outputs";
  if (p.norm && node.ins[p.gamma].elems() != e.k)
    return "the layernorm does not cover what the product contracts";
  return {};
}

constexpr std::string_view kPackings[] = {"panels-baseline", "panels-avx2", "panels-avx512"};

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
  if (std::string reason = misfit(node); !reason.empty()) return reason;
  if (node.ins[parse(node.op).weight].packing != kPackings[device.isa])
    return "the weight is not packed for this instruction set";
  return {};
}

std::string declines_plain_linear(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = misfit(node); !reason.empty()) return reason;
  return declines_unless_f32(node, device);
}

size_t linear_scratch_bytes(const NodeView& node, const DeviceInfo& device) {
  const Product p = parse(node.op);
  const Shape &x = node.ins[p.x].shape, &w = node.ins[p.weight].shape;
  if (p.is_patch_embed) return patch_embed_scratch(isa_of(device), patch_args(x, w)).total(device.threads);
  const MatmulExtents e = extents(p, x, w);
  return linear_scratch(isa_of(device), e.m, e.n, e.k, p.norm != nullptr).total(device.threads);
}

namespace {

void run_product(const KernelArgs& args, const CpuLane& lane, const Product& p, const float* packed) {
  const Shape &x = args.ins[p.x].shape(), &w = args.ins[p.weight].shape();
  const MatmulExtents e = extents(p, x, w);
  if (p.is_patch_embed) {
    PatchEmbedArgs patches = patch_args(x, w);
    patches.image = args.ins[p.x].as<float>();
    patches.packed = packed;
    patches.out = args.outs[0].as<float>();
    patches.epilogue = epilogue_of(args, p, e.n);
    return parallel_patch_embed(lane, patches);
  }
  LinearArgs linear{.a = args.ins[p.x].as<float>(),
                    .lda = e.k,
                    .packed = packed,
                    .c = args.outs[0].as<float>(),
                    .ldc = e.n,
                    .m = e.m,
                    .n = e.n,
                    .k = e.k,
                    .norm = {},
                    .epilogue = epilogue_of(args, p, e.n)};
  if (p.norm)
    linear.norm = {args.ins[p.gamma].as<float>(), args.ins[p.beta].as<float>(),
                   static_cast<float>(p.norm->eps())};
  parallel_linear(lane, linear);
}

size_t packed_bytes(const IsaKernels& isa, const MatmulExtents& e) {
  return cpu_tiles::padded_bytes(isa.packed_elems(e.n, e.k));
}

}  // namespace

void run_linear(const KernelArgs& args) {
  const Product p = parse(args.op);
  run_product(args, lane_of(args), p, static_cast<const float*>(args.ins[p.weight].data()));
}

size_t plain_linear_scratch_bytes(const NodeView& node, const DeviceInfo& device) {
  const Product p = parse(node.op);
  const MatmulExtents e = extents(p, node.ins[p.x].shape, node.ins[p.weight].shape);
  return packed_bytes(isa_of(device), e) + linear_scratch_bytes(node, device);
}

void run_plain_linear(const KernelArgs& args) {
  const Product p = parse(args.op);
  const MatmulExtents e = extents(p, args.ins[p.x].shape(), args.ins[p.weight].shape());
  const CpuLane lane = lane_of(args);
  auto* packed = reinterpret_cast<float*>(lane.scratch.data());
  parallel_pack_weights(lane, args.ins[p.weight].as<float>(), e.n, e.k, packed);
  run_product(args, cpu_tiles::past(lane, packed_bytes(lane.isa, e)), p, packed);
}

Packing weight_packing(const NodeView& node, const DeviceInfo& device) {
  const Product p = parse(node.op);
  if (!p.misfit.empty() || node.ins[p.weight].dtype != DType::kF32) return {};
  const MatmulExtents e = extents(p, node.ins[p.x].shape, node.ins[p.weight].shape);
  const auto elems = static_cast<size_t>(isa_of(device).packed_elems(e.n, e.k));
  return {p.weight, kPackings[device.isa], e.n, elems * sizeof(float)};
}

std::string declines_pack(const NodeView& node, const DeviceInfo& device) {
  if (node.outs[0].packing != kPackings[device.isa]) return "not a packing of this instruction set";
  return {};
}

void run_pack(const KernelArgs& args) {
  const int64_t rows = args.outs[0].desc().packed_rows, columns = args.ins[0].desc().elems() / rows;
  parallel_pack_weights(lane_of(args), args.ins[0].as<float>(), rows, columns,
                        static_cast<float*>(args.outs[0].data()));
}

}  // namespace vitrail::cpu
