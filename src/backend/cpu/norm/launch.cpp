// Launches of layernorm, softmax, the norm of queries and keys, and their gradients.
#include <algorithm>
#include <cstring>

#include "backend/cpu/launch.h"
#include "backend/cpu/norm/norm.h"
#include "backend/cpu/tiles.h"
#include "ops/layernorm.h"
#include "ops/qk_norm.h"
#include "ops/residual_rows.h"

namespace vitrail::cpu {

namespace {

void run_layernorm(const KernelArgs& args) {
  const int64_t width = args.ins[1].desc().elems();
  parallel_layernorm(context_of(args),
                     {.x = args.ins[0].as<float>(),
                      .x_stride = width,
                      .y = args.outs[0].as<float>(),
                      .y_stride = width,
                      .rows = args.ins[0].desc().elems() / width,
                      .width = width,
                      .gamma = args.ins[1].as<float>(),
                      .beta = args.ins[2].as<float>(),
                      .eps = static_cast<float>(static_cast<const LayernormOp&>(args.op).eps())});
}

// The members take turns on a few rows at a time, which stay in the nearest cache: the bits are those of one
// after another over all rows.
void run_residual_rows(const KernelArgs& args) {
  const auto& op = static_cast<const ResidualRowsOp&>(args.op);
  const CpuContext context = context_of(args);
  const int64_t width = args.ins[0].shape().local('D'), rows = args.ins[0].desc().elems() / width;
  const int64_t few = std::max<int64_t>(1, 2048 / width);
  const auto input = [&](size_t i, int64_t at = 0) { return args.ins[i].as<float>() + at; };
  const auto pass = [&](int64_t row, int64_t count) {
    const int64_t at = row * width;
    float* sum = args.outs[0].as<float>() + at;
    const float* x = input(0, at);
    if (op.form().bias) context.isa.add_row(x, input(op.bias_at()), count, width, sum), x = sum;
    if (op.form().scale) context.isa.scale_row(x, input(op.scale_at()), count, width, sum), x = sum;
    context.isa.add(x, input(op.residual_at(), at), count * width, sum);
    if (!op.form().norm) return;
    context.isa.layernorm_rows({.x = sum,
                                .x_stride = width,
                                .y = args.outs[1].as<float>() + at,
                                .y_stride = width,
                                .rows = count,
                                .width = width,
                                .gamma = input(op.norm_at()),
                                .beta = input(op.norm_at() + 1),
                                .eps = static_cast<float>(op.form().eps)});
  };
  spread_rows(context, rows, width, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; row += few) pass(row, std::min(few, first + count - row));
  });
}

void run_qk_norm(const KernelArgs& args) {
  const Shape& shape = args.ins[0].shape();
  const int64_t heads = shape.local('H'), width = shape.local('E'), part = heads * width;
  const CpuContext context = context_of(args);
  const auto eps = static_cast<float>(static_cast<const QkNormOp&>(args.op).eps());
  const float* x = args.ins[0].as<float>();
  float* y = args.outs[0].as<float>();
  const auto token = [&](int64_t row, int) {
    for (int64_t t = 0; t < 2; ++t)
      context.isa.layernorm_rows({.x = x + (3 * row + t) * part,
                                  .x_stride = width,
                                  .y = y + (3 * row + t) * part,
                                  .y_stride = width,
                                  .rows = heads,
                                  .width = width,
                                  .gamma = args.ins[1 + 2 * t].as<float>(),
                                  .beta = args.ins[2 + 2 * t].as<float>(),
                                  .eps = eps});
    if (x != y) std::memcpy(y + (3 * row + 2) * part, x + (3 * row + 2) * part, part * sizeof(float));
  };
  const int64_t tokens = shape.local('B') * shape.local('N');
  if (context.parallel.softmax)
    context.pool.run(tokens, token);
  else
    for (int64_t row = 0; row < tokens; ++row) token(row, 0);
}

void run_softmax(const KernelArgs& args) {
  const int64_t width = args.ins[0].shape().local('K');
  parallel_softmax(context_of(args), args.ins[0].as<float>(), args.ins[0].desc().elems() / width, width,
                   args.outs[0].as<float>());
}

size_t layernorm_grad_scratch_bytes(const NodeView& node, const DeviceInfo& device) {
  const int64_t width = node.ins[1].elems();
  return layernorm_grad_scratch(node.ins[0].elems() / width, width, node.outs.size() > 1)
      .total(device.threads);
}

void run_layernorm_grad(const KernelArgs& args) {
  const int64_t width = args.ins[1].desc().elems();
  NormGradRows rows{.x = args.ins[0].as<float>(),
                    .dy = args.ins[2].as<float>(),
                    .dx = args.outs[0].as<float>(),
                    .stride = width,
                    .rows = args.ins[0].desc().elems() / width,
                    .width = width,
                    .gamma = args.ins[1].as<float>(),
                    .eps = static_cast<float>(static_cast<const LayernormGradOp&>(args.op).eps())};
  if (args.outs.size() > 1) rows.dgamma = args.outs[1].as<float>(), rows.dbeta = args.outs[2].as<float>();
  if (args.ins.size() > 3) rows.residual = args.ins[3].as<float>();
  parallel_layernorm_grad(context_of(args), rows);
}

size_t qk_norm_grad_scratch_bytes(const NodeView& node, const DeviceInfo& device) {
  const Shape& qkv = node.ins[0].shape;
  return qk_norm_grad_scratch(qkv.local('B') * qkv.local('N'), qkv.local('E')).total(device.threads);
}

void run_qk_norm_grad(const KernelArgs& args) {
  const Shape& qkv = args.ins[0].shape();
  QkNormGradArgs grad{.qkv = args.ins[0].as<float>(),
                      .dy = args.ins[3].as<float>(),
                      .gamma = {args.ins[1].as<float>(), args.ins[2].as<float>()},
                      .dqkv = args.outs[0].as<float>(),
                      .tokens = qkv.local('B') * qkv.local('N'),
                      .heads = qkv.local('H'),
                      .head_size = qkv.local('E'),
                      .eps = static_cast<float>(static_cast<const QkNormGradOp&>(args.op).eps())};
  for (size_t i = 1; i < args.outs.size(); ++i) grad.parameters[i - 1] = args.outs[i].as<float>();
  parallel_qk_norm_grad(context_of(args), grad);
}

// Declines a node that also sums over rows: on the CPU these sums are nodes of their own.
std::string declines_row_sums(const NodeView& node, const DeviceInfo& device) {
  if (static_cast<const LayernormGradOp&>(node.op).row_sums()) return kNoRowSums;
  return declines_unless_f32(node, device);
}

}  // namespace

std::vector<OpKernels> norm_kernels() {
  return {
      {"layernorm", {rows_kernel(run_layernorm)}},
      {"residual_rows", {rows_kernel(run_residual_rows)}},
      {"qk_norm", {rows_kernel(run_qk_norm)}},
      {"softmax", {rows_kernel(run_softmax)}},
      {"layernorm_grad",
       {kernel("vector rows", run_layernorm_grad, declines_row_sums, layernorm_grad_scratch_bytes)}},
      {"qk_norm_grad", {rows_kernel(run_qk_norm_grad, qk_norm_grad_scratch_bytes)}},
  };
}

}  // namespace vitrail::cpu
