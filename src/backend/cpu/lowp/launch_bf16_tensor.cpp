// Launches of GEMMs of bf16 tensors and their gradients, where the instruction set has bf16 dot products.
#include "backend/cpu/gemm/gemm_node.h"
#include "backend/cpu/launch.h"
#include "backend/cpu/lowp/bf16_tensor.h"
#include "ops/fused.h"
#include "ops/linear.h"
#include "ops/persistent.h"

namespace vitrail::cpu {

namespace {

std::string unsupported_bf16(const NodeView& node, const DeviceInfo& device, int first, int second) {
  if (!isa_of(device).bf16_tensors.tile) return "this instruction set has no bf16 GEMMs";
  for (int i : {first, second})
    if (node.ins[i].dtype != DType::kBF16 || !node.ins[i].packing.empty())
      return "takes row-major bf16 only, not " + to_string(node.ins[i]);
  return {};
}

std::string unsupported_depth(int64_t k) {
  return k % kBf16Depth ? strf("sums over %ld values, not a multiple of %ld", static_cast<long>(k),
                               static_cast<long>(kBf16Depth))
                        : "";
}

// The inputs of a weight gradient, and the input that it is added to; -1: it is written to the output.
struct WeightGrad {
  int x = -1, dy = -1, target = -1;
};

WeightGrad parse_weight_grad(const Op& op) {
  if (is<LinearDwOp>(op)) return {0, 1, -1};
  const auto* fused = dynamic_cast<const FusedOp*>(&op);
  if (!fused || fused->members().size() != 2) return {};
  const FusedOp::Member &gemm = fused->members()[0], &sum = fused->members()[1];
  if (!is<LinearDwOp>(*gemm.op) || !is<AccumulateOp>(*sum.op) || sum.sources[1] != made_by(0)) return {};
  return {gemm.sources[0].input(), gemm.sources[1].input(), sum.sources[0].input()};
}

std::string declines_bf16_linear(const NodeView& node, const DeviceInfo& device) {
  const GemmNode p = parse_gemm(node.op);
  if (!p.unsupported.empty()) return p.unsupported;
  if (p.is_patch_embed || p.norm || p.gelu || p.scale >= 0) return "takes bias and residual alone";
  if (node.outs.size() > 1) return "makes one result";
  if (p.arithmetic != Arithmetic::kExact) return "takes the arithmetic of its tensors";
  if (std::string reason = unsupported_bf16(node, device, p.x, p.weight); !reason.empty()) return reason;
  for (int row : {p.bias, p.residual})
    if (row >= 0 && node.ins[row].dtype != DType::kF32) return "takes bias and residual in f32";
  if (node.outs[0].dtype != (p.residual >= 0 ? DType::kF32 : DType::kBF16))
    return strf("does not write %s", to_string(node.outs[0].dtype));
  const MatmulExtents e = gemm_extents(p, node.ins[p.x].shape, node.ins[p.weight].shape);
  if (p.bias >= 0 && node.ins[p.bias].elems() != e.n) return "the bias does not cover the GEMM's outputs";
  if (p.residual >= 0 && node.ins[p.residual].elems() != e.m * e.n)
    return "the residual does not cover the GEMM";
  return unsupported_depth(e.k);
}

Prepared prepare_bf16_linear(const NodeView& node, const DeviceInfo& device) {
  const GemmNode p = parse_gemm(node.op);
  const MatmulExtents e = gemm_extents(p, node.ins[p.x].shape, node.ins[p.weight].shape);
  const size_t bytes = bf16_linear_scratch(isa_of(device), e.m, e.n, e.k).total(device.threads);
  return {bytes, [p, e](const KernelArgs& args) {
            const auto floats = [&](int input) { return input < 0 ? nullptr : args.ins[input].as<float>(); };
            Bf16LinearArgs gemm{.a = static_cast<const uint16_t*>(args.ins[p.x].data()),
                                .w = static_cast<const uint16_t*>(args.ins[p.weight].data()),
                                .m = e.m,
                                .n = e.n,
                                .k = e.k,
                                .bias = floats(p.bias),
                                .residual = floats(p.residual)};
            if (p.residual >= 0)
              gemm.wide_out = args.outs[0].as<float>();
            else
              gemm.out = static_cast<uint16_t*>(args.outs[0].data());
            parallel_bf16_linear(context_of(args), gemm);
          }};
}

std::string declines_bf16_linear_dx(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = unsupported_bf16(node, device, 0, 1); !reason.empty()) return reason;
  if (node.outs[0].dtype != DType::kBF16) return strf("does not write %s", to_string(node.outs[0].dtype));
  return unsupported_depth(linear_dx_extents(node.ins[0].shape, node.ins[1].shape).n);
}

// dx[m, k] = dy[m, n] . w[n, k]: to the GEMM w is a weight of k outputs that is stored by its inputs.
Prepared prepare_bf16_linear_dx(const NodeView& node, const DeviceInfo& device) {
  const MatmulExtents e = linear_dx_extents(node.ins[0].shape, node.ins[1].shape);
  const size_t bytes = bf16_linear_scratch(isa_of(device), e.m, e.k, e.n).total(device.threads);
  return {bytes, [e](const KernelArgs& args) {
            parallel_bf16_linear(context_of(args), {.a = static_cast<const uint16_t*>(args.ins[0].data()),
                                                    .w = static_cast<const uint16_t*>(args.ins[1].data()),
                                                    .w_by_inputs = true,
                                                    .m = e.m,
                                                    .n = e.k,
                                                    .k = e.n,
                                                    .out = static_cast<uint16_t*>(args.outs[0].data())});
          }};
}

std::string declines_bf16_linear_dw(const NodeView& node, const DeviceInfo& device) {
  const WeightGrad grad = parse_weight_grad(node.op);
  if (grad.x < 0) return "not the gradient of a GEMM's weight";
  if (std::string reason = unsupported_bf16(node, device, grad.x, grad.dy); !reason.empty()) return reason;
  const TensorDesc& target = grad.target < 0 ? node.outs[0] : node.ins[grad.target];
  return target.dtype == DType::kF32 ? "" : strf("sums in f32 only, not %s", to_string(target.dtype));
}

Prepared prepare_bf16_linear_dw(const NodeView& node, const DeviceInfo& device) {
  const WeightGrad grad = parse_weight_grad(node.op);
  const MatmulExtents e = linear_dw_extents(node.ins[grad.x].shape, node.ins[grad.dy].shape);
  const ScratchNeed need = bf16_weight_grad_scratch(isa_of(device), e.m, e.n, e.k, grad.target >= 0);
  return {need.total(device.threads), [grad, e](const KernelArgs& args) {
            const TensorView& target = grad.target < 0 ? args.outs[0] : args.ins[grad.target];
            parallel_bf16_weight_grad(context_of(args),
                                      {.x = static_cast<const uint16_t*>(args.ins[grad.x].data()),
                                       .dy = static_cast<const uint16_t*>(args.ins[grad.dy].data()),
                                       .dw = target.as<float>(),
                                       .m = e.m,
                                       .n = e.n,
                                       .k = e.k,
                                       .add = grad.target >= 0});
          }};
}

}  // namespace

Kernel bf16_tensor_gemm() {
  return {.name = "bf16 tiles",
          .declines = declines_bf16_linear,
          .prepare = prepare_bf16_linear,
          .rounding = [](const NodeView&) { return Rounding{.members = true}; }};
}

Kernel bf16_tensor_input_grad() {
  return {.name = "bf16 tiles", .declines = declines_bf16_linear_dx, .prepare = prepare_bf16_linear_dx};
}

Kernel bf16_tensor_weight_grad() {
  return {
      .name = "bf16 tiles by chunks", .declines = declines_bf16_linear_dw, .prepare = prepare_bf16_linear_dw};
}

}  // namespace vitrail::cpu
