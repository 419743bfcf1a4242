// One training step's program of a small ViT on one backend: planned, loaded by rule, run.
#pragma once

#include <cstring>
#include <map>

#include "backend/cpu/kernels.h"
#include "models/rule_weights.h"
#include "passes/fuse.h"
#include "passes/precision.h"
#include "passes/recompute.h"
#include "passes/schedule.h"
#include "passes/tiny_training.h"
#include "runtime/executor.h"

namespace vitrail {

struct StepSettings {
  const char* backend = "cpu";
  int threads = 2;
  bool fused = true;
  PrecisionOptions types = {};
  RecomputeOptions again = {};
  VitRecordOptions record = {.batch = 3, .dropout = 0.1, .drop_path = 0.2};
  Trained trained = nullptr;
};

inline ExecutionPlan plan_training(const VitConfig& config, const StepSettings& s,
                                   std::shared_ptr<PersistentLayout> layout = nullptr) {
  Program program = precision(record_step(config, s.record, s.trained), s.types).program;
  program = recompute(program, s.again);
  if (s.fused) program = fuse(program);
  return plan_execution(schedule(program), find_backend(s.backend), cpu_device(s.threads),
                        {.pack = false, .layout = std::move(layout)});
}

// Parameters and the low-precision copies of them, by the rule.
inline void load_by_rule(const PersistentStore& store) {
  for (const PersistentValue& value : store.layout().values()) {
    if (value.category != Category::kParameters) continue;
    std::vector<float> values(static_cast<size_t>(value.desc.elems()));
    fill_by_rule({value.name.substr(0, value.name.find('@')), value.desc.shape}, values);
    convert_floats(values.data(), DType::kF32, store.view(value).data(), value.desc.dtype, values.size());
  }
}

inline void fill_inputs(const Executor& executor) {
  for (const Value& value : executor.plan().program.values) {
    if (value.kind != ValueKind::kInput) continue;
    const TensorView view = executor.input(value.name);
    if (view.dtype() == DType::kI64) {
      const int64_t counters[] = {11, 5, 64};
      std::copy_n(counters, 3, static_cast<int64_t*>(view.data()));
      continue;
    }
    std::vector<float> values(static_cast<size_t>(view.desc().elems()));
    fill_by_rule({value.name + ".input", view.shape()}, values);
    if (value.name == "targets")  // one-hot, the class by picture
      for (size_t i = 0; i < values.size(); ++i) values[i] = i % 4 == 0 ? 1.0f : 0.0f;
    convert_floats(values.data(), DType::kF32, view.data(), view.dtype(), values.size());
  }
}

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(const TensorView& view) {
  Bytes bytes(view.desc().bytes());
  std::memcpy(bytes.data(), view.data(), bytes.size());
  return bytes;
}
inline std::vector<double> values_of(const TensorView& view) {
  std::vector<double> values(static_cast<size_t>(view.desc().elems()));
  convert_floats(view.data(), view.dtype(), values.data(), DType::kF64, values.size());
  return values;
}

struct TrainingRun {
  ExecutionPlan plan;
  RankContext rank;
  PersistentStore store;
  Executor executor;

  TrainingRun(const VitConfig& config, const StepSettings& settings)
      : plan(plan_training(config, settings)),
        rank(plan.device),
        store(plan, rank),
        executor(plan, store, rank) {
    load_by_rule(store);
  }
  void run() {
    fill_inputs(executor);
    executor.run();
  }
  // The losses, and every gradient sum by name: the bits themselves.
  std::map<std::string, Bytes> results() const {
    std::map<std::string, Bytes> found = {{"loss", bytes_of(executor.output("loss"))}};
    for (const PersistentValue& value : store.layout().values())
      if (value.category == Category::kGradients) found[value.name] = bytes_of(store.view(value));
    return found;
  }
};

inline std::map<std::string, Bytes> run_step(const VitConfig& config, const StepSettings& settings) {
  TrainingRun run(config, settings);
  run.run();
  return run.results();
}

}  // namespace vitrail
