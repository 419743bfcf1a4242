#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/cmd_plan.h"
#include "cli/commands.h"
#include "cli/device_choice.h"
#include "cli/field_settings.h"
#include "cli/model_choice.h"
#include "cli/train_plan.h"
#include "io/find_model.h"
#include "measure/calibrate.h"
#include "measure/inference_plan.h"
#include "measure/profile.h"
#include "measure/target_table.h"
#include "simulate/cluster_plan.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace {
// Refuses options that only a training config can change.
void refuse_training_only(const Options& options) {
  const std::string& after = options.text("dump-after");
  const auto passes = inference_passes();
  if (!after.empty() && std::find(passes.begin(), passes.end(), after) == passes.end())
    throw Error(ErrorKind::kUsage, strf("--dump-after %s is a pass of training", after.c_str()),
                "--train plans a training step");
}

void refuse_inference_only(const Options& options) {
  if (options.text("dtype") == "int8")
    throw Error(ErrorKind::kUsage, "training computes in f32, bf16, f16, fp8 or tf32, not in int8",
                "without --train or a training config an inference is planned");
}

// Plans the last rank: parts are cut so that none is larger.
void take_rank(const Options& options, EngineOptions& engine) {
  if (!options.given("mesh")) return;
  const MeshConfig wanted = inference_mesh(options);
  validate(wanted);
  const auto ranks = static_cast<int>(std::max<int64_t>(wanted.dp, 1) * wanted.tp * wanted.sp);
  engine.distribution = {.mesh = mesh_of(resolved(wanted, ranks), ranks - 1),
                         .tokens_on_tp = wanted.tokens_on_tp};
  engine.batch = std::max<int64_t>(engine.batch, engine.distribution.mesh.size(Axis::kData));
}

void run_on_all(const Options& options, Console& console) {
  const std::vector<std::string> files =
      named_device_files(options.text("targets"), shipped_places("devices", "configs/devices"));
  const PlannedRun run = run_to_plan(options);
  for (const char* name : {"target", "cluster", "dump-after"})
    VT_REQUIRE(!options.given(name), ErrorKind::kUsage, "--targets and --%s ask for different things", name);
  const TargetOptions wanted{static_cast<int>(options.integer("threads")), options.text("isa")};
  const std::vector<TargetRow> rows =
      plan_on_all(files, wanted, [&](const PlanTarget& target, TargetRow& row) {
        if (asks_for_training(options))
          return fill_row(planned_run(run, options, target.device), target, row);
        EngineOptions engine = read_engine_options(options, target.device.backend);
        engine.kernels = nullptr;
        take_rank(options, engine);
        fill_row(InferencePlan(choose_model(options, console).config, engine, target), row);
      });
  console.print_json(to_json(rows));
  console.print(to_text(rows));
}

void run_plan(const Options& options, Console& console) {
  if (options.given("targets")) return run_on_all(options, console);
  for (const char* name : {"nodes", "devices", "one-device-s", "trace"})
    VT_REQUIRE(options.given("cluster") || !options.given(name), ErrorKind::kUsage,
               "--%s goes with --cluster", name);
  if (asks_for_training(options)) {
    refuse_inference_only(options);
    return run_train_plan(options, console);
  }
  refuse_training_only(options);
  const ModelChoice choice = choose_model(options, console);
  const PlanTarget target = read_plan_target(options);
  EngineOptions engine = read_engine_options(options, target.device.backend);
  if (target.file) engine.kernels = nullptr;  // a tuned table belongs to this machine
  take_rank(options, engine);
  if (options.given("dump-after")) {
    const std::string text = dump_program(choice.config, engine, options.text("dump-after"));
    console.print_json({{"after", options.text("dump-after")}, {"program", text}});
    return console.print(text);
  }
  const InferencePlan planned(choice.config, engine, target);
  console.print_json(to_json(planned));
  console.print(to_text(planned));
  for (const std::string& line : kernel_lines(planned.plan)) console.detail(line);
  for (const std::string& line : declined_lines(planned.plan)) console.detail(line);
  if (!planned.fits())
    console.say(strf("warning: this does not fit; the largest batch that does is %s",
                     format_integer(planned.largest_batch).c_str()));
}
}  // namespace

PlanTarget read_plan_target(const Options& options) {
  const auto threads = static_cast<int>(options.integer("threads"));
  const std::string& isa = options.text("isa");
  const std::optional<int> ordinal = parse_cuda(options.text("device"));
  if (!options.given("target")) return ordinal ? gpu_target(*ordinal) : processor_target(threads, isa);
  if (ordinal)
    throw Error(ErrorKind::kUsage, "--target and --device cuda name two devices", "leave one of them out");
  return file_target(read_device_file(find_device_file(options.text("target"),
                                                       shipped_places("devices", "configs/devices"))),
                     threads, isa);
}

Command plan_command() {
  const std::vector<OptionSpec> own = {
      {.name = "dump-after",
       .help = "print the program as this pass leaves it; of training, the micro-batch's",
       .metavar = "PASS",
       .choices = {micro_passes().begin(), micro_passes().end()},
       .former_choices = {{"reduce_products", "gemm_precision"}}},
      {.name = "target",
       .help = "plan for the device of this file or name (h200), which need not be here",
       .metavar = "DEVICE"},
      {.name = "targets",
       .help = "one table over several devices: all that have a file, or names (t4,h200)",
       .metavar = "all|NAMES"},
      {.name = "dtype",
       .help = "what GEMMs are computed in: f32, bf16 or int8; on a GPU f32, bf16, f16, fp8 or tf32, and "
               "with --train too",
       .metavar = "TYPE",
       .fallback = "f32",
       .choices = {"f32", "bf16", "int8", "f16", "fp8", "tf32"}}};
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
                   {"plan --deepspeed ds.json --mesh dp=8",
                    "the config that a DeepSpeed JSON becomes, as --config takes it; the plan on stderr"},
                   {"plan --train --model vit_large_patch16_224 --batch 32 --mesh dp=4,tp=2,zero=3",
                    "one of eight ranks: its memory, and what ranks exchange"},
                   {"plan --model vit_large_patch16_224 --batch 8 --mesh dp=2,tp=4",
                    "the same of an inference"},
                   {"plan --cluster dgx-a100 --nodes 4 --target h200 -m vit_large_patch16_224 --batch 64",
                    "which mesh, and what an update costs there; --batch is a device's"},
                   {"plan -v", "also why faster kernels declined, where any did"}},
      .options = architecture_options() + train_plan_options() + own + options_of(cluster_fields()) + engine};
  add_train_settings(spec);
  return {spec, run_plan};
}

}  // namespace vitrail::cli
