// Launches of layernorm, softmax, the norm of queries and keys, and their gradients. Sizes are read from a
// node once, when its kernel is prepared.
#include <algorithm>
#include <cstring>
#include <optional>

#include "backend/cpu/elementwise/dropping.h"
#include "backend/cpu/launch.h"
#include "backend/cpu/norm/norm.h"
#include "backend/cpu/tiles.h"
#include "ops/layernorm.h"
#include "ops/qk_norm.h"
#include "ops/residual_rows.h"
#include "ops/softmax.h"

namespace vitrail::cpu {

namespace {

// Rows of a layernorm, still without addresses.
NormRows norm_sizes(int64_t elems, int64_t width, double eps) {
  return {.x_stride = width,
          .y_stride = width,
          .rows = elems / width,
          .width = width,
          .eps = static_cast<float>(eps)};
}

Prepared prepare_layernorm(const NodeView& node, const DeviceInfo&) {
  const NormRows sizes =
      norm_sizes(node.ins[0].elems(), node.ins[1].elems(), static_cast<const LayernormOp&>(node.op).eps());
  return {0, [sizes](const KernelArgs& args) {
            NormRows rows = sizes;
            rows.x = args.ins[0].as<float>();
            rows.y = args.outs[0].as<float>();
            rows.gamma = args.ins[1].as<float>();
            rows.beta = args.ins[2].as<float>();
            parallel_layernorm(context_of(args), rows);
          }};
}

// The members take turns on a few rows at a time, which stay in the nearest cache: the bits are those of one
// after another over all rows.
struct ResidualRows {
  ResidualRowsOp op;
  int64_t width, rows, few;
  std::optional<Dropping> elements, images;

  explicit ResidualRows(const NodeView& node)
      : op(static_cast<const ResidualRowsOp&>(node.op)),
        width(node.ins[0].shape.local('D')),
        rows(node.ins[0].elems() / width),
        few(std::max<int64_t>(1, 2048 / width)) {
    if (op.form().elements) elements.emplace(*op.form().elements, node.ins[0].shape);
    if (op.form().images) images.emplace(*op.form().images, node.ins[0].shape);
  }

  void operator()(const KernelArgs& args) const {
    const CpuContext context = context_of(args);
    spread_rows(context, rows, width, [&](int64_t first, int64_t count) {
      for (int64_t row = first; row < first + count; row += few)
        pass(args, context, row * width, std::min(few, first + count - row));
    });
  }
  void pass(const KernelArgs& args, const CpuContext& context, int64_t at, int64_t count) const {
    const auto input = [&](size_t i, int64_t from = 0) { return args.ins[i].as<float>() + from; };
    float* sum = args.outs[0].as<float>() + at;
    const float* x = input(0, at);
    const auto drop = [&](const std::optional<Dropping>& dropping) {
      if (!dropping) return;
      (*dropping)(context, args.ins.back(), {at, count * width}, x, sum);
      x = sum;
    };
    if (op.form().bias) {
      context.isa.add_row(x, input(op.bias_at()), count, width, sum);
      x = sum;
    }
    drop(elements);
    if (op.form().scale) {
      context.isa.scale_row(x, input(op.scale_at()), count, width, sum);
      x = sum;
    }
    drop(images);
    context.isa.add(x, input(op.residual_at(), at), count * width, sum);
    if (!op.form().norm) return;
    NormRows norm = norm_sizes(count * width, width, op.form().eps);
    norm.x = sum;
    norm.y = args.outs[1].as<float>() + at;
    norm.gamma = input(op.norm_at());
    norm.beta = input(op.norm_at() + 1);
    context.isa.layernorm_rows(norm);
  }
};

Prepared prepare_residual_rows(const NodeView& node, const DeviceInfo&) {
  return {0, ResidualRows(node)};
}

// The counters of what is dropped are integers.
std::string declines_residual_rows(const NodeView& node, const DeviceInfo& device) {
  NodeView rows = node;
  if (static_cast<const ResidualRowsOp&>(node.op).drops()) rows.ins = node.ins.first(node.ins.size() - 1);
  return declines_unless_f32(rows, device);
}

Prepared prepare_qk_norm(const NodeView& node, const DeviceInfo&) {
  const Shape& shape = node.ins[0].shape;
  const int64_t heads = shape.local('H'), width = shape.local('E'), part = heads * width;
  const int64_t tokens = shape.local('B') * shape.local('N');
  const NormRows sizes = norm_sizes(part, width, static_cast<const QkNormOp&>(node.op).eps());
  return {0, [sizes, part, tokens](const KernelArgs& args) {
            const CpuContext context = context_of(args);
            const float* x = args.ins[0].as<float>();
            float* y = args.outs[0].as<float>();
            spread(context, context.parallel.softmax, tokens, [&](int64_t row, int) {
              for (int64_t t = 0; t < 2; ++t) {
                NormRows rows = sizes;
                rows.x = x + (3 * row + t) * part;
                rows.y = y + (3 * row + t) * part;
                rows.gamma = args.ins[1 + 2 * t].as<float>();
                rows.beta = args.ins[2 + 2 * t].as<float>();
                context.isa.layernorm_rows(rows);
              }
              const int64_t value = (3 * row + 2) * part;
              if (x != y) std::memcpy(y + value, x + value, static_cast<size_t>(part) * sizeof(float));
            });
          }};
}

Prepared prepare_softmax(const NodeView& node, const DeviceInfo&) {
  const int64_t width = node.ins[0].shape.local('K'), rows = node.ins[0].elems() / width;
  return {0, [rows, width](const KernelArgs& args) {
            parallel_softmax(context_of(args), args.ins[0].as<float>(), rows, width,
                             args.outs[0].as<float>());
          }};
}

Prepared prepare_layernorm_grad(const NodeView& node, const DeviceInfo& device) {
  const int64_t width = node.ins[1].elems();
  const NormGradRows sizes{.stride = width,
                           .rows = node.ins[0].elems() / width,
                           .width = width,
                           .eps = static_cast<float>(static_cast<const LayernormGradOp&>(node.op).eps())};
  const ScratchNeed need = layernorm_grad_scratch(sizes.rows, width, node.outs.size() > 1);
  return {need.total(device.threads), [sizes](const KernelArgs& args) {
            NormGradRows rows = sizes;
            rows.x = args.ins[0].as<float>();
            rows.dy = args.ins[2].as<float>();
            rows.dx = args.outs[0].as<float>();
            rows.gamma = args.ins[1].as<float>();
            if (args.outs.size() > 1) {
              rows.dgamma = args.outs[1].as<float>();
              rows.dbeta = args.outs[2].as<float>();
            }
            if (args.ins.size() > 3) rows.residual = args.ins[3].as<float>();
            parallel_layernorm_grad(context_of(args), rows);
          }};
}

Prepared prepare_qk_norm_grad(const NodeView& node, const DeviceInfo& device) {
  const Shape& qkv = node.ins[0].shape;
  const QkNormGradArgs sizes{.tokens = qkv.local('B') * qkv.local('N'),
                             .heads = qkv.local('H'),
                             .head_size = qkv.local('E'),
                             .eps = static_cast<float>(static_cast<const QkNormGradOp&>(node.op).eps())};
  const ScratchNeed need = qk_norm_grad_scratch(sizes.tokens, sizes.head_size);
  return {need.total(device.threads), [sizes](const KernelArgs& args) {
            QkNormGradArgs grad = sizes;
            grad.qkv = args.ins[0].as<float>();
            grad.dy = args.ins[3].as<float>();
            grad.gamma[0] = args.ins[1].as<float>();
            grad.gamma[1] = args.ins[2].as<float>();
            grad.dqkv = args.outs[0].as<float>();
            for (size_t i = 1; i < args.outs.size(); ++i) grad.parameters[i - 1] = args.outs[i].as<float>();
            parallel_qk_norm_grad(context_of(args), grad);
          }};
}

// Declines a node that also sums over rows or writes a copy: on the CPU these are nodes of their own.
std::string declines_row_sums(const NodeView& node, const DeviceInfo& device) {
  const auto& op = static_cast<const LayernormGradOp&>(node.op);
  if (op.row_sums()) return kNoRowSums;
  if (op.copy()) return "writes one result";
  return declines_unless_f32(node, device);
}

}  // namespace

std::vector<OpKernels> norm_kernels() {
  return {
      row<LayernormOp>({rows_kernel(prepare_layernorm)}),
      row<ResidualRowsOp>({rows_kernel(prepare_residual_rows, declines_residual_rows)}),
      row<QkNormOp>({rows_kernel(prepare_qk_norm)}),
      row<SoftmaxOp>({rows_kernel(prepare_softmax)}),
      row<LayernormGradOp>({rows_kernel(prepare_layernorm_grad, declines_row_sums)}),
      row<QkNormGradOp>({rows_kernel(prepare_qk_norm_grad)}),
  };
}

}  // namespace vitrail::cpu
