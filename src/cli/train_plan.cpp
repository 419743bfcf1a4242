#include "cli/train_plan.h"

#include <algorithm>

#include "base/text.h"
#include "cli/deepspeed_choice.h"
#include "cli/device_choice.h"
#include "cli/environment.h"
#include "cli/field_settings.h"
#include "cli/model_choice.h"
#include "cli/train_settings.h"
#include "io/find_model.h"

namespace vitrail::cli {

namespace {

bool was_given(const Options& options, std::string_view name) {
  return options.given_beyond(name, Origin::kDefault);
}

// Applies --model: the architecture of a file, or one by name. The default model is used only where no other
// setting names a model; one that the command names replaces that of a config file with its dimensions.
void take_model(const Options& options, ModelSettings& model) {
  const bool described = !model.init.empty() || !model.arch.empty() || !model.given.empty();
  if (was_given(options, "arch")) model.arch = options.text("arch");
  if (!was_given(options, "model") && described) return;
  const std::string& name = options.text("model");
  const auto of_file = [&](const std::string& field) {
    return !given_on_command_line(options, "model." + field) &&
           !(field.starts_with("image_") && given_on_command_line(options, "model.image"));
  };
  if (given_on_command_line(options, "model")) std::erase_if(model.given, of_file);
  model.init = model.arch = {};
  if (options.text("weights") != "rule" && model_is_there(name, model_places(), model_source(options))) {
    model.init = find_model(name, model_places(), model_source(options));
    model.arch = options.text("arch");
  } else {
    model.arch = name;
  }
}

TrainConfig planned_config(const Options& options) {
  TrainConfig config = read_train_config(options);
  take_model(options, config.model);
  if (was_given(options, "image")) {
    std::tie(config.model.fields.image_height, config.model.fields.image_width) =
        parse_image_size(options.text("image"));
    config.model.given.insert({"image_height", "image_width"});
  }
  if (was_given(options, "batch"))
    take_micro_batch(options.integer("batch"), given_on_command_line(options, "train.batch"),
                     given_on_command_line(options, "train.accumulation"), config.train);
  if (was_given(options, "mesh")) take_mesh(options.text("mesh"), config.mesh);
  if (was_given(options, "optimizer")) config.optim.name = options.text("optimizer");
  if (was_given(options, "recompute")) assign_field(options, "recompute", config.train.recompute);
  return config;
}

}  // namespace

std::vector<OptionSpec> train_plan_options() {
  OptionSpec recompute = option_of(field_spec<Recompute>("recompute", "train.recompute"));
  recompute.metavar = "LEVEL";
  return {{.name = "train", .help = "a training step instead of an inference", .kind = ValueKind::kFlag},
          deepspeed_option(),
          {.name = "optimizer", .help = "optim.name", .metavar = "NAME"},
          {.name = "mesh",
           .help = "the rank of a mesh that needs most memory, and its collectives: "
                   "dp=4,tp=2,sp=1,zero=3,tokens_on_tp",
           .metavar = "AXES"},
          recompute};
}

void add_train_settings(CommandSpec& command) {
  for (OptionSpec& setting : train_settings()) {
    const auto same = [&](const OptionSpec& known) { return known.name == setting.name; };
    if (std::none_of(command.options.begin(), command.options.end(), same))
      command.options.push_back(std::move(setting));
  }
}

bool asks_for_training(const Options& options) {
  if (options.flag("train") || was_given(options, "optimizer") || was_given(options, "recompute") ||
      was_given(options, "deepspeed") || was_given(options, "cluster") || was_given(options, "wanted-batch"))
    return true;
  std::set<std::string> shared;
  for (const OptionSpec& spec : model_settings()) shared.insert(spec.name);
  for (const OptionSpec& spec : train_settings())
    if (!shared.contains(spec.name) && was_given(options, spec.name)) return true;
  return false;
}

PlannedRun run_to_plan(const Options& options) {
  PlannedRun run{planned_config(options), std::nullopt};
  run.deepspeed = with_deepspeed(options, run.config, 0);
  run.config = run.deepspeed.config;
  if (was_given(options, "classes")) run.classes = options.integer("classes");
  return run;
}

RunPlan planned_run(const PlannedRun& run, const Options& options, const DeviceInfo& device) {
  return {run.config, run.classes, device.shares_host_memory ? options.text("backend") : device.backend,
          device};
}

RunPlan planned_run(const Options& options, const DeviceInfo& device) {
  return planned_run(run_to_plan(options), options, device);
}

RankStepsRequest steps_request(const Options& options, const PlannedRun& run, const World& world,
                               RankSession& session) {
  return {.config = run.config,
          .classes = run.classes,
          .backend = chosen_backend(options),
          .device = [&options, seat = world.seat()](int i) { return chosen_device(options, seat.after(i)); },
          .variables = environment_variable,
          .heartbeat = session.heartbeat()};
}

}  // namespace vitrail::cli
