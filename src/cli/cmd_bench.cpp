#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/bench_options.h"
#include "cli/commands.h"
#include "cli/model_choice.h"

namespace vitrail::cli {

namespace {

// Returns the logits of the first image.
std::vector<float> first_logits(const Engine& engine) {
  std::vector<float> logits = engine.output(engine.has_output("logits") ? "logits" : "features");
  logits.resize(logits.size() / static_cast<size_t>(engine.batch()));
  return logits;
}

void run_bench(const Options& options, Console& console) {
  const std::optional<SavedBench> saved = read_saved(options);
  const ModelChoice choice = choose_model(options, console);
  const EngineOptions settings = read_engine_options(options);
  Engine engine = choice.engine(settings);
  BenchResult result = described(engine, choice.name, options.text("dtype"));
  if (saved) saved->refuse_another(result);
  console.detail(strf("%s, batch %lld, on %s", result.model.c_str(), static_cast<long long>(result.batch),
                      result.device.c_str()));
  result.peak_gflops = peak_of(engine.plan());
  result.seconds = [&] {
    BenchProgress progress(console, "bench", 0);
    return spread_of(time_runs(engine, read_timing(options), progress.hooks()));
  }();
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (options.flag("logits")) json["logits"] = first_logits(engine);
  report_bench(result, saved, options, {{"dtype", result.dtype}}, json, console);
}
}  // namespace

Command bench_infer_command() {
  const std::vector<OptionSpec> own = {
      {.name = "logits", .help = "also give the first image's logits (JSON)", .kind = ValueKind::kFlag}};
  return {
      {.name = "bench infer",
       .summary = "speed of a model: latency, throughput, share of the machine's peak",
       .examples = {{"bench infer", "the bundled DeiT-Tiny, one image at a time"},
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
