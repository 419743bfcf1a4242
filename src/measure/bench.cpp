#include "measure/bench.h"

#include <nlohmann/json.hpp>
#include <tuple>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "ops/fused.h"
#include "plan/devices.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;
constexpr size_t kMaxResultBytes = 1 << 20;

// Returns whether two results measured the same work; a device's text names its instruction set and threads.
bool same_work(const BenchResult& a, const BenchResult& b) {
  const auto key = [](const BenchResult& r) {
    return std::tie(r.training, r.model, r.batch, r.dtype, r.device);
  };
  return key(a) == key(b);
}

// Returns "bench infer of vit_tiny_patch16_224 at batch 1 in f32 on cpu (avx2, 2 threads)".
std::string as_phrase(const BenchResult& r) {
  return strf("%s of %s at batch %lld in %s on %s", r.training ? "bench train" : "bench infer",
              r.model.c_str(), static_cast<long long>(r.batch), r.dtype.c_str(), r.device.c_str());
}

std::string share_text(const BenchResult& r) {
  if (r.peak_gflops <= 0) return "of an unknown peak: the GPU has no room to measure it";
  return strf("%.1f %% of the %sFLOP/s measured peak", 100 * r.gflops() / r.peak_gflops,
              format_si(1e9 * r.peak_gflops).c_str());
}

bool has_first_attention(const Program& program) {
  return std::any_of(program.nodes.begin(), program.nodes.end(),
                     [](const Node& node) { return is_first_attention(*node.op); });
}
}  // namespace

BenchResult described(const Engine& engine, const std::string& name, const std::string& dtype) {
  BenchResult result{
      .model = name, .device = device_text(engine.plan()), .dtype = dtype, .batch = engine.batch()};
  result.peak_bytes = engine.plan().memory.peak_bytes();
  result.foreign_bytes = engine.device().foreign_bytes();
  const bool from_tokens = has_first_attention(engine.plan().program);
  result.flops = 2 * static_cast<double>(count_run_macs(engine.config(), from_tokens) * result.batch);
  result.model_flops = 2 * static_cast<double>(count_macs(engine.config()) * result.batch);
  return result;
}

ordered_json to_json(const BenchResult& r) {
  ordered_json json = {{"model", r.model}, {"device", r.device}, {"dtype", r.dtype}};
  if (r.training) json["training"] = true;
  json.update(
      {{"batch", r.batch},
       {"runs", r.seconds.count},
       {"img_per_s", r.images_per_second()},
       {"ms_median", r.seconds.median * 1e3},
       {"ms_p90", r.seconds.p90 * 1e3},
       {"ms_min", r.seconds.min * 1e3},
       {"ms_max", r.seconds.max * 1e3},
       {"gflops", r.gflops()},
       {"model_gflop", 1e-9 * r.model_flops},
       {"peak_gflops", r.peak_gflops > 0 ? ordered_json(r.peak_gflops) : ordered_json()},
       {"peak_fraction", r.peak_gflops > 0 ? ordered_json(r.gflops() / r.peak_gflops) : ordered_json()},
       {"memory_peak", r.peak_bytes}});
  if (r.foreign_bytes > 0) json["memory_foreign"] = r.foreign_bytes;
  return json;
}

std::vector<std::pair<std::string, std::string>> text_rows(const BenchResult& r) {
  const Spread& s = r.seconds;
  std::vector<std::pair<std::string, std::string>> rows = {
      {"model", strf("%s, batch %lld", r.model.c_str(), static_cast<long long>(r.batch))},
      {"on", r.device},
      {r.training ? "step" : "latency",
       strf("%s median, %s min, %s p90, %s max over %zu %s", format_seconds(s.median).c_str(),
            format_seconds(s.min).c_str(), format_seconds(s.p90).c_str(), format_seconds(s.max).c_str(),
            s.count, r.training ? "steps" : "runs")},
      {"throughput", strf("%s images/s", format_si(r.images_per_second()).c_str())},
      {"rate", format_si(1e9 * r.gflops()) + "FLOP/s, " + share_text(r)},
      {"memory", format_bytes(r.peak_bytes) + " in arenas"}};
  if (r.foreign_bytes > 0)
    rows.emplace_back("foreign", format_bytes(r.foreign_bytes) + " of the driver and its libraries");
  return rows;
}

void require_speed(double speed, double slack) {
  const double least = 1 / (1 + slack);
  if (speed < least)
    throw Error(
        ErrorKind::kCheck,
        strf("slower than the saved result: %.3f times its speed, at least %.3f was asked for", speed, least),
        "--slack sets how much more time is accepted");
}

SavedBench SavedBench::read(const std::string& path) {
  SavedBench saved;
  saved.path_ = path;
  const Json json = parse_json(read_file(saved.path_, kMaxResultBytes), saved.path_);
  const auto field = [&](const char* name) { return json.is_object() ? json.value(name, Json()) : Json(); };
  const Json batch = field("batch"), time = field("ms_median");
  const auto is_text = [&](const char* name) { return field(name).is_string(); };
  if (!is_text("model") || !is_text("device") || !is_text("dtype") || !batch.is_number_integer() ||
      !time.is_number() || !(time.get<double>() > 0))
    throw Error(ErrorKind::kData, strf("%s is no result of vitrail bench", saved.path_.c_str()),
                "one saved with: vitrail bench infer --json > FILE");
  const auto text = [&](const char* name) { return shown(field(name).get<std::string>()); };
  saved.what_.model = text("model");
  saved.what_.device = text("device");
  saved.what_.dtype = text("dtype");
  saved.what_.training = field("training") == true;
  saved.what_.batch = batch.get<int64_t>();
  saved.seconds_ = time.get<double>() / 1e3;
  return saved;
}

void SavedBench::refuse_another(const BenchResult& run) const {
  if (same_work(what_, run)) return;
  throw Error(
      ErrorKind::kUsage,
      strf("%s measured %s; this run is %s", path_.c_str(), as_phrase(what_).c_str(), as_phrase(run).c_str()),
      "the same command, model, batch, type, threads and instruction set, or without --compare");
}

}  // namespace vitrail
