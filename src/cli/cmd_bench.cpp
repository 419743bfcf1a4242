#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/bench_options.h"
#include "cli/commands.h"
#include "cli/device_choice.h"
#include "cli/model_choice.h"
#include "measure/rank_infer.h"
#include "telemetry/table.h"

namespace vitrail::cli {

namespace {

// Returns the logits of the first image.
std::vector<float> first_logits(const Engine& engine) {
  std::vector<float> logits = engine.output(engine.has_output("logits") ? "logits" : "features");
  logits.resize(logits.size() / static_cast<size_t>(engine.batch()));
  return logits;
}

// On ranks of several hosts, the one it is compared with has the cores of the first rank's.
void run_rank_bench(const Options& options, CommandRanks& ranks) {
  VT_REQUIRE(!options.given("compare"), ErrorKind::kUsage,
             "--compare is for one rank: several are compared with one on the same cores");
  const ModelChoice choice = choose_model(options, ranks.console());
  const EngineOptions settings = read_engine_options(options);
  ranks.require_same({{"the model", choice.name}});
  std::optional<RankInferResult> result;
  ranks.run(settings, [&](InferenceRank& rank, Console& console) {
    const SignalGuard stop;
    BenchProgress progress(console, "bench", 0);
    EngineOptions alone = settings;
    alone.threads = rank.threads * ranks.sharing();
    const RankInferResult measured =
        time_rank_infer({.make = [&](const EngineOptions& o) { return choice.engine(o); },
                         .shared = rank.on_rank(settings),
                         .alone = alone,
                         .budget = read_timing(options),
                         .hooks = progress.hooks(),
                         .stop = [&] { return stop.wanted(); }});
    if (rank.team().leads()) result = measured;
  });
  if (!result) return;
  nlohmann::ordered_json json = {
      {"model", choice.name}, {"dtype", options.text("dtype")}, {"transport", ranks.transport()}};
  json.update(to_json(*result));
  ranks.console().print_json(json);
  std::vector<std::pair<std::string, std::string>> rows = {
      {"model", strf("%s, %s", choice.name.c_str(), options.text("dtype").c_str())},
      {"ranks", strf("%d (%s)", ranks.size(), ranks.transport())}};
  for (auto& row : text_rows(*result)) rows.push_back(std::move(row));
  ranks.console().print(format_pairs(rows));
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

void run(const Options& options, Console& console) {
  on_ranks(options, console, [&](CommandRanks& ranks) {
    if (ranks.size() > 1) return run_rank_bench(options, ranks);
    ranks.run({}, [&](InferenceRank&, Console& own) { run_bench(options, own); });
  });
}
}  // namespace

Command bench_infer_command() {
  const std::vector<OptionSpec> own = {
      {.name = "logits", .help = "also give the first image's logits (JSON)", .kind = ValueKind::kFlag}};
  return {{.name = "bench infer",
           .summary = "speed of a model: latency, throughput, share of the machine's peak",
           .examples = {{"bench infer", "the bundled DeiT-Tiny, one image at a time"},
                        {"bench infer -m vit_base_patch16_224 --batch 8 --threads 2",
                         "an architecture; no file is needed"},
                        {"bench infer -m vit_base_patch16_224 --batch 256 --device cuda --dtype bf16",
                         "on a GPU"},
                        {"bench infer -m vit_base_patch16_224 --mesh dp=2,tp=2",
                         "four ranks that share images and model, against one on the same cores"},
                        {"bench infer --json > before.json", "keep a result"},
                        {"bench infer --compare before.json",
                         "and compare with it later; exit code 2 when slower"}},
           .options = architecture_options() + timing_options() + own + comparison_options() +
                      rank_options() + engine_options(1),
           .infers = true},
          run};
}

}  // namespace vitrail::cli
