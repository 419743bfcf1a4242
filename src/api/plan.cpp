// vitrail::plan_inference and plan_training: a plan of the inside told in the terms of the public API.
#include "vitrail/plan.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "api/engine_fit.h"
#include "api/option_words.h"
#include "api/predictor.h"
#include "api/settings.h"
#include "base/file.h"
#include "base/text.h"
#include "io/find_model.h"
#include "models/zoo.h"
#include "plan/devices.h"
#include "plan/memory_table.h"
#include "plan/node_times.h"
#include "plan/target.h"
#include "train/run_plan.h"

namespace vitrail {

namespace {

PlanTarget target_for(const std::string& target, const std::string& device, int threads) {
  VT_REQUIRE(parse_device_name(device, "device").entry->on_host || target.empty(), ErrorKind::kUsage,
             "target %s and device %s name two devices: leave one of them out", quoted(target).c_str(),
             device.c_str());
  return resolve_target({.file = target.empty() ? std::nullopt : std::optional(target),
                         .places = shipped_places("devices", "configs/devices", installed_program()),
                         .device = device,
                         .threads = threads});
}

// Returns what one of the ranks of a run has: its share of this machine, or a target of its own.
PlanTarget target_for_ranks(const TrainOptions& options, const std::string& target_name) {
  const bool share = options.ranks > 1 && target_name.empty();
  const HostRank rank{.sharing = options.ranks};
  PlanTarget target = target_for(target_name, options.device,
                                 share && options.threads == 0 ? rank.threads() : options.threads);
  if (share && target.device.shares_host_memory) target.available_bytes /= static_cast<size_t>(options.ranks);
  return target;
}

// Returns the model card of a file, or that of an architecture by name.
ModelCard card_for(const std::string& model, const ModelOptions& options) {
  const OpenOptions open = open_options(options);
  const std::vector<BundledModel> bundled = bundled_models(model_places_for("", installed_program()));
  const bool named =
      std::any_of(bundled.begin(), bundled.end(), [&](auto& one) { return one.name == model; });
  std::error_code ignored;
  if (named || model.find('/') != std::string::npos || std::filesystem::exists(model, ignored))
    return open_model(find_model(model), open)->card();
  ModelCard card;
  card.config = find_architecture(model).config;
  if (open.image_height > 0) card.config.image_height = open.image_height;
  if (open.image_width > 0) card.config.image_width = open.image_width;
  validate(card.config);
  return card;
}

// Returns the programs that a Model with these options holds at once.
std::vector<EngineOptions> programs_of(const ModelCard& card, const EngineOptions& engine) {
  std::vector<EngineOptions> programs;
  for (const PredictTask task : tasks_of(card)) programs.push_back(options_for(task, card, engine));
  return programs;
}

void set_memory(const NamedBytes& rows, size_t peak, const PlanTarget& target, Plan& plan) {
  for (const auto& [name, bytes] : rows) plan.memory.push_back({name, bytes});
  plan.peak_bytes = peak;
  plan.available_bytes = target.available_bytes;
  plan.fits = peak <= target.available_bytes;
}

Plan inference_plan(const std::string& model, const ModelOptions& options, const std::string& target_name) {
  require_threads(options.threads);
  require_path(model);
  require_path(target_name);
  const PlanTarget target = target_for(target_name, options.device, options.threads);
  ModelOptions resolved = options;
  resolved.device = target.device.backend;
  const EngineOptions engine = engine_options(resolved);
  const ModelCard card = card_for(model, options);
  const std::vector<EngineOptions> programs = programs_of(card, engine);
  const ExecutionPlan planned = largest_plan(card.config, programs, options.batch, target.device);
  Plan plan;
  const MemoryPlan& memory = planned.memory;
  set_memory(memory_rows(memory.by_category, memory.peak_bytes()), memory.peak_bytes(), target, plan);
  plan.batch = options.batch;
  plan.largest_batch = fitting_batch(card.config, programs, target.device, target.available_bytes);
  plan.parameters = count_params(card.config);
  plan.flops = planned.program.cost().flops;
  plan.device = target.file ? target.file->name : device_text(planned);
  if (target.file) plan.seconds = run_seconds(planned, *target.file);
  return plan;
}

Plan training_plan(const std::string& config, const TrainOptions& options, const std::string& target_name) {
  require_threads(options.threads);
  require_ranks(options.ranks);
  require_path(target_name);
  const PlanTarget target = target_for_ranks(options, target_name);
  std::vector<std::string> notes;
  TrainConfig wanted = training_config(config, &notes);
  if (options.ranks > 1) wanted.mesh = resolved_mesh(wanted, options.ranks);
  const RunPlan run(wanted, std::nullopt, find_backend(target.device.backend), target.device);
  Plan plan;
  set_memory(run.memory_rows(), run.peak_bytes(), target, plan);
  plan.batch = run.setup().config.train.micro_batch;
  plan.largest_batch = run.largest_micro_batch(target.available_bytes);
  plan.parameters = count_params(run.setup().model->card.config);
  plan.flops = run.update_flops();
  plan.device = target.file ? target.file->name : device_text(run.step().micro);
  notes.insert(notes.end(), run.notes().begin(), run.notes().end());
  for (const std::string& note : notes) plan.notes.push_back(in_words_of("TrainOptions", note));
  if (target.file) plan.seconds = run.update_seconds(*target.file);
  return plan;
}

}  // namespace

Plan plan_inference(const std::string& model, const ModelOptions& options, const std::string& target_name) {
  return in_words_of_options("ModelOptions", [&] { return inference_plan(model, options, target_name); });
}

Plan plan_training(const std::string& config, const TrainOptions& options, const std::string& target_name) {
  return in_words_of_options("TrainOptions", [&] { return training_plan(config, options, target_name); });
}

}  // namespace vitrail
