#include "ops/update/common.h"

#include <algorithm>

#include "ops/expect.h"

namespace vitrail {

StepValues StepValues::read(const double* c) {
  return {c[0], c[1], c[2], c[3], c[4], c[5]};
}

void StepValues::write(double* control) const {
  const double values[kControlCount] = {skip, grad_factor, lr, decay, step, grad_norm};
  std::copy(std::begin(values), std::end(values), control);
}

double UpdateScale::coupled(const StepValues& step) const {
  return decay == DecayStyle::kCoupled ? weight_decay * step.decay : 0;
}

double UpdateScale::shrink(const StepValues& step) const {
  switch (decay) {
    case DecayStyle::kDecoupled:
      return lr(step) * weight_decay * step.decay;
    case DecayStyle::kSchedule:
      return step.lr / base_lr * weight_decay * step.decay;
    case DecayStyle::kCoupled:
      return 0;
    case DecayStyle::kUsual:
      break;
  }
  throw Error(ErrorKind::kInternal, "an update op was made with an unresolved decay style");
}

std::string UpdateScale::text() const {
  std::string text = strf("lr*%g", lr_scale);
  if (weight_decay != 0) text += strf(" wd=%g %s", weight_decay, enum_name(decay));
  return text;
}

void expect_update(const Op& op, DescSpan ins, int states) {
  expect_inputs(op, ins, static_cast<size_t>(states) + 3);
  expect_same(op, ins[0], ins[1]);
  for (size_t i = 2; i + 1 < ins.size(); ++i) expect_same(op, {ins[i].dtype, ins[0].shape}, ins[i]);
  expect_same(op, control_desc(), ins.back());
}

TensorDesc hyper_desc() {
  return {DType::kF64, {{'Z', kHyperCount}}};
}

TensorDesc control_desc() {
  return {DType::kF64, {{'Z', kControlCount}}};
}

}  // namespace vitrail
