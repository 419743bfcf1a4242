#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/bench_result.h"
#include "cli/commands.h"
#include "cli/model_choice.h"
#include "cli/timing.h"
#include "ops/fused.h"

namespace vitrail::cli {

namespace {

// Of the first picture.
std::vector<float> first_logits(const Engine& engine) {
  std::vector<float> logits = engine.output(engine.has_output("logits") ? "logits" : "features");
  logits.resize(logits.size() / static_cast<size_t>(engine.batch()));
  return logits;
}

bool has_first_attention(const Program& program) {
  return std::any_of(program.nodes.begin(), program.nodes.end(),
                     [](const Node& node) { return is_first_attention(*node.op); });
}

void run_bench(const Options& options, Console& console) {
  const std::optional<SavedBench> saved = SavedBench::read(options);
  const ModelChoice choice = choose_model(options, console);
  const EngineOptions settings = read_engine_options(options);
  Engine engine = choice.engine(settings);
  BenchResult result{.model = choice.name,
                     .device = device_text(engine.plan()),
                     .dtype = options.text("dtype"),
                     .batch = settings.batch};
  if (saved) saved->refuse_another(result);
  result.peak_bytes = engine.plan().memory.peak_bytes();
  result.foreign_bytes = engine.device().foreign_bytes();
  const bool from_tokens = has_first_attention(engine.plan().program);
  result.flops = 2 * static_cast<double>(count_run_macs(choice.config, from_tokens) * result.batch);
  result.model_flops = 2 * static_cast<double>(count_macs(choice.config) * result.batch);
  console.detail(strf("%s, batch %lld, on %s", result.model.c_str(), static_cast<long long>(result.batch),
                      result.device.c_str()));
  result.peak_gflops = peak_of(engine.plan());
  result.seconds = spread_of(time_runs(engine, options, console, "bench"));
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (options.flag("logits")) json["logits"] = first_logits(engine);
  report_bench(result, saved, options, {{"dtype", result.dtype}}, json, console);
}
}  // namespace

Command bench_infer_command() {
  const std::vector<OptionSpec> own = {
      {.name = "logits", .help = "also give the first picture's logits (JSON)", .kind = ValueKind::kFlag}};
  return {
      {.name = "bench infer",
       .summary = "speed of a model: latency, throughput, share of the machine's peak",
       .examples = {{"bench infer", "the bundled DeiT-Tiny, one picture at a time"},
                    {"bench infer -m vit_base_patch16_224 --batch 8 --threads 2",
                     "an architecture; no file is needed"},
                    {"bench infer -m vit_base_patch16_224 --batch 256 --device cuda --dtype bf16",
                     "on a GPU"},
                    {"bench infer --json > before.json", "keep a result"},
                    {"bench infer --compare before.json",
                     "and compare with it later; exit code 2 when slower"}},
       .options = architecture_options() + timing_options() + own + comparison_options() + engine_options(1)},
      run_bench};
}

}  // namespace vitrail::cli
