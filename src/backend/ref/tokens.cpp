// Reference loops of the ops that move tokens and parameters about.
#include <algorithm>
#include <cmath>

#include "backend/ref/loops.h"
#include "ops/pool_tokens.h"
#include "ops/sincos_positions.h"

namespace vitrail::ref {

void concat_tokens(const KernelArgs& args) {
  const Shape& out_shape = args.outs[0].shape();
  const int64_t out_elems = out_shape.local('N') * out_shape.local('D');
  dispatch(args.outs[0].dtype(), [&](auto type) {
    using T = decltype(type);
    for (int64_t b = 0; b < out_shape.local('B'); ++b) {
      T* target = args.outs[0].as<T>() + b * out_elems;
      for (const TensorView& prefix : args.ins.first(args.ins.size() - 1))
        target = std::copy_n(prefix.as<T>(), prefix.desc().elems(), target);
      const int64_t patch_elems = args.ins.back().desc().elems() / out_shape.local('B');
      std::copy_n(args.ins.back().as<T>() + b * patch_elems, patch_elems, target);
    }
  });
}

void select_token(const KernelArgs& args) {
  const int64_t index = static_cast<const SelectTokenOp&>(args.op).index();
  const Shape& x = args.ins[0].shape();
  dispatch(args.outs[0].dtype(), [&](auto type) {
    using T = decltype(type);
    for (int64_t b = 0; b < x[0].local; ++b)
      std::copy_n(args.ins[0].as<T>() + (b * x[1].local + index) * x[2].local, x[2].local,
                  args.outs[0].as<T>() + b * x[2].local);
  });
}

void drop_tokens(const KernelArgs& args) {
  const int64_t first = static_cast<const DropTokensOp&>(args.op).first();
  const Shape& x = args.ins[0].shape();
  const int64_t tokens = x[1].local, width = x[2].local;
  dispatch(args.outs[0].dtype(), [&](auto type) {
    using T = decltype(type);
    T* target = args.outs[0].as<T>();
    for (int64_t b = 0; b < x[0].local; ++b)
      target =
          std::copy_n(args.ins[0].as<T>() + (b * tokens + first) * width, (tokens - first) * width, target);
  });
}

void mean_tokens(const KernelArgs& args) {
  const int64_t first = static_cast<const MeanTokensOp&>(args.op).first();
  const Shape& x = args.ins[0].shape();
  const int64_t tokens = x[1].local, width = x[2].local;
  dispatch(args.outs[0].dtype(), [&](auto type) {
    using T = decltype(type);
    for (int64_t b = 0; b < x[0].local; ++b)
      for (int64_t d = 0; d < width; ++d) {
        double sum = 0;
        for (int64_t n = first; n < tokens; ++n)
          sum += static_cast<double>(args.ins[0].as<T>()[(b * tokens + n) * width + d]);
        args.outs[0].as<T>()[b * width + d] = T(sum / static_cast<double>(tokens - first));
      }
  });
}

void sincos_positions(const KernelArgs& args) {
  const auto& op = static_cast<const SincosPositionsOp&>(args.op);
  const int64_t quarter = op.width() / 4;
  dispatch(args.outs[0].dtype(), [&](auto type) {
    using T = decltype(type);
    T* out = args.outs[0].as<T>();
    for (int64_t n = 0; n < op.rows() * op.columns(); ++n)
      for (int64_t i = 0; i < quarter; ++i) {
        const double fraction = quarter > 1 ? static_cast<double>(i) / static_cast<double>(quarter - 1) : 0.0;
        const double omega = std::pow(10000.0, -fraction);
        const double x = static_cast<double>(n % op.columns()) * omega,
                     y = static_cast<double>(n / op.columns()) * omega;
        const double parts[] = {std::sin(x), std::cos(x), std::sin(y), std::cos(y)};
        for (int64_t part = 0; part < 4; ++part) out[n * op.width() + part * quarter + i] = T(parts[part]);
      }
  });
}

void load_param(const KernelArgs& args) {
  convert_floats(args.ins[0].data(), args.ins[0].dtype(), args.outs[0].data(), args.outs[0].dtype(),
                 static_cast<size_t>(args.ins[0].desc().elems()));
}

}  // namespace vitrail::ref
