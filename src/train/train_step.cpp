#include "train/train_step.h"

#include <algorithm>
#include <cstring>

namespace vitrail {

namespace {

void fill_floats(const TensorView& target, std::span<const float> values) {
  VT_CHECK(static_cast<size_t>(target.desc().elems()) == values.size(), "%zu floats for %s", values.size(),
           to_string(target.desc()).c_str());
  convert_floats(values.data(), DType::kF32, target.data(), target.dtype(), values.size());
}

bool has_input(const ExecutionPlan& plan, std::string_view name) {
  return std::any_of(plan.program.values.begin(), plan.program.values.end(), [&](const Value& value) {
    return value.kind == ValueKind::kInput && value.name == name;
  });
}

std::unique_ptr<Executor> make_executor(const std::optional<ExecutionPlan>& plan,
                                        const PersistentStore& store, RankContext& rank,
                                        const Buffer* arena) {
  return plan ? std::make_unique<Executor>(*plan, store, rank, arena) : nullptr;
}

}  // namespace

TrainStep::TrainStep(const StepPlan& plan, RankContext& rank)
    : plan_(plan),
      rank_(rank),
      store_(plan.layout, rank),
      arena_(plan.transient_bytes(), Category::kTransient),
      micro_(plan.micro, store_, rank, &arena_),
      update_(plan.update, store_, rank, &arena_),
      eval_(plan.eval, store_, rank, &arena_),
      eval_average_(make_executor(plan.eval_average, store_, rank, &arena_)),
      refresh_(make_executor(plan.refresh, store_, rank, &arena_)) {}

void TrainStep::start(const ParamFiller& fill) {
  std::vector<float> values;
  for (const PersistentValue& value : store_.layout().values()) {
    const TensorView view = store_.view(value);
    if (value.kind == ValueKind::kParameter) {
      values.resize(static_cast<size_t>(value.desc.elems()));
      fill(value.name, value.desc.shape, values);
      fill_floats(view, values);
    } else {
      std::memset(view.data(), 0, value.desc.bytes());
    }
  }
  for (const TrainedParam& param : plan_.config.trained)
    if (store_.layout().has(ema_name(param.name)))
      std::memcpy(store_.view(ema_name(param.name)).data(), store_.view(param.name).data(),
                  param.desc.bytes());
  store_.view(kLossScaleState).as<double>()[0] = plan_.config.loss_scale.initial;
  refresh();
}

void TrainStep::refresh() {
  if (refresh_) refresh_->run();
}

void TrainStep::run_micro(const MicroBatch& batch) {
  fill_floats(micro_.input("pictures"), batch.pictures);
  fill_floats(micro_.input("targets"), batch.targets);
  fill_floats(micro_.input("weights"), batch.weights);
  if (has_input(plan_.micro, "teacher")) fill_floats(micro_.input("teacher"), batch.teacher);
  if (has_input(plan_.micro, "counters")) {
    const int64_t counters[] = {batch.seed, batch.step, batch.position};
    std::copy_n(counters, 3, static_cast<int64_t*>(micro_.input("counters").data()));
  }
  micro_.run();
}

std::span<const float> TrainStep::floats(const TensorView& view, std::vector<float>& copy) const {
  const auto count = static_cast<size_t>(view.desc().elems());
  if (view.dtype() == DType::kF32) return {view.as<float>(), count};
  copy.resize(count);
  convert_floats(view.data(), view.dtype(), copy.data(), DType::kF32, count);
  return copy;
}

std::span<const float> TrainStep::losses() const {
  return floats(micro_.output("loss"), losses_);
}
std::span<const float> TrainStep::logits() const {
  return floats(micro_.output("logits"), logits_);
}

StepValues TrainStep::run_update(double lr) {
  double* hyper = update_.input("hyper").as<double>();
  std::fill_n(hyper, static_cast<size_t>(kHyperCount), 0.0);
  hyper[kHyperLr] = lr;
  hyper[kHyperDecay] = 1;
  hyper[kHyperEma] = plan_.config.optim.ema_decay;
  update_.run();
  return StepValues::read(update_.output("control").as<double>());
}

std::span<const float> TrainStep::evaluate(std::span<const float> pictures, int64_t count, bool average) {
  Executor& executor = average ? *eval_average_ : eval_;
  const TensorView input = executor.input("pictures");
  VT_CHECK(count >= 1 && count <= plan_.config.eval_batch, "%lld pictures for a batch of %lld",
           static_cast<long long>(count), static_cast<long long>(plan_.config.eval_batch));
  convert_floats(pictures.data(), DType::kF32, input.data(), input.dtype(), pictures.size());
  const size_t filled = pictures.size() * size_of(input.dtype());
  std::memset(static_cast<std::byte*>(input.data()) + filled, 0, input.desc().bytes() - filled);
  executor.run();
  const auto logits = floats(executor.output("logits"), logits_);
  return logits.first(logits.size() / static_cast<size_t>(plan_.config.eval_batch) *
                      static_cast<size_t>(count));
}

}  // namespace vitrail
