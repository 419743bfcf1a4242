// Reference loops of the maximum over tokens and its gradient.
#include "ops/max_tokens.h"

#include <algorithm>
#include <cmath>

#include "backend/ref/loops.h"

namespace vitrail::ref {

namespace {

// One column of one image: token n at x[n * stride].
struct Column {
  const double* x;
  int64_t first, tokens, stride;

  double largest() const {
    double top = -INFINITY;
    for (int64_t n = first; n < tokens; ++n) top = std::max(top, x[n * stride]);
    return top;
  }
};

template <typename F>
void each_column(const TensorView& view, int64_t first, F&& f) {
  const Shape& x = view.shape();
  const int64_t tokens = x[1].local, width = x[2].local;
  for (int64_t b = 0; b < x[0].local; ++b)
    for (int64_t d = 0; d < width; ++d)
      f(Column{view.as<double>() + b * tokens * width + d, first, tokens, width}, b * width + d);
}

void max_tokens(const KernelArgs& args) {
  double* y = args.outs[0].as<double>();
  each_column(args.ins[0], static_cast<const MaxTokensOp&>(args.op).first(),
              [&](const Column& column, int64_t at) { y[at] = column.largest(); });
}

void max_tokens_grad(const KernelArgs& args) {
  const double *x = args.ins[0].as<double>(), *dy = args.ins[1].as<double>();
  double* dx = args.outs[0].as<double>();
  std::fill_n(dx, args.outs[0].desc().elems(), 0.0);
  each_column(args.ins[0], static_cast<const MaxTokensGradOp&>(args.op).first(),
              [&](const Column& column, int64_t at) {
                const double top = column.largest();
                const auto is_top = [&](int64_t n) { return column.x[n * column.stride] == top; };
                int64_t count = 0;
                for (int64_t n = column.first; n < column.tokens; ++n) count += is_top(n) ? 1 : 0;
                double* own = dx + (column.x - x);
                for (int64_t n = column.first; n < column.tokens; ++n)
                  if (is_top(n)) own[n * column.stride] = dy[at] / static_cast<double>(count);
              });
}

}  // namespace

std::vector<OpKernels> max_tokens_kernels() {
  return {
      in_double<MaxTokensOp, max_tokens>(),
      in_double<MaxTokensGradOp, max_tokens_grad>(),
  };
}

}  // namespace vitrail::ref
