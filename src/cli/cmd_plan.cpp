#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/cmd_plan.h"
#include "cli/commands.h"
#include "cli/model_card.h"
#include "cli/model_choice.h"
#include "cli/train_plan.h"
#include "io/shipped.h"
#include "measure/calibrate.h"
#include "measure/profile.h"
#include "plan/largest_batch.h"
#include "plan/memory_table.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

// What inference may need is shown even where it is nothing.
constexpr Category kOfInference[] = {Category::kParameters, Category::kTransient, Category::kScratch,
                                     Category::kStaging};
NamedBytes rows_of(const MemoryPlan& memory) {
  return memory_rows(memory.by_category, memory.peak_bytes(), kOfInference);
}

int64_t largest_batch_within(const VitConfig& config, EngineOptions options, const PlanTarget& target) {
  return largest_batch(1, target.available_bytes, [&](int64_t batch) {
    options.batch = batch;
    return plan_inference(config, options, target.device).memory.peak_bytes();
  });
}

// The program as a pass leaves it, one line a node.
std::string dump(const VitConfig& config, const EngineOptions& options, const std::string& after) {
  std::string text;
  engine_program(config, options, [&](std::string_view pass, const Program& program) {
    if (pass == after) text = to_string(program);
  });
  return text;
}

double run_seconds(const ExecutionPlan& plan, const PlanTarget& target) {
  return estimate_seconds(plan.program, target.file->roofline(target.device.threads));
}

// "12.3 ms a run, 81.3 img/s": the target says how fast the device is.
std::string time_text(const ExecutionPlan& plan, const PlanTarget& target, double pictures) {
  const double seconds = run_seconds(plan, target);
  return strf("%s a run, %s img/s%s; by what was measured on %s", format_seconds(seconds).c_str(),
              format_si(pictures / seconds).c_str(), target.is_gpu() ? " at best" : "",
              target.file->name.c_str()) +
         unknown_text(unknown_types(plan.program, target.file->roofline(target.device.threads)));
}

ordered_json as_json(const VitConfig& config, const ExecutionPlan& plan, int64_t batch,
                     const PlanTarget& target, int64_t fits) {
  const MemoryPlan& memory = plan.memory;
  ordered_json json = {{"model", config.arch},
                       {"batch", batch},
                       {"device", device_text(plan)},
                       {"params", count_params(config)},
                       {"macs", count_macs(config)},
                       {"flops", plan.program.cost().flops},
                       {"nodes", plan.program.nodes.size()},
                       {"declined", declined_lines(plan)}};
  for (const auto& [name, bytes] : rows_of(memory)) json["memory"][name] = bytes;
  json["memory"]["peak"] = memory.peak_bytes();
  json["memory_lower_bound"] = memory.persistent_bytes + memory.lower_bound_bytes;
  json["memory_available"] = target.available_bytes;
  json["largest_batch"] = fits;
  if (target.foreign_bytes > 0) json["memory_foreign"] = target.foreign_bytes;
  if (!target.file) return json;
  json.update({{"target", target.file->name},
               {"run_s", run_seconds(plan, target)},
               {"unmeasured", unknown_types(plan.program, target.file->roofline(target.device.threads))}});
  return json;
}

std::string as_text(const VitConfig& config, const ExecutionPlan& plan, int64_t batch,
                    const PlanTarget& target, int64_t fits) {
  const MemoryPlan& memory = plan.memory;
  const auto macs = static_cast<double>(count_macs(config)), flops = plan.program.cost().flops;
  const auto pictures = static_cast<double>(batch);
  std::vector<std::pair<std::string, std::string>> rows = {
      {"model", architecture_text(config)},
      {"input", strf("%lld x %lld x %lld x %lld, %lld tokens a picture", static_cast<long long>(batch),
                     static_cast<long long>(config.channels), static_cast<long long>(config.image_height),
                     static_cast<long long>(config.image_width), static_cast<long long>(config.tokens()))},
      {"parameters", format_integer(count_params(config))},
      {"MACs", strf("%s a picture, %s in all (products of the model, all tokens)", format_si(macs).c_str(),
                    format_si(macs * pictures).c_str())},
      {"FLOPs", strf("%s a picture, %s in all (every operation that runs)",
                     format_si(flops / pictures).c_str(), format_si(flops).c_str())},
      {"runs", strf("%zu nodes on %s", plan.program.nodes.size(), device_text(plan).c_str())},
      {"least possible", format_bytes(memory.persistent_bytes + memory.lower_bound_bytes) +
                             ": most bytes alive at once, whatever the layout"},
      {"fits", strf("%s available; largest batch %s", format_bytes(target.available_bytes).c_str(),
                    format_integer(fits).c_str())}};
  if (target.foreign_bytes > 0) rows.emplace_back("foreign", foreign_text(target.foreign_bytes));
  if (target.file) rows.emplace_back("time", time_text(plan, target, pictures));
  return format_pairs(rows) + "\n" + memory_table(rows_of(memory), memory.peak_bytes());
}

void report(const VitConfig& config, const ExecutionPlan& plan, int64_t batch, const PlanTarget& target,
            int64_t fits, Console& console) {
  console.print_json(as_json(config, plan, batch, target, fits));
  console.print(as_text(config, plan, batch, target, fits));
  for (const std::string& line : kernel_lines(plan)) console.detail(line);
  for (const std::string& line : declined_lines(plan)) console.detail(line);
}

// What only a training config can change.
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

void run_plan(const Options& options, Console& console) {
  if (asks_for_training(options)) {
    refuse_inference_only(options);
    return run_train_plan(options, console);
  }
  refuse_training_only(options);
  const ModelChoice choice = choose_model(options, console);
  const PlanTarget target = read_plan_target(options);
  EngineOptions engine = read_engine_options(options, target.device.backend);
  if (target.file) engine.kernels = nullptr;  // those are of this machine
  if (options.given("dump-after")) {
    const std::string text = dump(choice.config, engine, options.text("dump-after"));
    console.print_json({{"after", options.text("dump-after")}, {"program", text}});
    return console.print(text);
  }
  const ExecutionPlan plan = plan_inference(choice.config, engine, target.device);
  const int64_t fits = largest_batch_within(choice.config, engine, target);
  report(choice.config, plan, engine.batch, target, fits, console);
  if (plan.memory.peak_bytes() > target.available_bytes)
    console.say(
        strf("warning: this does not fit; the largest batch that does is %s", format_integer(fits).c_str()));
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

std::string foreign_text(size_t bytes) {
  return format_bytes(bytes) + " of the driver and its libraries, beside what is planned";
}

Command plan_command() {
  const std::vector<OptionSpec> own = {
      {.name = "dump-after",
       .help = "print the program as this pass leaves it; of training, the micro-batch's",
       .metavar = "PASS",
       .choices = {micro_passes().begin(), micro_passes().end()}},
      {.name = "target",
       .help = "plan for the device of this file or name (h200), which need not be here",
       .metavar = "DEVICE"},
      {.name = "dtype",
       .help = "what products are computed in: f32, bf16 or int8; on a GPU f32, bf16, f16, fp8 or tf32, and "
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
                   {"plan -v", "also why faster kernels declined, where any did"}},
      .options = architecture_options() + train_plan_options() + own + engine};
  add_train_settings(spec);
  return {spec, run_plan};
}

}  // namespace vitrail::cli
