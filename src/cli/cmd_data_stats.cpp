#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/timing.h"
#include "cli/commands.h"
#include "cli/data_work.h"
#include "data/statistics.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

std::string class_table(const Dataset& data, const std::vector<int64_t>& counts, size_t rows) {
  constexpr int kBar = 30;
  int64_t most = 1;
  for (const int64_t count : counts) most = std::max(most, count);
  Table table({{"class"}, {"name"}, {"samples", Align::kRight}, {"share", Align::kRight}, {""}});
  for (size_t i = 0; i < std::min(rows, counts.size()); ++i) {
    const double share = static_cast<double>(counts[i]) / static_cast<double>(data.size());
    table.row({std::to_string(i), shown(data.classes()[i]), format_integer(counts[i]), format_percent(share),
               format_bar(static_cast<double>(counts[i]) / static_cast<double>(most), kBar)});
  }
  std::string text = table.text(2);
  if (rows < counts.size()) text += strf("  and %zu more (--classes)\n", counts.size() - rows);
  return text;
}

ordered_json spread_json(const Spread& spread) {
  return {{"min", spread.min}, {"median", spread.median}, {"max", spread.max}};
}
std::string spread_text(const Spread& spread) {
  return spread.min == spread.max ? strf("%.0f", spread.min)
                                  : strf("%.0f to %.0f, median %.0f", spread.min, spread.max, spread.median);
}
std::string numbers_text(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += strf("%s%.4f", text.empty() ? "" : ", ", value);
  return text;
}

void run_stats(const Options& options, Console& console) {
  const std::unique_ptr<Dataset> data = open_chosen_data(options);
  ThreadPool pool(data_threads(options));
  const int64_t limit = options.integer("limit");
  WorkProgress progress(console, "stats", limit > 0 ? std::min(limit, data->size()) : data->size());
  const auto [statistics, looked_at, bad] = statistics_of(*data, limit, pool, progress.hooks());
  progress.finish();
  const std::vector<int64_t> counts = class_counts(*data);
  ordered_json json = {{"data", options.positional(0)},
                       {"part", options.text("part")},
                       {"count", data->size()},
                       {"multi_label", data->multi_label()},
                       {"classes", ordered_json::array()},
                       {"looked_at", looked_at},
                       {"bad", bad}};
  for (size_t i = 0; i < counts.size(); ++i)
    json["classes"].push_back({{"name", data->classes()[i]}, {"count", counts[i]}});
  std::vector<std::pair<std::string, std::string>> pairs = {
      {"samples", format_integer(data->size()) + (data->multi_label() ? ", several labels each" : "")},
      {"classes", format_integer(static_cast<int64_t>(counts.size()))}};
  if (statistics.count() > 0) {
    json["width"] = spread_json(statistics.widths());
    json["height"] = spread_json(statistics.heights());
    json["channels"] = statistics.channels();
    json["mean"] = statistics.mean();
    json["std"] = statistics.deviation();
    pairs.insert(pairs.end(), {{"width", spread_text(statistics.widths())},
                               {"height", spread_text(statistics.heights())},
                               {"mean", numbers_text(statistics.mean())},
                               {"std", numbers_text(statistics.deviation())}});
  }
  json["fingerprint"] = strf("%016llx", static_cast<unsigned long long>(data->fingerprint()));
  console.print_json(json);
  console.print(console.bold(shown(options.positional(0))) + "\n" + format_pairs(pairs, 2) + "\n" +
                class_table(*data, counts, options.flag("classes") ? counts.size() : 40));
  if (bad > 0)
    console.say(strf("warning: %s of %s cannot be read; vitrail data check names them",
                     format_integer(bad).c_str(), format_count(looked_at, "image").c_str()));
}

}  // namespace

Command data_stats_command() {
  return {
      {.name = "data stats",
       .summary = "what a dataset holds: samples a class, sizes, mean and deviation of the channels",
       .examples = {{"data stats folder:photos", "every image is decoded"},
                    {"data stats 'tar:train-*.tar' --limit 5000", "sizes and means of 5000 of them"},
                    {"data stats cifar10:data --part train --json",
                     R"({"count", "classes": [{"name", "count"}], "width", "height", "mean", "std"...})"}},
       .options = {part_option(),
                   {.name = "limit",
                    .help = "images to decode, spread over the set; 0: all",
                    .kind = ValueKind::kInteger,
                    .metavar = "N",
                    .fallback = "0",
                    .least = 0},
                   {.name = "classes", .help = "every class, not the first 40", .kind = ValueKind::kFlag}},
       .positionals = {data_positional()}},
      run_stats};
}

}  // namespace vitrail::cli
