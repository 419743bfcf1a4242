#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/data_work.h"
#include "measure/dataset_report.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace {
void run_stats(const Options& options, Console& console) {
  const std::unique_ptr<Dataset> data = open_chosen_data(options);
  ThreadPool pool(data_threads(options));
  const int64_t limit = options.integer("limit");
  WorkProgress progress(console, "stats", limit > 0 ? std::min(limit, data->size()) : data->size());
  const DatasetReport report{options.positional(0), options.text("part"), *data,
                             statistics_of(*data, limit, pool, progress.hooks()), class_counts(*data)};
  progress.finish();
  console.print_json(to_json(report));
  console.print(console.bold(shown(report.name)) + "\n" +
                to_text(report, options.flag("classes") ? report.counts.size() : 40));
  if (report.found.bad > 0)
    console.say(strf("warning: %s of %s cannot be read; vitrail data check names them",
                     format_integer(report.found.bad).c_str(),
                     format_count(report.found.looked_at, "image").c_str()));
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
