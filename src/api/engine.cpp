#include "api/engine.h"

#include <algorithm>
#include <optional>

#include "api/packed_cache.h"
#include "backend/cpu/kernels.h"
#include "backend/ref/kernels.h"
#include "models/rule_weights.h"
#include "passes/fuse.h"
#include "passes/reduce_products.h"
#include "passes/schedule.h"

namespace vitrail {

namespace {

ParamFiller rule_filler() {
  return [](const std::string& name, const Shape& shape, std::span<float> target) {
    fill_by_rule({name, shape}, target);
  };
}

ParamFiller model_filler(const OpenedModel& model) {
  return [&model](const std::string& name, const Shape& shape, std::span<float> target) {
    model.read_param({name, shape}, target);
  };
}

}  // namespace

ExecutionPlan plan_inference(const VitConfig& config, const EngineOptions& options) {
  return plan_inference(config, options, cpu_device(options.threads, options.isa));
}

ExecutionPlan plan_inference(const VitConfig& config, const EngineOptions& options, DeviceInfo device) {
  device.parallel_heads = options.parallel_heads;
  device.parallel_rows = options.parallel_rows;
  device.parallel_softmax = options.parallel_softmax;
  device.kernels = options.kernels;
  Program program = record_vit(config, {.batch = options.batch,
                                        .dtype = options.dtype,
                                        .features = options.features,
                                        .layers = options.layers,
                                        .attention = options.attention,
                                        .attention_block = options.attention_block,
                                        .probabilities = options.probabilities});
  program = reduce_products(std::move(program), options.arithmetic);
  if (options.fuse) program = fuse(program);
  return plan_execution(schedule(program), find_backend(options.backend), device);
}

namespace {

std::string mib(size_t bytes) {
  return strf("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

// Refuses before anything is allocated, with what would be needed and what would fit.
void require_fit(const ExecutionPlan& plan, const EngineOptions& options) {
  const MemoryPlan& memory = plan.memory;
  const size_t available = plan.device.memory_bytes;
  if (available == 0 || memory.peak_bytes() <= available) return;
  const size_t a_picture = memory.transient_bytes / static_cast<size_t>(options.batch);
  const bool some_fit = memory.persistent_bytes + a_picture <= available;
  throw Error(
      ErrorKind::kMemory,
      strf("batch %lld needs %s (parameters %s, activations and scratch %s); this machine has %s",
           static_cast<long long>(options.batch), mib(memory.peak_bytes()).c_str(),
           mib(memory.persistent_bytes).c_str(), mib(memory.transient_bytes).c_str(), mib(available).c_str()),
      some_fit ? strf("--batch %zu fits", (available - memory.persistent_bytes) / a_picture)
               : std::string("a smaller model: one picture does not fit either"));
}

// The plan of an engine, once it is known to fit.
ExecutionPlan fitting_plan(const VitConfig& config, const EngineOptions& options) {
  ExecutionPlan plan = plan_inference(config, options);
  require_fit(plan, options);
  return plan;
}

}  // namespace

struct Engine::Parts {
  // `model`: where the parameters come from; null: the rule `fill` follows.
  Parts(const VitConfig& vit, const EngineOptions& options, const ParamFiller& fill, const OpenedModel* model)
      : config(vit),
        plan(fitting_plan(vit, options)),
        rank(plan.device),
        params(plan, rank),
        executor(nullptr) {
    load_params(options, fill, model);
    executor = std::make_unique<Executor>(plan, params, rank);
    if (!options.check_reference) return;
    plain_plan = plan;
    for (Value& value : plain_plan.program.values) value.desc = {value.desc.dtype, value.desc.shape};
    plain_plan.memory = plan_memory(plain_plan.program, std::vector<size_t>(plan.program.nodes.size(), 0));
    plain_params = std::make_unique<PersistentStore>(plain_plan, rank);
    plain_params->load(plain_plan, fill);
  }

  void load_params(const EngineOptions& options, const ParamFiller& fill, const OpenedModel* model) {
    std::optional<PackedCache> cache;
    if (model && !options.cache_folders.empty()) cache.emplace(*model, plan, options.cache_folders);
    if (!cache || !cache->load(params, rank.pool)) {
      params.load(plan, fill);
      if (cache) cache->save(params, rank.pool);
    }
    if (cache) cache_note = cache->note();
  }

  VitConfig config;
  ExecutionPlan plan;
  RankContext rank;
  PersistentStore params;
  std::unique_ptr<Executor> executor;
  // Row-major parameters for the reference side of a checked run.
  ExecutionPlan plain_plan;
  std::unique_ptr<PersistentStore> plain_params;
  int64_t count = 0;
  std::string cache_note;
};

Engine::Engine(const OpenedModel& model, const EngineOptions& options)
    : parts_(std::make_unique<Parts>(model.card().config, options, model_filler(model), &model)) {}
Engine::Engine(const VitConfig& config, const EngineOptions& options)
    : parts_(std::make_unique<Parts>(config, options, rule_filler(), nullptr)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

const VitConfig& Engine::config() const {
  return parts_->config;
}
const ExecutionPlan& Engine::plan() const {
  return parts_->plan;
}
const Executor& Engine::executor() const {
  return *parts_->executor;
}
const std::string& Engine::cache_note() const {
  return parts_->cache_note;
}
int64_t Engine::batch() const {
  return parts_->executor->input("pictures").shape().local('B');
}
size_t Engine::picture_elems() const {
  return static_cast<size_t>(parts_->executor->input("pictures").desc().elems() / batch());
}

void Engine::run(std::span<const float> pictures, int64_t count) {
  VT_CHECK(count >= 1 && count <= batch(), "%lld pictures for a batch of %lld", static_cast<long long>(count),
           static_cast<long long>(batch()));
  VT_CHECK(pictures.size() == static_cast<size_t>(count) * picture_elems(), "%zu floats are no %lld pictures",
           pictures.size(), static_cast<long long>(count));
  const TensorView input = parts_->executor->input("pictures");
  auto* target = static_cast<std::byte*>(input.data());
  convert_floats(pictures.data(), DType::kF32, target, input.dtype(), pictures.size());
  const size_t filled = pictures.size() * size_of(input.dtype());
  std::fill(target + filled, target + input.desc().bytes(), std::byte{0});
  parts_->count = count;
  if (parts_->plain_params)
    parts_->executor->run_checked(*parts_->plain_params);
  else
    parts_->executor->run();
}

namespace {
template <typename T>
std::vector<T> rows_of(const TensorView& view, int64_t count, DType dtype) {
  const int64_t elems = view.desc().elems() / view.shape()[0].local * count;
  std::vector<T> values(static_cast<size_t>(elems));
  convert_floats(view.data(), view.dtype(), values.data(), dtype, values.size());
  return values;
}
}  // namespace

std::vector<float> Engine::output(const std::string& name) const {
  return rows_of<float>(parts_->executor->output(name), parts_->count, DType::kF32);
}

std::vector<double> Engine::output_f64(const std::string& name) const {
  return rows_of<double>(parts_->executor->output(name), parts_->count, DType::kF64);
}

Shape Engine::output_shape(const std::string& name) const {
  return parts_->executor->output(name).shape();
}

bool Engine::has_output(const std::string& name) const {
  const std::vector<Output>& outputs = parts_->plan.program.outputs;
  return std::any_of(outputs.begin(), outputs.end(), [&](const Output& out) { return out.name == name; });
}

void Engine::reset_times() {
  parts_->executor->reset_times();
}

}  // namespace vitrail
