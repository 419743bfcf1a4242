// Reference loops of linear, patch_embed and attention.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/ref/loops.h"
#include "backend/ref/rounded_gemm.h"
#include "ops/attention.h"
#include "ops/attention_sums.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"
#include "ops/self_attention.h"

namespace vitrail::ref {

double softmax_weights(const AttentionGeometry& g, const double* q, const double* k, int64_t b, int64_t h,
                       int64_t i, std::vector<double>& weights) {
  const double* query = q + g.q.base + b * g.q.batch + i * g.q.row + h * g.q.head;
  double top = -INFINITY, total = 0;
  for (int64_t j = 0; j < g.keys; ++j) {
    const double* key = k + g.k.base + b * g.k.batch + j * g.k.row + h * g.k.head;
    double dot = 0;
    for (int64_t e = 0; e < g.head_size; ++e) dot += query[e] * key[e];
    weights[j] = dot / std::sqrt(static_cast<double>(g.head_size));
    top = std::max(top, weights[j]);
  }
  for (double& weight : weights) total += weight = std::exp(weight - top);
  for (double& weight : weights) weight /= total;
  return top + std::log(total);
}

namespace {

void linear(const KernelArgs& args) {
  const MatmulExtents e = linear_extents(args.ins[0].shape(), args.ins[1].shape());
  multiply_rows(args.context.pool, static_cast<const LinearOp&>(args.op).arithmetic(), e,
                args.ins[0].as<double>(), args.ins[1].as<double>(), args.outs[0].as<double>());
}

void patch_embed(const KernelArgs& args) {
  const Shape &x_shape = args.ins[0].shape(), &w_shape = args.ins[1].shape();
  const int64_t channels = x_shape.local('C'), height = x_shape.local('Y'), width = x_shape.local('X');
  const int64_t features = w_shape.local('D'), rows = w_shape.local('P'), cols = w_shape.local('Q');
  const int64_t grid_x = width / cols, patches = (height / rows) * grid_x;
  const double *x = args.ins[0].as<double>(), *w = args.ins[1].as<double>();
  double* out = args.outs[0].as<double>();
  args.context.pool.run(x_shape.local('B') * patches, [&](int64_t task, int) {
    const int64_t b = task / patches, top = task % patches / grid_x * rows, left = task % grid_x * cols;
    for (int64_t d = 0; d < features; ++d) {
      double sum = 0;
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t p = 0; p < rows; ++p)
          for (int64_t q = 0; q < cols; ++q)
            sum += x[((b * channels + c) * height + top + p) * width + left + q] *
                   w[((d * channels + c) * rows + p) * cols + q];
      out[task * features + d] = sum;
    }
  });
}

// Writes the outputs and, where `log_sums` is not null, the base-2 logarithms of the softmax's sums.
void attend(const AttentionGeometry& g, const KernelArgs& args, double* log_sums = nullptr) {
  const double *q = args.ins[0].as<double>(), *kv = args.ins.back().as<double>();
  double* out = args.outs[0].as<double>();
  args.context.pool.run(g.batch * g.heads, [&](int64_t task, int) {
    const int64_t b = task / g.heads, h = task % g.heads;
    std::vector<double> weights(g.keys);
    for (int64_t i = 0; i < g.queries; ++i) {
      const double log_sum = softmax_weights(g, q, kv, b, h, i, weights);
      if (log_sums) log_sums[task * g.queries + i] = log_sum / std::log(2.0);
      double* row = out + b * g.out.batch + i * g.out.row + h * g.out.head;
      for (int64_t e = 0; e < g.head_size; ++e) {
        double sum = 0;
        for (int64_t j = 0; j < g.keys; ++j)
          sum += weights[j] * kv[g.v.base + b * g.v.batch + j * g.v.row + h * g.v.head + e];
        row[e] = sum;
      }
    }
  });
}

AttentionGeometry geometry_of(const KernelArgs& args) {
  std::vector<TensorDesc> descs;
  for (const TensorView& view : args.ins) descs.push_back(view.desc());
  return attention_geometry(args.op, descs);
}

void attention(const KernelArgs& args) {
  attend(geometry_of(args), args);
}
void attention_sums(const KernelArgs& args) {
  attend(geometry_of(args), args, args.outs[1].as<double>());
}
void self_attention(const KernelArgs& args) {
  attend(static_cast<const SelfAttentionOp&>(args.op).geometry(args.ins[0].shape()), args);
}

void attention_probs(const KernelArgs& args) {
  const TensorDesc desc = args.ins[0].desc();
  const AttentionGeometry g = attention_geometry(args.op, {&desc, 1});
  const double* qkv = args.ins[0].as<double>();
  double* out = args.outs[0].as<double>();
  args.context.pool.run(g.batch * g.heads, [&](int64_t task, int) {
    std::vector<double> weights(g.keys);
    for (int64_t i = 0; i < g.queries; ++i) {
      softmax_weights(g, qkv, qkv, task / g.heads, task % g.heads, i, weights);
      for (int64_t j = 0; j < g.keys; ++j) out[(task * g.queries + i) * g.keys + j] = weights[j];
    }
  });
}

}  // namespace

std::vector<OpKernels> gemms_kernels() {
  return {
      in_double<LinearOp, linear>(),
      in_double<PatchEmbedOp, patch_embed>(),
      in_double<AttentionOp, attention>(),
      in_double<AttentionSumsOp, attention_sums>(),
      in_double<AttentionProbsOp, attention_probs>(),
      in_double<SelfAttentionOp, self_attention>(),
  };
}

}  // namespace vitrail::ref
