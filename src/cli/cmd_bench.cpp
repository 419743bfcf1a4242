#include <nlohmann/json.hpp>

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

Result measure(const Options& options, Console& console) {
  const ModelChoice choice = choose_model(options, console);
  Engine engine = choice.engine(read_engine_options(options));
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

// Against the JSON of an earlier run: how much faster, and whether that is too slow.
void compare(const Options& options, const Result& now, ordered_json& json, Console& console) {
  const std::string& path = options.text("compare");
  const Json before = parse_json(read_file(path, kMaxResultBytes), path);
  const bool usable = before.is_object() && before.contains("ms_median") && before["ms_median"].is_number() &&
                      before.value("batch", Json()).is_number() && before.value("model", Json()).is_string();
  VT_REQUIRE(usable, ErrorKind::kData, "%s is no result of vitrail bench --json", path.c_str());
  VT_REQUIRE(before["model"] == now.model && before["batch"] == now.batch, ErrorKind::kUsage,
             "%s measured %s at batch %s, this run another", path.c_str(), before["model"].dump().c_str(),
             before["batch"].dump().c_str());
  const double speed = before["ms_median"].get<double>() / (now.seconds.median * 1e3);
  json["speedup"] = speed;
  console.print(strf("compared  %.3f times the speed of %s\n", speed, path.c_str()));
}

void run_bench(const Options& options, Console& console) {
  const Result result = measure(options, console);
  ordered_json json = as_json(result);
  console.print(as_text(result));
  if (options.given("compare")) compare(options, result, json, console);
  console.print_json(json);
  const double least = options.number("slack");
  if (json.contains("speedup") && json["speedup"].get<double>() < 1 - least)
    throw Error(ErrorKind::kCheck,
                strf("slower than the saved result: %.3f times its speed, at least %.3f was asked for",
                     json["speedup"].get<double>(), 1 - least),
                "--slack sets how much slower is accepted");
}
}  // namespace

Command bench_infer_command() {
  const std::vector<OptionSpec> own = {
      {.name = "logits", .help = "also give the first picture's logits (JSON)", .kind = ValueKind::kFlag},
      {.name = "compare", .help = "a saved result (--json); slower than it fails", .metavar = "FILE"},
      {.name = "slack",
       .help = "share by which --compare may be slower",
       .kind = ValueKind::kNumber,
       .metavar = "X",
       .fallback = "0.1",
       .least = 0,
       .most = 1}};
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
