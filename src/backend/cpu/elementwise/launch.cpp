// Launches of elementwise ops and their gradients. Sizes are read from a node once, when its kernel is
// prepared.
#include "backend/cpu/elementwise/elementwise.h"

#include "backend/cpu/launch.h"
#include "backend/cpu/tiles.h"
#include "ops/elementwise.h"
#include "ops/gelu.h"

namespace vitrail::cpu {

namespace {

Prepared prepare_gelu(const NodeView& node, const DeviceInfo&) {
  const Activation act = activation_of(static_cast<const GeluOp&>(node.op).tanh_form());
  return {0, [act, count = node.ins[0].elems()](const KernelArgs& args) {
            parallel_activate(context_of(args), act, args.ins[0].as<float>(), count,
                              args.outs[0].as<float>());
          }};
}

// An op of each row of the first input with the second one, which is a row.
template <void (*run)(const CpuContext&, const float*, const float*, int64_t, int64_t, float*)>
Prepared prepare_with_row(const NodeView& node, const DeviceInfo&) {
  const int64_t width = node.ins[1].elems(), rows = node.ins[0].elems() / width;
  return {0, [rows, width](const KernelArgs& args) {
            run(context_of(args), args.ins[0].as<float>(), args.ins[1].as<float>(), rows, width,
                args.outs[0].as<float>());
          }};
}

Prepared prepare_add(const NodeView& node, const DeviceInfo&) {
  return {0, [count = node.ins[0].elems()](const KernelArgs& args) {
            parallel_add(context_of(args), args.ins[0].as<float>(), args.ins[1].as<float>(), count,
                         args.outs[0].as<float>());
          }};
}

Prepared prepare_multiply(const NodeView& node, const DeviceInfo&) {
  const auto factor = static_cast<float>(static_cast<const MultiplyOp&>(node.op).factor());
  return {0, [factor, count = node.ins[0].elems()](const KernelArgs& args) {
            parallel_multiply(context_of(args), args.ins[0].as<float>(), factor, count,
                              args.outs[0].as<float>());
          }};
}

std::string declines_scale_by(const NodeView& node, const DeviceInfo&) {
  if (node.ins[0].dtype != DType::kF32 || node.outs[0].dtype != DType::kF32) return "scales f32 only";
  if (node.ins[1].dtype != DType::kF64) return "takes a factor in f64 only";
  return {};
}

Prepared prepare_scale_by(const NodeView& node, const DeviceInfo&) {
  return {0, [count = node.ins[0].elems()](const KernelArgs& args) {
            parallel_multiply(context_of(args), args.ins[0].as<float>(),
                              static_cast<float>(args.ins[1].as<double>()[0]), count,
                              args.outs[0].as<float>());
          }};
}

Prepared prepare_accumulate(const NodeView& node, const DeviceInfo&) {
  return {0, [count = node.ins[0].elems()](const KernelArgs& args) {
            float* sum = args.ins[0].as<float>();
            parallel_add(context_of(args), sum, args.ins[1].as<float>(), count, sum);
          }};
}

Prepared prepare_gelu_grad(const NodeView& node, const DeviceInfo&) {
  const Activation act = activation_of(static_cast<const GeluGradOp&>(node.op).tanh_form());
  return {0, [act, all = node.ins[0].elems()](const KernelArgs& args) {
            const CpuContext context = context_of(args);
            const float *x = args.ins[0].as<float>(), *dy = args.ins[1].as<float>();
            float* dx = args.outs[0].as<float>();
            spread_rows(context, all, 1, [&](int64_t first, int64_t count) {
              context.isa.activate_grad(act, x + first, dy + first, count, dx + first);
            });
          }};
}

Prepared prepare_tanh_grad(const NodeView& node, const DeviceInfo&) {
  return {0, [all = node.ins[0].elems()](const KernelArgs& args) {
            const CpuContext context = context_of(args);
            const float *y = args.ins[0].as<float>(), *dy = args.ins[1].as<float>();
            float* dx = args.outs[0].as<float>();
            spread_rows(context, all, 1, [&](int64_t first, int64_t count) {
              context.isa.tanh_grad(y + first, dy + first, count, dx + first);
            });
          }};
}

// Declines a node that also sums over rows: on the CPU these sums are nodes of their own.
std::string declines_row_sums(const NodeView& node, const DeviceInfo& device) {
  return node.outs.size() > 1 ? kNoRowSums : declines_unless_f32(node, device);
}

}  // namespace

std::vector<OpKernels> elementwise_kernels() {
  return {
      {"gelu", {rows_kernel(prepare_gelu)}},
      {"bias", {rows_kernel(prepare_with_row<parallel_add_row>)}},
      {"scale", {rows_kernel(prepare_with_row<parallel_scale_row>)}},
      {"add", {rows_kernel(prepare_add)}},
      {"multiply", {rows_kernel(prepare_multiply)}},
      {"scale_by", {rows_kernel(prepare_scale_by, declines_scale_by)}},
      {"accumulate", {rows_kernel(prepare_accumulate)}},
      {"gelu_grad", {rows_kernel(prepare_gelu_grad, declines_row_sums)}},
      {"tanh_grad", {rows_kernel(prepare_tanh_grad)}},
  };
}

}  // namespace vitrail::cpu
