#include "optim/optimizer.h"

#include "ops/update/ema.h"
#include "optim/recorders.h"

namespace vitrail {

std::string ema_name(const std::string& param) {
  return "ema/" + param;
}

TensorDesc loss_scale_desc() {
  return {DType::kF64, {{'Z', 1}}};
}

namespace {

ValueId gradient_sum(Builder& b, const TrainedParam& p) {
  return b.state(gradient_name(p.name), p.desc, Category::kGradients, p.name);
}

}  // namespace

UpdateSite::UpdateSite(Builder& builder, const TrainedParam& param, const OptimConfig& config,
                       ValueId control)
    : builder_(builder), param_(param), config_(config), control_(control) {}

UpdateScale UpdateSite::scale() const {
  return {param_.lr_scale, param_.weight_decay, config_.decay, config_.lr};
}

ValueId UpdateSite::state(const char* suffix, DType dtype) {
  return builder_.state("optim/" + param_.name + "/" + suffix, {dtype, param_.desc.shape},
                        Category::kOptimizer, param_.name);
}

ValueId UpdateSite::first_moment() {
  return state("m", config_.moment_dtype == MomentDType::kBF16 ? DType::kBF16 : param_.desc.dtype);
}

void UpdateSite::add(OpPtr op, const std::vector<ValueId>& states) {
  std::vector<ValueId> ins = {builder_.parameter(param_.name, param_.desc), gradient_sum(builder_, param_)};
  ins.insert(ins.end(), states.begin(), states.end());
  ins.push_back(control_);
  builder_.add_all(std::move(op), std::move(ins), param_.name);
}

namespace {

ValueId record_control(Builder& b, const std::vector<TrainedParam>& params, const OptimConfig& c,
                       const LossScaleRule& scale, ValueId hyper) {
  std::vector<ValueId> sums;
  sums.reserve(params.size());
  for (const TrainedParam& p : params) sums.push_back(gradient_sum(b, p));
  const ValueId squares = b.add<SquareSumOp>(sums, "square_sum");
  std::vector<ValueId> ins = {
      squares, hyper, b.state(kLossScaleState, loss_scale_desc(), Category::kOptimizer),
      b.state(kUpdateCounterState, {DType::kF64, {{'Z', kUpdateCounters}}}, Category::kOptimizer)};
  if (StepControlOp(c.clip_norm, scale).counts_overflows())
    ins.push_back(b.state(kPassedOverflowState, loss_scale_desc(), Category::kOptimizer));
  return b.add<StepControlOp>(std::move(ins), "control", c.clip_norm, scale);
}

}  // namespace

void record_update(Builder& b, const std::vector<TrainedParam>& params, const OptimConfig& config,
                   const LossScaleRule& loss_scale) {
  VT_REQUIRE(!params.empty(), ErrorKind::kConfig, "no parameter is trained; expected at least one");
  const OptimConfig c = resolved(config);
  const Optimizer& optimizer = find_optimizer(c.name);
  b.set_phase(Phase::kUpdate);
  const Builder::Scope scope(b, "update");
  const ValueId hyper = b.input("hyper", hyper_desc());
  const ValueId control = record_control(b, params, c, loss_scale, hyper);
  for (const TrainedParam& p : params) {
    UpdateSite site(b, p, c, control);
    optimizer.record(site);
    if (c.ema_decay > 0)
      b.add_all<EmaUpdateOp>({b.state(ema_name(p.name), p.desc, Category::kOptimizer, p.name),
                              b.parameter(p.name, p.desc), hyper, control},
                             p.name + ".ema", c.ema_warmup);
  }
  b.output("control", control);
}

}  // namespace vitrail
