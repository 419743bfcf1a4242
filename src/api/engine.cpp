#include "api/engine.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "api/engine_fit.h"
#include "api/packed_cache.h"
#include "models/vit_init.h"
#include "runtime/transfer.h"

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

// Returns a plan with row-major parameters for the reference side of a checked run; nothing where the plan's
// own are row-major.
std::optional<ExecutionPlan> plain_params_plan(ExecutionPlan plan) {
  bool packed = false;
  for (Value& value : plan.program.values) {
    packed = packed || !value.desc.packing.empty();
    value.desc = {value.desc.dtype, value.desc.shape};
  }
  if (!packed) return std::nullopt;
  plan.memory = plan_memory(plan.program, std::vector<size_t>(plan.program.nodes.size(), 0));
  return plan;
}

}  // namespace

// State shared by the engines of one model: the device with its threads, the parameters, and the arenas in
// which their programs take turns.
struct Engine::Shared {
  // Loads the parameters from `model`, or fills them by `fill` where it is null.
  Shared(const VitConfig& vit, const EngineOptions& wanted, const ParamFiller& fill, const OpenedModel* model)
      : config(vit),
        options(wanted),
        plan(plan_inference(vit, wanted)),
        own_rank(wanted.rank ? nullptr : std::make_unique<RankContext>(plan.device)),
        rank(wanted.rank ? *wanted.rank : *own_rank) {
    if (options.check_reference) plain_plan = plain_params_plan(plan);
    const MemoryPlan& memory = plan.memory;
    const size_t arena_bytes = std::max(memory.transient_bytes, options.arena_bytes),
                 staging_bytes = std::max(memory.staging_bytes, options.staging_bytes);
    require_fit(plan, memory.persistent_bytes + arena_bytes + staging_bytes,
                plain_plan ? plain_plan->memory.persistent_bytes : 0, rank, vit, options);
    params = std::make_unique<PersistentStore>(plan, rank);
    if (options.when_it_fits) options.when_it_fits();
    options.when_it_fits = {};
    load_params(fill, model);
    arena = Buffer(arena_bytes, Category::kTransient, rank.memory());
    staging = Buffer(staging_bytes, Category::kStaging, rank.memory());
    if (!plain_plan) return;
    plain_params = std::make_unique<PersistentStore>(*plain_plan, rank);
    plain_params->load(*plain_plan, fill);
  }

  void load_params(const ParamFiller& fill, const OpenedModel* model) {
    std::optional<PackedCache> cache;
    const bool wanted = model && !options.cache_folders.empty();
    if (wanted && options.distribution.active())
      cache_note = "no cache: a rank keeps its own part of the parameters";
    else if (wanted && rank.hardware->shares_host_memory())
      cache.emplace(*model, plan, options.cache_folders);
    else if (wanted)
      cache_note = "no cache: a GPU packs nothing that would be worth keeping";
    if (!cache || !cache->load(*params, rank.pool)) {
      params->load(plan, fill);
      if (cache) cache->save(*params, rank.pool);
    }
    if (cache) cache_note = cache->note();
  }

  VitConfig config;
  EngineOptions options;
  ExecutionPlan plan;
  std::optional<ExecutionPlan> plain_plan;
  std::unique_ptr<RankContext> own_rank;
  RankContext& rank;
  std::unique_ptr<PersistentStore> params, plain_params;
  Buffer arena, staging;
  std::string cache_note;
};

struct Engine::Parts {
  explicit Parts(std::shared_ptr<Shared> common)
      : shared(std::move(common)),
        plan(shared->plan),
        executor(plan, *shared->params, shared->rank, &shared->arena, &shared->staging) {}

  // Makes another program over the same parameters, in the same arenas where they are large enough.
  Parts(std::shared_ptr<Shared> common, const EngineOptions& options)
      : shared(std::move(common)),
        own_plan(plan_sharing(shared->config, options, shared->plan)),
        plan(*own_plan),
        own_arena(beyond(shared->arena, plan.memory.transient_bytes, options), Category::kTransient,
                  shared->rank.memory()),
        own_staging(beyond(shared->staging, plan.memory.staging_bytes, options), Category::kStaging,
                    shared->rank.memory()),
        executor(plan, *shared->params, shared->rank, own_arena.bytes() > 0 ? &own_arena : &shared->arena,
                 own_staging.bytes() > 0 ? &own_staging : &shared->staging) {}

  // Returns 0 where the shared buffer has room for `bytes`; otherwise `bytes`, after a check that memory
  // suffices.
  size_t beyond(const Buffer& common, size_t bytes, const EngineOptions& options) const {
    if (bytes <= common.bytes()) return 0;
    require_fit(plan, bytes, 0, shared->rank, shared->config, options);
    return bytes;
  }

  std::shared_ptr<Shared> shared;
  std::optional<ExecutionPlan> own_plan;
  const ExecutionPlan& plan;
  Buffer own_arena, own_staging;
  Executor executor;
  int64_t count = 0;
};

Engine::Engine(const OpenedModel& model, const EngineOptions& options)
    : parts_(std::make_unique<Parts>(
          std::make_shared<Shared>(model.card().config, options, model_filler(model), &model))) {}
Engine::Engine(const VitConfig& config, const EngineOptions& options)
    : parts_(std::make_unique<Parts>(std::make_shared<Shared>(config, options, rule_filler(), nullptr))) {}
Engine::Engine(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

Engine Engine::sharing(const EngineOptions& options) const {
  const EngineOptions& own = parts_->shared->options;
  VT_CHECK(options.backend == own.backend && options.ordinal == own.ordinal && options.dtype == own.dtype &&
               options.compute == own.compute && options.arithmetic == own.arithmetic &&
               !options.check_reference,
           "engines that share parameters must compute alike");
  return Engine(std::make_unique<Parts>(parts_->shared, options));
}

const EngineOptions& Engine::options() const {
  return parts_->shared->options;
}
const VitConfig& Engine::config() const {
  return parts_->shared->config;
}
const ExecutionPlan& Engine::plan() const {
  return parts_->plan;
}
const Executor& Engine::executor() const {
  return parts_->executor;
}
const std::string& Engine::cache_note() const {
  return parts_->shared->cache_note;
}
int64_t Engine::batch() const {
  return parts_->executor.input("images").shape().local('B');
}
size_t Engine::image_elems() const {
  return static_cast<size_t>(parts_->executor.input("images").desc().elems() / batch());
}

void Engine::run(std::span<const float> images, int64_t count) {
  VT_CHECK(count >= 1 && count <= batch(), "%lld images for a batch of %lld", static_cast<long long>(count),
           static_cast<long long>(batch()));
  VT_CHECK(images.size() == static_cast<size_t>(count) * image_elems(), "%zu floats are no %lld images",
           images.size(), static_cast<long long>(count));
  write_floats(parts_->shared->rank, parts_->executor.input("images"), images);
  parts_->count = count;
  run_again();
}

bool Engine::keeps_inputs() const {
  return parts_->executor.keeps_inputs();
}

void Engine::run_again() {
  const Shared& shared = *parts_->shared;
  if (shared.options.check_reference)
    parts_->executor.run_checked(shared.plain_params ? *shared.plain_params : *shared.params);
  else
    parts_->executor.run();
}

namespace {
size_t row_elems(const TensorView& view, int64_t count) {
  return static_cast<size_t>(view.desc().elems() / view.shape()[0].local * count);
}
}  // namespace

std::vector<float> Engine::output(const std::string& name) const {
  const TensorView view = parts_->executor.output(name);
  std::vector<float> values(row_elems(view, parts_->count));
  read_floats(parts_->shared->rank, view, values);
  return values;
}

std::vector<double> Engine::output_f64(const std::string& name) const {
  const TensorView view = parts_->executor.output(name);
  std::vector<double> values(row_elems(view, parts_->count));
  read_doubles(parts_->shared->rank, view, values);
  return values;
}

bool Engine::has_output(const std::string& name) const {
  const std::vector<Output>& outputs = parts_->plan.program.outputs;
  return std::any_of(outputs.begin(), outputs.end(), [&](const Output& out) { return out.name == name; });
}

void Engine::time_nodes(bool wanted) {
  parts_->executor.time_nodes(wanted);
}

const Device& Engine::device() const {
  return *parts_->shared->rank.hardware;
}

void Engine::finish() {
  parts_->shared->rank.hardware->finish();
}

void Engine::reset_times() {
  parts_->executor.reset_times();
}

CollectiveTimes Engine::take_collective_times() {
  return std::exchange(parts_->executor.collective_times(), {});
}

}  // namespace vitrail
