// Launches of elementwise ops and their gradients.
#include "backend/cpu/elementwise/elementwise.h"

#include "backend/cpu/launch.h"
#include "backend/cpu/tiles.h"
#include "ops/elementwise.h"
#include "ops/gelu.h"

namespace vitrail::cpu {

namespace {

void run_gelu(const KernelArgs& args) {
  const bool tanh_form = static_cast<const GeluOp&>(args.op).tanh_form();
  parallel_activate(context_of(args), tanh_form ? Activation::kGeluTanh : Activation::kGeluErf,
                    args.ins[0].as<float>(), args.ins[0].desc().elems(), args.outs[0].as<float>());
}

void run_bias(const KernelArgs& args) {
  const int64_t width = args.ins[1].desc().elems();
  parallel_add_row(context_of(args), args.ins[0].as<float>(), args.ins[1].as<float>(),
                   args.ins[0].desc().elems() / width, width, args.outs[0].as<float>());
}

void run_scale(const KernelArgs& args) {
  const int64_t width = args.ins[1].desc().elems();
  parallel_scale_row(context_of(args), args.ins[0].as<float>(), args.ins[1].as<float>(),
                     args.ins[0].desc().elems() / width, width, args.outs[0].as<float>());
}

void run_add(const KernelArgs& args) {
  parallel_add(context_of(args), args.ins[0].as<float>(), args.ins[1].as<float>(), args.ins[0].desc().elems(),
               args.outs[0].as<float>());
}

void run_multiply(const KernelArgs& args) {
  parallel_multiply(context_of(args), args.ins[0].as<float>(),
                    static_cast<float>(static_cast<const MultiplyOp&>(args.op).factor()),
                    args.ins[0].desc().elems(), args.outs[0].as<float>());
}

std::string declines_scale_by(const NodeView& node, const DeviceInfo&) {
  if (node.ins[0].dtype != DType::kF32 || node.outs[0].dtype != DType::kF32) return "scales f32 only";
  if (node.ins[1].dtype != DType::kF64) return "takes a factor in f64 only";
  return {};
}

void run_scale_by(const KernelArgs& args) {
  parallel_multiply(context_of(args), args.ins[0].as<float>(),
                    static_cast<float>(args.ins[1].as<double>()[0]), args.ins[0].desc().elems(),
                    args.outs[0].as<float>());
}

void run_accumulate(const KernelArgs& args) {
  float* sum = args.ins[0].as<float>();
  parallel_add(context_of(args), sum, args.ins[1].as<float>(), args.ins[0].desc().elems(), sum);
}

void run_gelu_grad(const KernelArgs& args) {
  const CpuContext context = context_of(args);
  const Activation act = activation_of(static_cast<const GeluGradOp&>(args.op).tanh_form());
  const float *x = args.ins[0].as<float>(), *dy = args.ins[1].as<float>();
  float* dx = args.outs[0].as<float>();
  spread_rows(context, args.ins[0].desc().elems(), 1, [&](int64_t first, int64_t count) {
    context.isa.activate_grad(act, x + first, dy + first, count, dx + first);
  });
}

void run_tanh_grad(const KernelArgs& args) {
  const CpuContext context = context_of(args);
  const float *y = args.ins[0].as<float>(), *dy = args.ins[1].as<float>();
  float* dx = args.outs[0].as<float>();
  spread_rows(context, args.ins[0].desc().elems(), 1, [&](int64_t first, int64_t count) {
    context.isa.tanh_grad(y + first, dy + first, count, dx + first);
  });
}

// Declines a node that also sums over rows: on the CPU these sums are nodes of their own.
std::string declines_row_sums(const NodeView& node, const DeviceInfo& device) {
  return node.outs.size() > 1 ? kNoRowSums : declines_unless_f32(node, device);
}

}  // namespace

std::vector<OpKernels> elementwise_kernels() {
  return {
      {"gelu", {rows_kernel(run_gelu)}},
      {"bias", {rows_kernel(run_bias)}},
      {"scale", {rows_kernel(run_scale)}},
      {"add", {rows_kernel(run_add)}},
      {"multiply", {rows_kernel(run_multiply)}},
      {"scale_by", {kernel("vector rows", run_scale_by, declines_scale_by)}},
      {"accumulate", {rows_kernel(run_accumulate)}},
      {"gelu_grad", {kernel("vector rows", run_gelu_grad, declines_row_sums)}},
      {"tanh_grad", {rows_kernel(run_tanh_grad)}},
  };
}

}  // namespace vitrail::cpu
