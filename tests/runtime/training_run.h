// One training step's program of a small ViT on one backend: planned, loaded by rule, run.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels.h"
#include "models/vit_init.h"
#include "passes/pipeline.h"
#include "passes/tiny_training.h"
#include "runtime/executor.h"
#include "runtime/transfer.h"

namespace vitrail {

// A config with everything a block can hold, of odd sizes.
inline VitConfig rich_vit(int64_t depth) {
  VitConfig c = tiny_vit(depth);
  c.width = 24, c.heads = 3, c.mlp = 50;
  c.image_width = 32;
  c.layer_scale = c.qk_norm = true;
  return c;
}

const PrecisionOptions kTypes[] = {
    {},
    {.compute = DType::kBF16, .residual = DType::kF32},
    {.compute = DType::kBF16, .residual = DType::kBF16},
    {.compute = DType::kF16, .residual = DType::kF32},
};

struct StepSettings {
  const char* backend = "cpu";
  int threads = 2;
  bool fused = true;
  bool joined = true;  // residuals with the gradients of norms
  PrecisionOptions types = {};
  RecomputeOptions again = {};
  Arithmetic arithmetic = Arithmetic::kExact;  // of the blocks' GEMMs
  VitRecordOptions record = {.batch = 3, .dropout = 0.1, .drop_path = 0.2};
  Trained trained = nullptr;
};

inline std::string label(const StepSettings& s) {
  return strf("%s compute %s residual %s GEMMs %s recompute %s every %lld%s", s.backend,
              to_string(s.types.compute), to_string(s.types.residual), enum_name(s.arithmetic),
              enum_name(s.again.level), static_cast<long long>(s.again.every), s.fused ? " fused" : "");
}

inline DeviceInfo device_of(const StepSettings& s) {
  return std::string_view(s.backend) == "cuda" ? cuda_device() : cpu_device(s.threads);
}

inline ExecutionPlan plan_training(const VitConfig& config, const StepSettings& s,
                                   std::shared_ptr<PersistentLayout> layout = nullptr) {
  const Backend& backend = find_backend(s.backend);
  RewriteTraits traits = backend.traits();
  traits.fp8_rows = traits.fp8_trained_width = 0;  // the models are small
  Recorded recorded = record_loss(config, s.record);
  Program program = micro_program(std::move(recorded.program), {.seed = recorded.seed, .trained = s.trained},
                                  {.arithmetic = s.arithmetic,
                                   .precision = s.types,
                                   .recompute = s.again,
                                   .join = s.joined,
                                   .fuse = s.fused,
                                   .traits = traits})
                        .program;
  return plan_execution(std::move(program), backend, device_of(s),
                        {.pack = false, .layout = std::move(layout)});
}

// Fills parameters and their low-precision copies by the rule.
inline void load_by_rule(const PersistentStore& store) {
  for (const PersistentValue& value : store.layout().values()) {
    if (value.category != Category::kParameters) continue;
    std::vector<float> values(static_cast<size_t>(value.desc.elems()));
    fill_by_rule({value.name.substr(0, value.name.find('@')), value.desc.shape}, values);
    write_floats(store.rank(), store.view(value), values);
  }
}

inline void fill_inputs(RankContext& rank, const Executor& executor) {
  for (const Value& value : executor.plan().program.values) {
    if (value.kind != ValueKind::kInput) continue;
    const TensorView view = executor.input(value.name);
    if (view.dtype() == DType::kI64) {
      const int64_t counters[] = {11, 5, 64};
      write_bytes(rank, view, std::as_bytes(std::span(counters)));
      continue;
    }
    std::vector<float> values(static_cast<size_t>(view.desc().elems()));
    fill_by_rule({value.name + ".input", view.shape()}, values);
    if (value.name == "targets")  // one-hot, the class by image
      for (size_t i = 0; i < values.size(); ++i) values[i] = i % 4 == 0 ? 1.0f : 0.0f;
    write_floats(rank, view, values);
  }
}

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(RankContext& rank, const TensorView& view) {
  Bytes bytes(view.desc().bytes());
  read_bytes(rank, view, bytes);
  return bytes;
}
inline Bytes bytes_of(const PersistentStore& store, const std::string& name) {
  return bytes_of(store.rank(), store.view(name));
}
inline std::vector<double> values_of(const PersistentStore& store, const std::string& name) {
  const TensorView view = store.view(name);
  std::vector<double> values(static_cast<size_t>(view.desc().elems()));
  read_doubles(store.rank(), view, values);
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
    fill_inputs(rank, executor);
    executor.run();
  }
  // Returns the losses, and every gradient sum by name: the bits themselves.
  std::map<std::string, Bytes> results() {
    std::map<std::string, Bytes> found = {{"loss", bytes_of(rank, executor.output("loss"))}};
    for (const PersistentValue& value : store.layout().values())
      if (value.category == Category::kGradients) found[value.name] = bytes_of(store, value.name);
    return found;
  }
};

// The error is relative to the norm of the expected values; the absolute part is for gradients that are zero
// in theory.
inline void expect_near_gradients(const TrainingRun& found, const TrainingRun& wanted) {
  for (const PersistentValue& value : found.store.layout().values()) {
    if (value.category != Category::kGradients) continue;
    const std::vector<double> a = values_of(found.store, value.name), b = values_of(wanted.store, value.name);
    double difference = 0, norm = 0;
    for (size_t i = 0; i < a.size(); ++i) difference += (a[i] - b[i]) * (a[i] - b[i]), norm += b[i] * b[i];
    EXPECT_LE(std::sqrt(difference), 1e-4 * std::sqrt(norm) + 1e-7) << value.name;
  }
}

inline void expect_same(const std::map<std::string, Bytes>& found, const std::map<std::string, Bytes>& wanted,
                        const std::string& what) {
  for (const auto& [name, bytes] : wanted) {
    ASSERT_TRUE(found.contains(name)) << name << " " << what;
    EXPECT_TRUE(found.at(name) == bytes) << name << " differs: " << what;
  }
}

inline std::map<std::string, Bytes> run_step(const VitConfig& config, const StepSettings& settings) {
  TrainingRun run(config, settings);
  run.run();
  return run.results();
}

}  // namespace vitrail
