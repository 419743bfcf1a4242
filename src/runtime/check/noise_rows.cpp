// Noise of ops that work on single elements or rows.
#include <algorithm>
#include <cmath>

#include "ops/gelu.h"
#include "ops/gelu_slope.h"
#include "ops/layernorm.h"
#include "ops/update/lamb_parts.h"
#include "runtime/check/noise_rules.h"

namespace vitrail::noise {

namespace {

// The error of cuBLASLt's gelu relative to x; a sixth of this was observed.
constexpr double kLibraryGelu = 0x1p-18;

double gelu(double x, bool tanh_form) {
  if (!tanh_form) return 0.5 * x * std::erfc(-x * M_SQRT1_2);
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

double deviation(const Known& known, size_t i) {
  return known.noise.exact() ? 0 : std::sqrt(known.noise.variance[i]);
}
double bound(const Known& known, size_t i) {
  return known.noise.exact() ? 0 : known.noise.bound[i];
}

double gelu_slope(double x, bool tanh_form) {
  const double bell = std::exp(-0.5 * x * x) / std::sqrt(2.0 * M_PI);
  if (!tanh_form) return 0.5 * std::erfc(-x * M_SQRT1_2) + x * bell;
  const double root = std::sqrt(2.0 / M_PI), t = std::tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * root * (1.0 + 3 * 0.044715 * x * x);
}

// The noise of f(x), which moves with x; `inexact` bounds how far a kernel's f is off at x.
template <typename F, typename Inexact>
Noise of_function(const Args& args, F&& f, Inexact&& inexact) {
  const Known& x = args.query.ins[0];
  Noise noise = silence(x.values.size());
  for (size_t i = 0; i < x.values.size(); ++i) {
    const double at = x.values[i], step = bound(x, i), deviated = deviation(x, i);
    const auto moved = [&](double by) { return std::abs(f(at + by) - args.out.values[i]); };
    noise.bound[i] = std::max(moved(step), moved(-step)) + inexact(at);
    noise.variance[i] = square(std::max(moved(deviated), moved(-deviated)));
  }
  return noise;
}

// The noise of dy times the slope at each element; `inexact` bounds how far the product itself is off.
template <typename Slope, typename Inexact>
Noise of_slopes(const Args& args, Slope&& slope, Inexact&& inexact) {
  const Known& dy = args.query.ins[1];
  Noise noise = silence(dy.values.size());
  for (size_t i = 0; i < dy.values.size(); ++i) {
    noise.bound[i] = slope(i) * bound(dy, i) + inexact(i);
    noise.variance[i] = square(slope(i) * deviation(dy, i));
  }
  return noise;
}

}  // namespace

Noise of_row_sums(const Args& args, const Noise& of_rows) {
  const int64_t length = args.query.op.reduction_length(args.query.descs);
  Noise noise = alike(tolerance_of(DType::kF32, length), args.out.values);
  const Values& rows = args.results[0].values;
  const size_t width = noise.variance.size();
  for (size_t i = 0; i < rows.size(); ++i)
    noise.variance[i % width] += of_rows.mean_square(i) + square(rounding_of(args.types[0], rows[i])) / 3;
  return noise;
}

Noise of_gelu(const Args& args) {
  const bool tanh_form = static_cast<const GeluOp&>(args.query.op).tanh_form();
  const double function = args.query.rounding.gelu ? kLibraryGelu : kFunction;
  return of_function(
      args, [&](double x) { return gelu(x, tanh_form); }, [&](double x) { return function * std::abs(x); });
}

// The slope is as inexact as its two terms, of which one has the factor x.
Noise of_gelu_slope(const Args& args) {
  const bool tanh_form = static_cast<const GeluSlopeOp&>(args.query.op).tanh_form();
  if (args.result == 0)
    return of_function(
        args, [&](double x) { return gelu(x, tanh_form); }, [](double x) { return kFunction * std::abs(x); });
  return of_function(
      args, [&](double x) { return gelu_slope(x, tanh_form); },
      [](double x) { return kFunction * std::max(1.0, std::abs(x)); });
}

Noise of_gelu_slope_grad(const Args& args) {
  if (args.result > 0)
    return of_row_sums(args, of_gelu_slope_grad({args.query, args.results, args.types, 0, args.results[0]}));
  return of_slopes(
      args, [&](size_t i) { return std::abs(args.query.ins[0].values[i]); },
      [&](size_t i) { return kF32 * std::abs(args.out.values[i]); });
}

// The gradient dx = dy slope(x) is linear in dy. The slope is less than 1.13.
Noise of_gelu_grad(const Args& args) {
  if (args.result > 0)
    return of_row_sums(args, of_gelu_grad({args.query, args.results, args.types, 0, args.results[0]}));
  const Values &x = args.query.ins[0].values, &dy = args.query.ins[1].values;
  return of_slopes(
      args, [&](size_t i) { return dy[i] == 0 ? 1.13 : std::abs(args.out.values[i] / dy[i]); },
      [&](size_t i) { return kFunction * std::abs(dy[i]) * std::max(1.0, std::abs(x[i])); });
}

Noise of_layernorm_grad(const Args& args) {
  const auto& op = static_cast<const LayernormGradOp&>(args.query.op);
  return op.row_sums() && args.result == op.sums_at() ? of_row_sums(args, {}) : of_any(args);
}

Noise of_sum(const Args& args) {
  Noise noise = silence(args.out.values.size());
  for (const Known& in : args.query.ins)
    for (size_t i = 0; !in.noise.exact() && i < noise.bound.size(); ++i) {
      noise.bound[i] += in.noise.bound[i % in.values.size()];
      noise.variance[i] += in.noise.variance[i % in.values.size()];
    }
  for (size_t i = 0; i < noise.bound.size(); ++i) noise.bound[i] += kF32 * std::abs(args.out.values[i]);
  return noise;
}

Noise of_scale(const Args& args) {
  const Known &x = args.query.ins[0], &scale = args.query.ins[1];
  Noise noise = silence(args.out.values.size());
  for (size_t i = 0; i < noise.bound.size(); ++i) {
    const double by = std::abs(scale.values[i % scale.values.size()]);
    noise.bound[i] = by * bound(x, i) + kF32 * std::abs(args.out.values[i]);
    noise.variance[i] = square(by * deviation(x, i));
  }
  return noise;
}

Noise of_any(const Args& args) {
  const bool exact = std::all_of(args.query.ins.begin(), args.query.ins.end(),
                                 [](const Known& in) { return in.noise.exact(); });
  // Sums in f64 are of exact terms, but for those of LAMB's directions, which are computed in f32.
  const bool wide = args.types[args.result] == DType::kF64 && !is<LambMomentsOp>(args.query.op);
  const DType type = !exact ? narrow_type(args.query.descs) : wide ? DType::kF64 : DType::kF32;
  return alike(tolerance_of(type, args.query.op.reduction_length(args.query.descs)), args.out.values);
}

}  // namespace vitrail::noise
