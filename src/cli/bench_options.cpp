#include "cli/bench_options.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/model_choice.h"
#include "telemetry/table.h"

namespace vitrail::cli {

std::vector<OptionSpec> tuning_options() {
  return {{.name = "gemm",
           .help = "measure this GEMM only; may be repeated",
           .metavar = "MxNxK",
           .repeated = true,
           .former_name = "product"},
          {.name = "rounds",
           .help = "runs of each kernel; the best counts",
           .kind = ValueKind::kInteger,
           .metavar = "N",
           .fallback = "7",
           .least = 1,
           .most = 1000},
          isa_option()};
}

std::vector<GemmSize> wanted_gemms(const Options& options, const std::vector<GemmSize>& otherwise) {
  std::vector<GemmSize> sizes;
  for (const std::string& text : options.list("gemm")) sizes.push_back(parse_gemm(text));
  return sizes.empty() ? otherwise : sizes;
}

std::vector<OptionSpec> timing_options() {
  return {{.name = "seconds",
           .help = "how long to measure",
           .kind = ValueKind::kNumber,
           .metavar = "S",
           .fallback = "3",
           .least = 0,
           .most = 3600},
          {.name = "warmup",
           .help = "runs before measuring",
           .kind = ValueKind::kInteger,
           .metavar = "N",
           .fallback = "2",
           .least = 0,
           .most = 1000}};
}

TimingBudget read_timing(const Options& options) {
  return {options.integer("warmup"), options.number("seconds"),
          options.declared("steps") ? options.integer("steps") : 0};
}

TimingHooks BenchProgress::hooks(const std::function<void()>& warm) {
  return {.warm =
              [this, warm] {
                if (warm) warm();
                progress_.emplace(console_, title_, "runs", runs_);
              },
          .measured = [this] { progress_->advance(1); }};
}

std::vector<OptionSpec> comparison_options() {
  return {{.name = "compare", .help = "a saved result (--json); slower than it fails", .metavar = "FILE"},
          {.name = "slack",
           .help = "share of the saved time that --compare accepts on top: 1 is twice the time",
           .kind = ValueKind::kNumber,
           .metavar = "X",
           .fallback = "0.1",
           .least = 0,
           .most = 1000}};
}

std::optional<SavedBench> read_saved(const Options& options) {
  if (!options.given("compare")) return std::nullopt;
  return SavedBench::read(options.text("compare"));
}

void report_bench(const BenchResult& result, const std::optional<SavedBench>& saved, const Options& options,
                  const std::vector<std::pair<std::string, std::string>>& rows,
                  const nlohmann::ordered_json& json, Console& console) {
  std::vector<std::pair<std::string, std::string>> all = text_rows(result);
  all.insert(all.end(), rows.begin(), rows.end());
  const double speed = saved ? saved->seconds() / result.seconds.median : 1;
  if (saved) all.emplace_back("compared", strf("%.3f times the speed of %s", speed, saved->path().c_str()));
  console.print(format_pairs(all));
  nlohmann::ordered_json full = to_json(result);
  full.update(json);
  if (saved) full["speedup"] = speed;
  console.print_json(full);
  require_speed(speed, options.number("slack"));
}

}  // namespace vitrail::cli
