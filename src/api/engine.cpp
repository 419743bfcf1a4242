#include "api/engine.h"

#include <algorithm>
#include <optional>

#include "api/packed_cache.h"
#include "backend/ref/kernels.h"
#include "backend/registry.h"
#include "models/rule_weights.h"
#include "plan/largest_batch.h"
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

}  // namespace

ExecutionPlan plan_inference(const VitConfig& config, const EngineOptions& options) {
  return plan_inference(config, options, engine_device(options));
}

DeviceInfo engine_device(const EngineOptions& options) {
  return find_entry(options.backend).find({options.ordinal, options.threads, options.isa});
}

ExecutionPlan plan_inference(const VitConfig& config, const EngineOptions& options, DeviceInfo device) {
  device.parallel_heads = options.parallel_heads;
  device.parallel_rows = options.parallel_rows;
  device.parallel_softmax = options.parallel_softmax;
  device.kernels = options.kernels;
  const Backend& backend = find_backend(options.backend);
  require_arithmetic(backend, device, options.arithmetic);
  return plan_execution(engine_program(config, options), backend, device);
}

Program engine_program(const VitConfig& config, const EngineOptions& options, const AfterPass& after) {
  Program recorded = record_vit(config, {.batch = options.batch,
                                         .dtype = options.dtype,
                                         .features = options.features,
                                         .layers = options.layers,
                                         .attention = options.attention,
                                         .attention_block = options.attention_block,
                                         .probabilities = options.probabilities});
  const Rewrites rewrites{
      .arithmetic = options.arithmetic,
      .precision = {.compute = options.compute, .residual = options.compute, .keep_masters = false},
      .fuse = options.fuse,
      .traits = find_backend(options.backend).traits()};
  return inference_program(std::move(recorded), rewrites, after);
}

namespace {

std::string mib(size_t bytes) {
  return strf("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

// The largest batch that fits; 0: none does.
int64_t fitting_batch(const VitConfig& config, EngineOptions options, const DeviceInfo& device,
                      size_t available) {
  return largest_batch(1, available, [&](int64_t batch) {
    options.batch = batch;
    return plan_inference(config, options, device).memory.peak_bytes();
  });
}

// "transient 3.1 GiB, parameters 0.3 GiB": what takes most, the largest first.
std::string largest_consumers(const MemoryPlan& memory) {
  std::vector<std::pair<size_t, const char*>> rows;
  for (size_t c = 0; c < kCategoryCount; ++c)
    rows.emplace_back(memory.by_category[c], to_string(static_cast<Category>(c)));
  std::sort(rows.rbegin(), rows.rend());
  std::string text;
  for (size_t i = 0; i < 3 && rows[i].first > 0; ++i)
    text += strf("%s%s %s", i > 0 ? ", " : "", rows[i].second, mib(rows[i].first).c_str());
  return text;
}

// Row-major parameters for the reference side of a checked run; none where the plan's own are row-major.
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

// What to try where `available` bytes are too few, `checked` of them being the check's.
std::string remedy(const ExecutionPlan& plan, size_t checked, size_t available, const VitConfig& config,
                   const EngineOptions& options) {
  const auto batch_beside = [&](size_t beside) {
    return available > beside ? fitting_batch(config, options, plan.device, available - beside) : 0;
  };
  const HeldBeside& held = plan.device.shares_host_memory ? options.beside : HeldBeside{};
  if (const int64_t fits = batch_beside(checked + held.bytes()))
    return strf("--batch %lld fits", static_cast<long long>(fits));
  const size_t others = plan.memory.peak_bytes() + checked + held.batches_bytes;
  const int64_t decoders = held.decoder_bytes > 0 && available > others
                               ? static_cast<int64_t>((available - others) / held.decoder_bytes)
                               : 0;
  if (decoders > 0)
    return strf("%s%lld: fewer images are decoded at once", held.option.c_str(),
                static_cast<long long>(decoders));
  if (held.decoder_bytes > 0 && batch_beside(checked + held.batches_bytes + held.decoder_bytes) > 0)
    return strf("%s1 and a smaller --batch: fewer images are decoded at once", held.option.c_str());
  if (held.decoder_bytes > 0 && batch_beside(checked) > 0)
    return "smaller images: the model fits, but not with one of these being decoded beside it";
  return "a smaller model: one image does not fit either";
}

// Refuses before anything is allocated, with what would be needed (the check's parameters too) and what would
// fit.
const ExecutionPlan& require_fit(const ExecutionPlan& plan, size_t checked, const RankContext& rank,
                                 const VitConfig& config, const EngineOptions& options) {
  const MemoryPlan& memory = plan.memory;
  const HeldBeside held = rank.hardware->shares_host_memory() ? options.beside : HeldBeside{};
  const size_t needed = memory.peak_bytes() + checked + held.bytes();
  const FreeMemory available = rank.available();
  if (available.bytes == 0 || needed <= available.bytes) return plan;
  const auto row = [](const char* name, size_t bytes) {
    return bytes > 0 ? strf(", %s %s", name, mib(bytes).c_str()) : std::string();
  };
  throw Error(ErrorKind::kMemory,
              strf("batch %lld needs %s (%s%s%s%s); %s is %s", static_cast<long long>(options.batch),
                   mib(needed).c_str(), largest_consumers(memory).c_str(),
                   row("the check's own parameters", checked).c_str(),
                   row("batches made ahead", held.batches_bytes).c_str(),
                   row("images being decoded", held.bytes() - held.batches_bytes).c_str(),
                   mib(available.bytes).c_str(), available.where.c_str()),
              remedy(plan, checked, available.bytes, config, options));
}

}  // namespace

struct Engine::Parts {
  // `model`: where the parameters come from; null: the rule `fill` follows.
  Parts(const VitConfig& vit, const EngineOptions& options, const ParamFiller& fill, const OpenedModel* model)
      : config(vit),
        checked(options.check_reference),
        plan(plan_inference(vit, options)),
        plain_plan(checked ? plain_params_plan(plan) : std::nullopt),
        rank(plan.device),
        params(require_fit(plan, plain_plan ? plain_plan->memory.persistent_bytes : 0, rank, vit, options),
               rank),
        executor(nullptr) {
    if (options.when_it_fits) options.when_it_fits();
    load_params(options, fill, model);
    executor = std::make_unique<Executor>(plan, params, rank);
    if (!plain_plan) return;
    plain_params = std::make_unique<PersistentStore>(*plain_plan, rank);
    plain_params->load(*plain_plan, fill);
  }

  void load_params(const EngineOptions& options, const ParamFiller& fill, const OpenedModel* model) {
    std::optional<PackedCache> cache;
    const bool wanted = model && !options.cache_folders.empty();
    if (wanted && rank.hardware->shares_host_memory())
      cache.emplace(*model, plan, options.cache_folders);
    else if (wanted)
      cache_note = "no cache: a GPU packs nothing that would be worth keeping";
    if (!cache || !cache->load(params, rank.pool)) {
      params.load(plan, fill);
      if (cache) cache->save(params, rank.pool);
    }
    if (cache) cache_note = cache->note();
  }

  VitConfig config;
  bool checked;
  ExecutionPlan plan;
  std::optional<ExecutionPlan> plain_plan;
  RankContext rank;
  PersistentStore params;
  std::unique_ptr<Executor> executor;
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
  write_floats(parts_->rank, parts_->executor->input("pictures"), pictures);
  parts_->count = count;
  run_again();
}

bool Engine::keeps_inputs() const {
  return parts_->executor->keeps_inputs();
}

void Engine::run_again() {
  if (parts_->checked)
    parts_->executor->run_checked(parts_->plain_params ? *parts_->plain_params : parts_->params);
  else
    parts_->executor->run();
}

namespace {
size_t row_elems(const TensorView& view, int64_t count) {
  return static_cast<size_t>(view.desc().elems() / view.shape()[0].local * count);
}
}  // namespace

std::vector<float> Engine::output(const std::string& name) const {
  const TensorView view = parts_->executor->output(name);
  std::vector<float> values(row_elems(view, parts_->count));
  read_floats(parts_->rank, view, values);
  return values;
}

std::vector<double> Engine::output_f64(const std::string& name) const {
  const TensorView view = parts_->executor->output(name);
  std::vector<double> values(row_elems(view, parts_->count));
  read_doubles(parts_->rank, view, values);
  return values;
}

Shape Engine::output_shape(const std::string& name) const {
  return parts_->executor->output(name).shape();
}

bool Engine::has_output(const std::string& name) const {
  const std::vector<Output>& outputs = parts_->plan.program.outputs;
  return std::any_of(outputs.begin(), outputs.end(), [&](const Output& out) { return out.name == name; });
}

void Engine::time_nodes(bool wanted) {
  parts_->executor->time_nodes(wanted);
}

const Device& Engine::device() const {
  return *parts_->rank.hardware;
}

void Engine::finish() {
  parts_->rank.hardware->finish();
}

void Engine::reset_times() {
  parts_->executor->reset_times();
}

}  // namespace vitrail
