// Reference loops of the optimizer updates. Each zeroes its gradient sum, and leaves everything else
// untouched when the step is skipped.
#include <algorithm>
#include <cmath>

#include "backend/ref/loops.h"
#include "ops/update/adam.h"
#include "ops/update/control.h"
#include "ops/update/copied.h"
#include "ops/update/ema.h"
#include "ops/update/lamb.h"
#include "ops/update/lamb_parts.h"
#include "ops/update/lion.h"
#include "ops/update/sgd.h"

namespace vitrail::ref {

namespace {

// The inputs of an update: param, gradient sum, states, control.
struct Update {
  explicit Update(const KernelArgs& args)
      : step(StepValues::read(args.ins.back().as<double>())),
        w(args.ins[0].as<double>()),
        sum(args.ins[1].as<double>()),
        count(args.ins[0].desc().elems()) {}

  // Calls body(i, gradient) for every element unless the step is skipped, then zeroes the sums.
  template <typename Body>
  void each(double coupled, Body&& body) const {
    for (int64_t i = 0; step.skip == 0 && i < count; ++i) body(i, sum[i] * step.grad_factor + coupled * w[i]);
    std::fill_n(sum, count, 0.0);
  }

  StepValues step;
  double *w, *sum;
  int64_t count;
};

void blend(double* mean, double beta, double value) {
  *mean = beta * *mean + (1 - beta) * value;
}

void square_sum(const KernelArgs& args) {
  double total = 0;
  for (const TensorView& in : args.ins) {
    const double* x = in.as<double>();
    const int64_t count = in.desc().elems();
    for (int64_t begin = 0; begin < count; begin += kSquareSumChunk) {
      double part = 0;
      for (int64_t i = begin; i < std::min(count, begin + kSquareSumChunk); ++i) part += x[i] * x[i];
      total += part;
    }
  }
  *args.outs[0].as<double>() = total;
}

void step_control(const KernelArgs& args) {
  const auto& op = static_cast<const StepControlOp&>(args.op);
  op.decide(*args.ins[0].as<double>(), args.ins[1].as<double>(), args.ins[2].as<double>(),
            args.ins[3].as<double>(), op.counts_overflows() ? args.ins[4].as<double>() : nullptr)
      .write(args.outs[0].as<double>());
}

void sgd_update(const KernelArgs& args) {
  const auto& op = static_cast<const SgdUpdateOp&>(args.op);
  const Update u(args);
  const double lr = op.scale().lr(u.step), keep = 1 - op.scale().shrink(u.step), momentum = op.momentum();
  double* m = momentum > 0 ? args.ins[2].as<double>() : nullptr;
  u.each(op.scale().coupled(u.step), [&](int64_t i, double g) {
    double direction = g;
    if (m) {
      m[i] = momentum * m[i] + g;
      direction = op.nesterov() ? g + momentum * m[i] : m[i];
    }
    u.w[i] = keep * u.w[i] - lr * direction;
  });
}

void adam_update(const KernelArgs& args) {
  const auto& op = static_cast<const AdamUpdateOp&>(args.op);
  const Update u(args);
  const Moments& c = op.moments();
  const double keep = 1 - op.scale().shrink(u.step);
  const double size = op.scale().lr(u.step) * c.m_correction(u.step.step);
  const double root = c.root_v_correction(u.step.step);
  double *m = args.ins[2].as<double>(), *v = args.ins[3].as<double>();
  u.each(op.scale().coupled(u.step), [&](int64_t i, double g) {
    blend(&m[i], c.beta1, g);
    blend(&v[i], c.beta2, g * g);
    u.w[i] = keep * u.w[i] - size * m[i] / (std::sqrt(v[i]) * root + c.eps);
  });
}

void lamb_update(const KernelArgs& args) {
  const auto& op = static_cast<const LambUpdateOp&>(args.op);
  const Update u(args);
  const Moments& c = op.moments();
  const double decay = op.scale().coupled(u.step);
  const double correction = c.m_correction(u.step.step), root = c.root_v_correction(u.step.step);
  double *m = args.ins[2].as<double>(), *v = args.ins[3].as<double>();
  const auto direction = [&](int64_t i) {
    return m[i] * correction / (std::sqrt(v[i]) * root + c.eps) + decay * u.w[i];
  };
  double param_squares = 0, update_squares = 0;
  u.each(0, [&](int64_t i, double g) {
    blend(&m[i], c.beta1, g);
    blend(&v[i], c.beta2, g * g);
    param_squares += u.w[i] * u.w[i];
    update_squares += direction(i) * direction(i);
  });
  const double lr = op.scale().lr(u.step) * op.ratio(std::sqrt(param_squares), std::sqrt(update_squares));
  u.each(0, [&](int64_t i, double) { u.w[i] -= lr * direction(i); });
}

void lamb_moments(const KernelArgs& args) {
  const LambUpdateOp& op = static_cast<const LambMomentsOp&>(args.op).whole();
  const Update u(args);
  const Moments& c = op.moments();
  const double decay = op.scale().coupled(u.step);
  const double correction = c.m_correction(u.step.step), root = c.root_v_correction(u.step.step);
  double *m = args.ins[2].as<double>(), *v = args.ins[3].as<double>(), *squares = args.outs[0].as<double>();
  squares[0] = squares[1] = 0;
  u.each(0, [&](int64_t i, double g) {
    blend(&m[i], c.beta1, g);
    blend(&v[i], c.beta2, g * g);
    const double direction = m[i] * correction / (std::sqrt(v[i]) * root + c.eps) + decay * u.w[i];
    squares[0] += u.w[i] * u.w[i];
    squares[1] += direction * direction;
  });
}

void lamb_move(const KernelArgs& args) {
  const LambUpdateOp& op = static_cast<const LambMoveOp&>(args.op).whole();
  const StepValues step = StepValues::read(args.ins[4].as<double>());
  if (step.skip != 0) return;
  const Moments& c = op.moments();
  const double decay = op.scale().coupled(step);
  const double correction = c.m_correction(step.step), root = c.root_v_correction(step.step);
  const double *m = args.ins[1].as<double>(), *v = args.ins[2].as<double>(),
               *squares = args.ins[3].as<double>();
  const double lr = op.scale().lr(step) * op.ratio(std::sqrt(squares[0]), std::sqrt(squares[1]));
  double* w = args.ins[0].as<double>();
  for (int64_t i = 0, count = args.ins[0].desc().elems(); i < count; ++i)
    w[i] -= lr * (m[i] * correction / (std::sqrt(v[i]) * root + c.eps) + decay * w[i]);
}

void lion_update(const KernelArgs& args) {
  const auto& op = static_cast<const LionUpdateOp&>(args.op);
  const Update u(args);
  const double lr = op.scale().lr(u.step), keep = 1 - op.scale().shrink(u.step);
  double* m = args.ins[2].as<double>();
  u.each(op.scale().coupled(u.step), [&](int64_t i, double g) {
    const double mix = op.beta1() * m[i] + (1 - op.beta1()) * g;
    u.w[i] = keep * u.w[i] - lr * ((mix > 0) - (mix < 0));
    blend(&m[i], op.beta2(), g);
  });
}

void ema_update(const KernelArgs& args) {
  const auto& op = static_cast<const EmaUpdateOp&>(args.op);
  const StepValues step = StepValues::read(args.ins[3].as<double>());
  if (step.skip != 0) return;
  const double d = op.decay(args.ins[2].as<double>(), step);
  double* ema = args.ins[0].as<double>();
  for (int64_t i = 0, count = args.ins[0].desc().elems(); i < count; ++i)
    blend(&ema[i], d, args.ins[1].as<double>()[i]);
}

// An update that also writes a copy, one after the other.
template <typename Served, RunKernel update>
OpKernels copied() {
  static constexpr RunKernel both = [](const KernelArgs& args) {
    const OpPtr& op = static_cast<const CopiedUpdateOp&>(args.op).update();
    update({*op, args.ins.first(args.ins.size() - 1), args.outs, args.scratch, args.context});
    const TensorView pair[] = {args.ins.back(), args.ins[0]};
    copy_into({CopyIntoOp(), pair, {}, {}, args.context});
  };
  const RunKernel in_doubles = [](const KernelArgs& args) { run_converted(args, both); };
  return {CopiedUpdateOp::kind_of(Served::kKind), {loop(in_doubles)}};
}

}  // namespace

std::vector<OpKernels> updates_kernels() {
  return {
      in_double<SquareSumOp, square_sum>(),   in_double<StepControlOp, step_control>(),
      in_double<SgdUpdateOp, sgd_update>(),   in_double<AdamUpdateOp, adam_update>(),
      in_double<LambUpdateOp, lamb_update>(), in_double<LambMomentsOp, lamb_moments>(),
      in_double<LambMoveOp, lamb_move>(),     in_double<LionUpdateOp, lion_update>(),
      in_double<EmaUpdateOp, ema_update>(),   copied<SgdUpdateOp, sgd_update>(),
      copied<AdamUpdateOp, adam_update>(),    copied<LionUpdateOp, lion_update>(),
  };
}

}  // namespace vitrail::ref
