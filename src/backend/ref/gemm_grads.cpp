// Reference loops of the gradients of linear, patch_embed and attention.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "backend/ref/loops.h"
#include "backend/ref/rounded_gemm.h"
#include "ops/attention.h"
#include "ops/attention_bias_grad.h"
#include "ops/attention_sums.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"
#include "ops/self_attention.h"

namespace vitrail::ref {

namespace {

void linear_dx(const KernelArgs& args) {
  const MatmulExtents e = linear_dx_extents(args.ins[0].shape(), args.ins[1].shape());
  const double* w = args.ins[1].as<double>();
  std::vector<double> by_outputs(static_cast<size_t>(e.n * e.k));  // w transposed: [k, n]
  for (int64_t n = 0; n < e.n; ++n)
    for (int64_t k = 0; k < e.k; ++k) by_outputs[k * e.n + n] = w[n * e.k + k];
  multiply_rows(args.context.pool, static_cast<const LinearDxOp&>(args.op).arithmetic(), {e.m, e.k, e.n},
                args.ins[0].as<double>(), by_outputs.data(), args.outs[0].as<double>());
}

void linear_dw(const KernelArgs& args) {
  const MatmulExtents e = linear_dw_extents(args.ins[0].shape(), args.ins[1].shape());
  const Arithmetic arithmetic = static_cast<const LinearDwOp&>(args.op).arithmetic();
  const RoundedRows x(args.ins[0].as<double>(), e.m, e.k, arithmetic);
  const RoundedRows dy(args.ins[1].as<double>(), e.m, e.n, arithmetic);
  VT_CHECK(!x.scales, "linear_dw sums over what has scales");
  double* dw = args.outs[0].as<double>();
  args.context.pool.run(e.n, [&](int64_t n, int) {
    std::fill_n(dw + n * e.k, e.k, 0.0);
    for (int64_t m = 0; m < e.m; ++m)
      for (int64_t k = 0; k < e.k; ++k) dw[n * e.k + k] += dy.values[m * e.n + n] * x.values[m * e.k + k];
  });
}

void patch_embed_dw(const KernelArgs& args) {
  const Shape &x_shape = args.ins[0].shape(), &w_shape = args.outs[0].shape();
  const int64_t channels = x_shape.local('C'), height = x_shape.local('Y'), width = x_shape.local('X');
  const int64_t features = w_shape.local('D'), rows = w_shape.local('P'), cols = w_shape.local('Q');
  const int64_t grid_x = width / cols, patches = (height / rows) * grid_x;
  const double *x = args.ins[0].as<double>(), *dy = args.ins[1].as<double>();
  double* dw = args.outs[0].as<double>();
  args.context.pool.run(features * channels, [&](int64_t task, int) {
    const int64_t d = task / channels, c = task % channels;
    for (int64_t p = 0; p < rows; ++p)
      for (int64_t q = 0; q < cols; ++q) {
        double sum = 0;
        for (int64_t b = 0; b < x_shape.local('B'); ++b)
          for (int64_t n = 0; n < patches; ++n)
            sum += dy[(b * patches + n) * features + d] *
                   x[((b * channels + c) * height + n / grid_x * rows + p) * width + n % grid_x * cols + q];
        dw[(task * rows + p) * cols + q] = sum;
      }
  });
}

// The contribution of one query of one head to dq, dk and dv.
struct HeadGrads {
  const AttentionGeometry& g;
  const double *q, *kv, *dout;
  double *dq, *dkv;
  // The forward op kept its output and the base-2 logarithms of its sums; null: they are computed again.
  const double *out = nullptr, *log_sums = nullptr;

  void query(int64_t b, int64_t h, int64_t i, std::vector<double>& weights, std::vector<double>& dweights) {
    const double log_sum = softmax_weights(g, q, kv, b, h, i, weights);
    if (log_sums)
      for (double& weight : weights)
        weight *= std::exp(log_sum - log_sums[(b * g.heads + h) * g.queries + i] * std::log(2.0));
    const double scale = 1.0 / std::sqrt(static_cast<double>(g.head_size));
    const double* dy = dout + b * g.out.batch + i * g.out.row + h * g.out.head;
    double mean = 0;
    for (int64_t j = 0; j < g.keys; ++j) {
      const int64_t value = g.v.base + b * g.v.batch + j * g.v.row + h * g.v.head;
      dweights[j] = 0;
      for (int64_t e = 0; e < g.head_size; ++e) {
        dweights[j] += dy[e] * kv[value + e];
        dkv[value + e] += weights[j] * dy[e];
      }
      mean += weights[j] * dweights[j];
    }
    if (out) mean = mean_from_output(b, h, i);
    const int64_t at_query = g.q.base + b * g.q.batch + i * g.q.row + h * g.q.head;
    for (int64_t j = 0; j < g.keys; ++j) {
      const double dscore = weights[j] * (dweights[j] - mean) * scale;
      const int64_t key = g.k.base + b * g.k.batch + j * g.k.row + h * g.k.head;
      for (int64_t e = 0; e < g.head_size; ++e) {
        dq[at_query + e] += dscore * kv[key + e];
        dkv[key + e] += dscore * q[at_query + e];
      }
    }
  }

  double mean_from_output(int64_t b, int64_t h, int64_t i) const {
    const int64_t row = b * g.out.batch + i * g.out.row + h * g.out.head;
    return std::inner_product(out + row, out + row + g.head_size, dout + row, 0.0);
  }
};

void add_queries(HeadGrads& grads, const KernelArgs& args) {
  const AttentionGeometry& g = grads.g;
  for (const TensorView& out : args.outs) std::fill_n(out.as<double>(), out.desc().elems(), 0.0);
  args.context.pool.run(g.heads, [&](int64_t h, int) {
    std::vector<double> weights(g.keys), dweights(g.keys);
    for (int64_t b = 0; b < g.batch; ++b)
      for (int64_t i = 0; i < g.queries; ++i) grads.query(b, h, i, weights, dweights);
  });
}

void attention_grad(const KernelArgs& args) {
  std::vector<TensorDesc> descs;
  for (const TensorView& view : args.ins.first(args.ins.size() - 1)) descs.push_back(view.desc());
  const AttentionGeometry g = attention_geometry(args.op, descs);
  const size_t last = args.outs.size() - 1;
  HeadGrads grads{g,
                  args.ins[0].as<double>(),
                  args.ins[last].as<double>(),
                  args.ins.back().as<double>(),
                  args.outs[0].as<double>(),
                  args.outs[last].as<double>()};
  add_queries(grads, args);
}

void attention_bias_grad(const KernelArgs& args) {
  attention_grad({args.op, args.ins, args.outs.first(1), args.scratch, args.context});
  sum_rows({args.op, args.outs.first(1), args.outs.last(1), args.scratch, args.context});
}

void attention_sums_grad(const KernelArgs& args) {
  const TensorDesc qkv = args.ins[0].desc();
  const AttentionGeometry g = attention_geometry(args.op, {&qkv, 1});
  const double* packed = args.ins[0].as<double>();
  double* dqkv = args.outs[0].as<double>();
  HeadGrads grads{g,
                  packed,
                  packed,
                  args.ins[3].as<double>(),
                  dqkv,
                  dqkv,
                  args.ins[1].as<double>(),
                  args.ins[2].as<double>()};
  add_queries(grads, args);
}

// Queries, keys and values are one, and so are their gradients.
void self_attention_grad(const KernelArgs& args) {
  const AttentionGeometry g = static_cast<const SelfAttentionGradOp&>(args.op).geometry(args.ins[0].shape());
  const double* x = args.ins[0].as<double>();
  double* dx = args.outs[0].as<double>();
  HeadGrads grads{g, x, x, args.ins[1].as<double>(), dx, dx};
  add_queries(grads, args);
}

}  // namespace

std::vector<OpKernels> gemm_grads_kernels() {
  return {
      in_double<LinearDxOp, linear_dx>(),
      in_double<LinearDwOp, linear_dw>(),
      in_double<PatchEmbedDwOp, patch_embed_dw>(),
      in_double<AttentionGradOp, attention_grad>(),
      in_double<AttentionBiasGradOp, attention_bias_grad>(),
      in_double<AttentionSumsGradOp, attention_sums_grad>(),
      in_double<SelfAttentionGradOp, self_attention_grad>(),
  };
}

}  // namespace vitrail::ref
