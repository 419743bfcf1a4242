#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "cli/cmd_plan.h"
#include "cli/deepspeed_choice.h"
#include "cli/device_choice.h"
#include "cli/field_settings.h"
#include "cli/train_plan.h"
#include "cli/train_settings.h"
#include "io/find_model.h"
#include "measure/run_estimate.h"
#include "measure/step_programs.h"
#include "train/config_io.h"

namespace vitrail::cli {

namespace {
ClusterSettings read_cluster(const Options& options) {
  ClusterSettings settings;
  ClusterSettings::fields(settings, [&](const char* name, auto& field, const char*) {
    if (options.given(name)) assign_field(options, name, field);
  });
  return settings;
}

// Prints what a DeepSpeed file became, which --config takes.
void print_reading(const PlannedRun& run, const Options& options, nlohmann::ordered_json& json,
                   Console& console) {
  TrainConfig said = run.config;
  if (options.origin("model") == Origin::kDefault) said.model = read_train_config(options).model;
  const Json config = changed_settings(said);
  json["config"] = config;
  json["notes"] = Json::array();
  for (const auto& note : run.deepspeed.notes)
    json["notes"].push_back({{"key", note.key}, {"text", note.text}});
  console.print(json_text(config, 2) + "\n");
}
}  // namespace

void run_train_plan(const Options& options, Console& console) {
  const PlanTarget target = read_plan_target(options);
  DeviceInfo device = target.device;
  if (!target.named) device.kernels = chosen_kernels(options).table;
  const PlannedRun run = run_to_plan(options);
  say_notes(run.deepspeed, options, console);
  const auto networks = shipped_places("networks", "configs/networks");
  if (options.given("wanted-batch")) {
    return print_plan(find_fit_options({run.config, run.classes, target, options.integer("wanted-batch"),
                                        given_by_command(options), read_cluster(options), networks}),
                      console);
  }
  if (options.given("cluster"))
    return print_plan(
        plan_cluster(read_cluster(options), networks,
                     {run.config, run.classes, target, !names_a_mesh(given_by_command(options))}),
        console);
  const RunPlan plan = planned_run(run, options, device);
  for (const std::string& note : plan.notes()) console.say(note);
  if (options.given("dump-after")) {
    const std::string& pass = options.text("dump-after");
    const std::string text = dump_program(plan, pass);
    console.print_json({{"after", pass}, {"program", text}});
    return console.print(text);
  }
  const RunEstimate e = estimate_run(plan, target);
  nlohmann::ordered_json json = to_json(plan, e);
  if (options.given("deepspeed")) {
    print_reading(run, options, json, console);
    console.say(to_text(plan, e));  // beside it
  } else {
    console.print(to_text(plan, e));
  }
  console.print_json(json);
  if (const std::string text = fit_warning(plan, e); !text.empty()) console.say(text);
}

}  // namespace vitrail::cli
