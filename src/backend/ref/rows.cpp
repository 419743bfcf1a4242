// Reference loops of the ops that work on rows or single elements.
#include <algorithm>
#include <cmath>

#include "backend/ref/loops.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/qk_norm.h"

namespace vitrail::ref {

namespace {

// y = (x - mean) / sqrt(variance + eps) * weight + bias over one row; y may be x.
template <typename T>
void normalise(const T* x, const T* weight, const T* bias, double eps, int64_t width, T* y) {
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < width; ++i) mean += static_cast<double>(x[i]);
  mean /= static_cast<double>(width);
  for (int64_t i = 0; i < width; ++i)
    variance += (static_cast<double>(x[i]) - mean) * (static_cast<double>(x[i]) - mean);
  const double inverse = 1.0 / std::sqrt(variance / static_cast<double>(width) + eps);
  for (int64_t i = 0; i < width; ++i)
    y[i] = T((static_cast<double>(x[i]) - mean) * inverse * static_cast<double>(weight[i]) +
             static_cast<double>(bias[i]));
}

// y[i] = f(x[i])
template <typename F>
void map_one(const KernelArgs& args, F&& f) {
  dispatch(args.outs[0].dtype(), [&](auto type) {
    using T = decltype(type);
    const T* x = args.ins[0].as<T>();
    T* y = args.outs[0].as<T>();
    for (int64_t i = 0, count = args.outs[0].desc().elems(); i < count; ++i)
      y[i] = T(f(static_cast<double>(x[i])));
  });
}

// y[i] = f(a[i], b[i]); b repeats when it is shorter.
template <typename F>
void map_two(const KernelArgs& args, F&& f) {
  dispatch(args.outs[0].dtype(), [&](auto type) {
    using T = decltype(type);
    const T *a = args.ins[0].as<T>(), *b = args.ins[1].as<T>();
    T* y = args.outs[0].as<T>();
    const int64_t period = args.ins[1].desc().elems();
    for (int64_t i = 0, count = args.outs[0].desc().elems(); i < count; ++i)
      y[i] = T(f(static_cast<double>(a[i]), static_cast<double>(b[i % period])));
  });
}

double gelu_erf(double x) {
  return 0.5 * x * (1.0 + std::erf(x * M_SQRT1_2));
}
double gelu_tanh(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

}  // namespace

void layernorm(const KernelArgs& args) {
  const double eps = static_cast<const LayernormOp&>(args.op).eps();
  const int64_t width = args.ins[1].desc().elems(), rows = args.ins[0].desc().elems() / width;
  dispatch(args.outs[0].dtype(), [&](auto type) {
    using T = decltype(type);
    for (int64_t row = 0; row < rows; ++row)
      normalise(args.ins[0].as<T>() + row * width, args.ins[1].as<T>(), args.ins[2].as<T>(), eps, width,
                args.outs[0].as<T>() + row * width);
  });
}

void qk_norm(const KernelArgs& args) {
  const double eps = static_cast<const QkNormOp&>(args.op).eps();
  const Shape& shape = args.ins[0].shape();
  const int64_t heads = shape.local('H'), width = shape.local('E');
  const int64_t rows = args.ins[0].desc().elems() / width;  // over B N T H
  dispatch(args.outs[0].dtype(), [&](auto type) {
    using T = decltype(type);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t part = row / heads % 3;
      const T* x = args.ins[0].as<T>() + row * width;
      T* y = args.outs[0].as<T>() + row * width;
      if (part == 2)
        std::copy_n(x, width, y);
      else
        normalise(x, args.ins[1 + 2 * part].as<T>(), args.ins[2 + 2 * part].as<T>(), eps, width, y);
    }
  });
}

void softmax(const KernelArgs& args) {
  const int64_t width = args.ins[0].shape().local('K'), rows = args.ins[0].desc().elems() / width;
  dispatch(args.outs[0].dtype(), [&](auto type) {
    using T = decltype(type);
    for (int64_t row = 0; row < rows; ++row) {
      const T* x = args.ins[0].as<T>() + row * width;
      T* y = args.outs[0].as<T>() + row * width;
      double top = -INFINITY, total = 0;
      for (int64_t i = 0; i < width; ++i) top = std::max(top, static_cast<double>(x[i]));
      for (int64_t i = 0; i < width; ++i) total += std::exp(static_cast<double>(x[i]) - top);
      for (int64_t i = 0; i < width; ++i) y[i] = T(std::exp(static_cast<double>(x[i]) - top) / total);
    }
  });
}

void gelu(const KernelArgs& args) {
  const bool tanh_form = static_cast<const GeluOp&>(args.op).tanh_form();
  map_one(args, [&](double x) { return tanh_form ? gelu_tanh(x) : gelu_erf(x); });
}
void tanh(const KernelArgs& args) {
  map_one(args, [](double x) { return std::tanh(x); });
}
void bias(const KernelArgs& args) {
  map_two(args, [](double x, double b) { return x + b; });
}
void scale(const KernelArgs& args) {
  map_two(args, [](double x, double s) { return x * s; });
}
void add(const KernelArgs& args) {
  map_two(args, [](double a, double b) { return a + b; });
}
void average(const KernelArgs& args) {
  map_two(args, [](double a, double b) { return 0.5 * (a + b); });
}

}  // namespace vitrail::ref
