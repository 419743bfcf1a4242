#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/precision.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/cmd_plan.h"
#include "cli/commands.h"
#include "cli/deepspeed_choice.h"
#include "cli/device_choice.h"
#include "cli/field_settings.h"
#include "cli/model_choice.h"
#include "cli/train_plan.h"
#include "io/find_model.h"
#include "measure/calibrate.h"
#include "measure/device_check.h"
#include "measure/inference_plan.h"
#include "measure/parameter_table.h"
#include "measure/profile.h"
#include "measure/step_programs.h"
#include "measure/target_table.h"
#include "plan/largest_batch.h"
#include "simulate/cluster_plan.h"

namespace vitrail::cli {

namespace {
// Refuses what only the other of training and inference has.
void refuse_other_kind(const Options& options, bool training) {
  const std::string& after = options.text("dump-after");
  const auto passes = inference_passes();
  if (training && options.text("dtype") == "int8")
    throw Error(ErrorKind::kUsage, "training computes in f32, bf16, f16, fp8 or tf32, not in int8",
                "without --train or a training config an inference is planned");
  if (!training && !after.empty() && std::find(passes.begin(), passes.end(), after) == passes.end())
    throw Error(ErrorKind::kUsage, strf("--dump-after %s is of training", after.c_str()),
                "--train plans a training step");
}

EngineOptions planned_engine(const Options& options, const PlanTarget& target) {
  EngineOptions engine = read_engine_options(options, target.device.backend);
  if (target.named) engine.kernels = nullptr;  // a tuned table belongs to this machine
  if (options.given("mesh")) take_last_rank(inference_mesh(options), engine);
  return engine;
}

// The rows of one of the models that are named.
std::vector<TargetRow> rows_of(const Options& options, const std::vector<std::string>& files,
                               Console& console) {
  std::optional<PlannedRun> run;
  if (asks_for_training(options)) run = run_to_plan(options);
  const TargetOptions wanted{static_cast<int>(options.integer("threads")), options.text("isa")};
  return plan_on_all(files, wanted, [&](const PlanTarget& target, TargetRow& row) {
    if (run) return fill_row(planned_run(*run, options, target.device), target, row);
    fill_row(InferencePlan(choose_model(options, console).config, planned_engine(options, target), target),
             row);
  });
}

void run_on_all(const Options& options, Console& console) {
  const std::vector<std::string> files =
      named_device_files(options.text("targets"), shipped_places("devices", "configs/devices"));
  const std::vector<std::string_view> models = split(options.text("model"), ',');
  std::vector<TargetRow> rows;
  for (const std::string_view model : models)
    for (TargetRow& row : rows_of(options.with("model", std::string(model)), files, console)) {
      if (models.size() > 1) row.model = model;
      rows.push_back(std::move(row));
    }
  if (options.given("figure")) write_file(options.text("figure"), to_svg(memory_figure(rows)));
  print_plan(rows, console);
}

void run_plan(const Options& options, Console& console) {
  require_one_question(given_by_command(options));
  if (options.text("parameters") == "table-1") return print_plan(table_one(), console);
  if (options.given("parameters") && asks_for_training(options)) {
    const RunPlan plan = planned_run(options, read_plan_target(options).device);
    return print_plan(parameter_table(plan.setup().step.model), console);
  }
  if (options.given("parameters"))
    return print_plan(parameter_table(choose_model(options, console).config), console);
  if (options.given("targets")) return run_on_all(options, console);
  refuse_other_kind(options, asks_for_training(options));
  if (asks_for_training(options)) return run_train_plan(options, console);
  const ModelChoice choice = choose_model(options, console);
  const PlanTarget target = read_plan_target(options);
  const EngineOptions engine = planned_engine(options, target);
  if (options.given("dump-after")) {
    const std::string text = dump_program(choice.config, engine, options.text("dump-after"));
    console.print_json({{"after", options.text("dump-after")}, {"program", text}});
    return console.print(text);
  }
  const InferencePlan planned(choice.config, engine, target);
  print_plan(planned, console);
  for (const std::string& line : kernel_lines(planned.plan)) console.detail(line);
  for (const std::string& line : declined_lines(planned.plan)) console.detail(line);
  if (!planned.fits())
    console.say(strf("warning: this does not fit; the largest batch that does is %s",
                     largest_batch_text(planned.largest_batch).c_str()));
}
}  // namespace

IsGiven given_by_command(const Options& options) {
  return [&](const std::string& key) { return given_on_command_line(options, key); };
}

PlanTarget read_plan_target(const Options& options) {
  TargetRequest request{.places = shipped_places("devices", "configs/devices"),
                        .device = options.text("device"),
                        .threads = static_cast<int>(options.integer("threads")),
                        .isa = options.text("isa")};
  if (options.given("target")) request.file = options.text("target");
  if (request.file && !named_device(request.device, "--device").on_host)
    throw Error(ErrorKind::kUsage, "--target and --device cuda name two devices", "leave one of them out");
  return measured_target(std::move(request), options.text("backend"));
}

Command plan_command() {
  const std::vector<OptionSpec> own = {
      {.name = "dump-after",
       .help = "print the program after this pass; in training the micro-batch's; from last_micro on, other "
               "programs",
       .metavar = "PASS",
       .choices = dumps_of_training(),
       .former_choices = {{"reduce_products", "gemm_precision"}}},
      {.name = "target",
       .help = "plan for the device of this file or name (h200), which need not be here",
       .metavar = "DEVICE"},
      {.name = "targets",
       .help = "one table over several devices: all that have a file, or names (t4,h200)",
       .metavar = "all|NAMES"},
      {.name = "figure", .help = "with --targets: the memory as bars, an SVG file", .metavar = "FILE"},
      {.name = "parameters",
       .help = "parameters by part, beside the formula of the study \"Exploring the Computational Power of "
               "ViTs\"; "
               "=table-1: its Table 1, counted again",
       .metavar = "WHAT",
       .choices = {"model", "table-1"},
       .implied = "model"},
      {.name = "wanted-batch",
       .help = "the ways to train with so many images an update on --target that fit, the fastest first",
       .kind = ValueKind::kInteger,
       .metavar = "N"},
      {.name = "dtype",
       .help = "what GEMMs are computed in: f32, bf16 or int8; on a GPU f32, bf16, f16, fp8 or tf32, and "
               "with --train too",
       .metavar = "TYPE",
       .fallback = "f32",
       .choices = model_types()}};
  std::vector<OptionSpec> engine = engine_options(1);
  std::erase_if(engine, [](const OptionSpec& spec) { return spec.name == "dtype"; });
  CommandSpec spec{
      .name = "plan",
      .summary = "before running: parameters, FLOPs, memory, time, the largest batch that fits",
      .examples = {{"plan --model vit_large_patch16_224 --batch 32", "nothing is loaded or allocated"},
                   {"plan --model vit_base_patch16_224 --image 384", "another input size"},
                   {"plan --config configs/demo-fashion.json", "a training run: what train would allocate"},
                   {"plan --train --model vit_base_patch16_224 --batch 16 --classes 10 --recompute block",
                    "a training step without config or data; --batch is the micro-batch"},
                   {"plan --model vit_small_patch16_224 --set model.depth=24",
                    "a variation of an architecture"},
                   {"plan --dump-after fuse", "the program itself, one line a node"},
                   {"plan --model vit_base_patch16_224 --target configs/devices/desk.json",
                    "memory and time on another machine (bench calibrate makes such files)"},
                   {"plan --train --model vit_base_patch16_224 --batch 256 --dtype bf16 --target h200",
                    "a training step on a GPU that is not here; --device cuda for one that is"},
                   {"plan --train --model vit_base_patch16_224 --batch 512 --targets all",
                    "on every device that has a file: does it fit, how large a batch does, how fast"},
                   {"plan --train --model vit_base_patch32_224,vit_base_patch8_224 --batch 512 --targets t4",
                    "several models in one table"},
                   {"plan --model vit_large_patch16_224 --parameters", "by part: attention, MLP, head, ..."},
                   {"plan --train --model vit_base_patch16_224 --target t4 --wanted-batch 512",
                    "which type, recomputation, micro-batch, offload and mesh fit, ranked by predicted time"},
                   {"plan --deepspeed ds.json --mesh dp=8",
                    "the config that a DeepSpeed JSON becomes, as --config takes it; the plan on stderr"},
                   {"plan --train --model vit_large_patch16_224 --batch 32 --mesh dp=4,tp=2,zero=3",
                    "one of eight ranks: its memory, and what ranks exchange"},
                   {"plan --model vit_large_patch16_224 --batch 8 --mesh dp=2,tp=4",
                    "the same of an inference"},
                   {"plan --cluster dgx-a100 --nodes 4 --target h200 -m vit_large_patch16_224 --batch 64",
                    "which mesh, and what an update costs; --batch is a device's, with --mesh a dp rank's"},
                   {"plan -v", "also why faster kernels declined, where any did"}},
      .options = architecture_options() + train_plan_options() + own + options_of(cluster_fields()) + engine};
  add_train_settings(spec);
  return {spec, run_plan};
}

}  // namespace vitrail::cli
