#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/model_choice.h"
#include "cli/timing.h"
#include "telemetry/format.h"
#include "telemetry/spread.h"
#include "telemetry/table.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;
constexpr size_t kMaxResultBytes = 1 << 20;

struct Result {
  std::string model, device;
  int64_t batch = 0;
  size_t peak_bytes = 0;
  Spread seconds;
  double images_per_second = 0, gflops = 0, peak_gflops = 0;
  std::vector<float> logits;
};

// The JSON of an earlier run.
struct Saved {
  std::string path, model;
  int64_t batch = 0;
  double seconds = 0;
};

Saved read_saved(const std::string& path) {
  const Json json = parse_json(read_file(path, kMaxResultBytes), path);
  const auto field = [&](const char* name) { return json.is_object() ? json.value(name, Json()) : Json(); };
  const Json model = field("model"), batch = field("batch"), time = field("ms_median");
  if (!model.is_string() || !batch.is_number_integer() || !time.is_number() || !(time.get<double>() > 0))
    throw Error(ErrorKind::kData, strf("%s is no result of vitrail bench", path.c_str()),
                "one saved with: vitrail bench infer --json > FILE");
  return {path, model, batch, time.get<double>() / 1e3};
}

void refuse_another(const Saved& saved, const std::string& model, int64_t batch) {
  if (saved.model != model || saved.batch != batch)
    throw Error(ErrorKind::kUsage,
                strf("%s measured %s at batch %lld, this run is of %s at batch %lld", saved.path.c_str(),
                     saved.model.c_str(), static_cast<long long>(saved.batch), model.c_str(),
                     static_cast<long long>(batch)),
                strf("--model %s --batch %lld", saved.model.c_str(), static_cast<long long>(saved.batch)));
}

Result measure(const Options& options, const std::optional<Saved>& saved, Console& console) {
  const ModelChoice choice = choose_model(options, console);
  const EngineOptions settings = read_engine_options(options);
  if (saved) refuse_another(*saved, choice.name, settings.batch);
  Engine engine = choice.engine(settings);
  Result result;
  result.model = choice.name;
  result.device = device_text(engine.plan());
  result.batch = engine.batch();
  result.peak_bytes = engine.plan().memory.peak_bytes();
  console.detail(strf("%s, batch %lld, on %s", result.model.c_str(), static_cast<long long>(result.batch),
                      result.device.c_str()));
  result.peak_gflops = peak_of(engine.plan());
  result.seconds = spread_of(time_runs(engine, options, console, "bench"));
  const double batch = static_cast<double>(result.batch);
  result.images_per_second = batch / result.seconds.median;
  result.gflops = 2 * static_cast<double>(count_macs(choice.config)) * batch / result.seconds.median / 1e9;
  if (options.flag("logits")) {
    result.logits = engine.output(engine.has_output("logits") ? "logits" : "features");
    result.logits.resize(result.logits.size() / static_cast<size_t>(result.batch));
  }
  return result;
}

ordered_json as_json(const Result& r) {
  ordered_json json = {{"model", r.model},
                       {"device", r.device},
                       {"batch", r.batch},
                       {"runs", r.seconds.count},
                       {"img_per_s", r.images_per_second},
                       {"ms_median", r.seconds.median * 1e3},
                       {"ms_p90", r.seconds.p90 * 1e3},
                       {"ms_min", r.seconds.min * 1e3},
                       {"ms_max", r.seconds.max * 1e3},
                       {"gflops", r.gflops},
                       {"peak_gflops", r.peak_gflops},
                       {"peak_fraction", r.gflops / r.peak_gflops},
                       {"memory_peak", r.peak_bytes}};
  if (!r.logits.empty()) json["logits"] = r.logits;
  return json;
}

std::string as_text(const Result& r) {
  const Spread& s = r.seconds;
  return format_pairs(
      {{"model", strf("%s, batch %lld", r.model.c_str(), static_cast<long long>(r.batch))},
       {"on", r.device},
       {"latency", strf("%s median, %s min, %s p90, %s max over %zu runs", format_seconds(s.median).c_str(),
                        format_seconds(s.min).c_str(), format_seconds(s.p90).c_str(),
                        format_seconds(s.max).c_str(), s.count)},
       {"throughput", strf("%s images/s", format_si(r.images_per_second).c_str())},
       {"rate", strf("%s GFLOP/s, %.1f %% of the %s measured peak", format_si(r.gflops).c_str(),
                     100 * r.gflops / r.peak_gflops, format_si(r.peak_gflops).c_str())},
       {"memory", format_bytes(r.peak_bytes) + " in arenas"}});
}

void run_bench(const Options& options, Console& console) {
  std::optional<Saved> saved;
  if (options.given("compare")) saved = read_saved(options.text("compare"));
  const Result result = measure(options, saved, console);
  ordered_json json = as_json(result);
  console.print(as_text(result));
  const double speed = saved ? saved->seconds / result.seconds.median : 1;
  if (saved) {
    json["speedup"] = speed;
    console.print(strf("compared  %.3f times the speed of %s\n", speed, saved->path.c_str()));
  }
  console.print_json(json);
  const double least = 1 / (1 + options.number("slack"));
  if (speed < least)
    throw Error(
        ErrorKind::kCheck,
        strf("slower than the saved result: %.3f times its speed, at least %.3f was asked for", speed, least),
        "--slack sets how much more time is accepted");
}
}  // namespace

Command bench_infer_command() {
  const std::vector<OptionSpec> own = {
      {.name = "logits", .help = "also give the first picture's logits (JSON)", .kind = ValueKind::kFlag},
      {.name = "compare", .help = "a saved result (--json); slower than it fails", .metavar = "FILE"},
      {.name = "slack",
       .help = "share of the saved time that --compare accepts on top: 1 is twice the time",
       .kind = ValueKind::kNumber,
       .metavar = "X",
       .fallback = "0.1",
       .least = 0,
       .most = 1000}};
  return {{.name = "bench infer",
           .summary = "speed of a model: latency, throughput, share of the machine's peak",
           .examples = {{"bench infer", "the bundled DeiT-Tiny, one picture at a time"},
                        {"bench infer -m vit_base_patch16_224 --batch 8 --threads 2",
                         "an architecture; no file is needed"},
                        {"bench infer --json > before.json", "keep a result"},
                        {"bench infer --compare before.json",
                         "and compare with it later; exit code 2 when slower"}},
           .options = architecture_options() + timing_options() + own + engine_options(1)},
          run_bench};
}

}  // namespace vitrail::cli
