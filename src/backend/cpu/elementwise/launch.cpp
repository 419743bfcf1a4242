// Launches of elementwise ops and their gradients. Sizes are read from a node once, when its kernel is
// prepared.
#include "backend/cpu/elementwise/elementwise.h"

#include "backend/cpu/launch.h"
#include "backend/cpu/tiles.h"
#include "backend/gemm_node.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/gelu.h"
#include "ops/persistent.h"
#include "ops/scale.h"

namespace vitrail::cpu {

namespace {

Prepared prepare_gelu(const NodeView& node, const DeviceInfo&) {
  const Activation act = activation_of<Activation>(static_cast<const GeluOp&>(node.op).tanh_form());
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

template <MapFunction ElementwiseTable::*function>
Prepared prepare_map(const NodeView& node, const DeviceInfo&) {
  const bool two = node.ins.size() > 1;
  return {0, [two, all = node.ins[0].elems()](const KernelArgs& args) {
            const CpuContext context = context_of(args);
            const float *a = args.ins[0].as<float>(), *b = two ? args.ins[1].as<float>() : nullptr;
            float* y = args.outs[0].as<float>();
            spread_rows(context, all, 1, [&](int64_t first, int64_t count) {
              (context.isa.*function)(a + first, two ? b + first : nullptr, count, y + first);
            });
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
  const Activation act = activation_of<Activation>(static_cast<const GeluGradOp&>(node.op).tanh_form());
  return {0, [act, all = node.ins[0].elems()](const KernelArgs& args) {
            const CpuContext context = context_of(args);
            const float *x = args.ins[0].as<float>(), *dy = args.ins[1].as<float>();
            float* dx = args.outs[0].as<float>();
            spread_rows(context, all, 1, [&](int64_t first, int64_t count) {
              context.isa.activate_grad(act, x + first, dy + first, count, dx + first);
            });
          }};
}

// Declines a node that also sums over rows: on the CPU these sums are nodes of their own.
std::string declines_row_sums(const NodeView& node, const DeviceInfo& device) {
  return node.outs.size() > 1 ? kNoRowSums : declines_unless_f32(node, device);
}

}  // namespace

std::vector<OpKernels> elementwise_kernels() {
  return {row<GeluOp>({rows_kernel(prepare_gelu)}),
          row<BiasOp>({rows_kernel(prepare_with_row<parallel_add_row>)}),
          row<ScaleOp>({rows_kernel(prepare_with_row<parallel_scale_row>)}),
          row<MultiplyOp>({rows_kernel(prepare_multiply)}),
          row<ScaleByOp>({rows_kernel(prepare_scale_by, declines_scale_by)}),
          row<AccumulateOp>({rows_kernel(prepare_accumulate)}),
          row<GeluGradOp>({rows_kernel(prepare_gelu_grad, declines_row_sums)}),
#define VT_MAP_ROW(op, function) row<op>({rows_kernel(prepare_map<&ElementwiseTable::function>)}),
          VT_MAPS(VT_MAP_ROW)};
}

}  // namespace vitrail::cpu
