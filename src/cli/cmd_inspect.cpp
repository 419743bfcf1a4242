#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/progress.h"
#include "io/cards/card_text.h"
#include "io/find_model.h"
#include "io/inspect.h"
#include "models/zoo.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

std::string input_text(const VitConfig& c) {
  return strf("%lld x %lld", static_cast<long long>(c.image_height), static_cast<long long>(c.image_width));
}

// Lists the names that --arch and --model accept.
void list_architectures(Console& console) {
  ordered_json json = ordered_json::array();
  Table table({{"architecture"},
               {"parameters", Align::kRight},
               {"GMACs", Align::kRight},
               {"input"},
               {"pooled by"},
               {"GELU"},
               {"images"}});
  for (const auto& [config, preprocess] : zoo()) {
    const double gmacs = static_cast<double>(count_macs(config)) / 1e9;
    json.push_back({{"name", config.arch},
                    {"params", count_params(config)},
                    {"macs", count_macs(config)},
                    {"image_height", config.image_height},
                    {"image_width", config.image_width},
                    {"pool", enum_name(config.pool)},
                    {"gelu", enum_name(config.gelu)},
                    {"images", preprocess_text(preprocess)}});
    table.row({config.arch, format_integer(count_params(config)), strf("%.2f", gmacs), input_text(config),
               enum_name(config.pool), enum_name(config.gelu), preprocess_text(preprocess)});
  }
  console.print_json(json);
  console.print(table.text());
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text.empty() ? "scalar" : text;
}

std::string tensor_table(const ModelContents& report, bool stats) {
  std::vector<Column> columns = {{"tensor"}, {"type"}, {"shape"}, {"size", Align::kRight}};
  if (stats)
    for (const char* title : {"min", "max", "mean", "nan/inf"}) columns.push_back({title, Align::kRight});
  Table table(columns);
  for (const InspectedTensor& row : report.rows) {
    std::vector<std::string> cells = {shown(row.info.name), to_string(row.info.dtype),
                                      shape_text(row.info.shape), format_bytes(row.info.bytes)};
    if (row.stats)
      for (const std::string& cell :
           {format_significant(row.stats->min), format_significant(row.stats->max),
            format_significant(row.stats->mean), format_integer(row.stats->nan + row.stats->inf)})
        cells.push_back(cell);
    table.row(cells);
  }
  table.rule();
  table.row({format_count(static_cast<int64_t>(report.rows.size()), "tensor"), "",
             format_count(report.elems, "number"), format_bytes(report.bytes)});
  return table.text();
}

void run_inspect(const Options& options, Console& console) {
  if (options.flag("architectures")) return list_architectures(console);
  if (options.positionals().empty())
    throw Error(ErrorKind::kUsage, "vitrail inspect needs FILE",
                "a weight file, a model folder or a bundled model's name");
  std::optional<Progress> progress;
  const ModelContents report =
      inspect_model({.path = find_model(options.positional(0), model_places()),
                     .arch = options.text("arch"),
                     .filter = options.text("filter"),
                     .stats = options.flag("stats"),
                     .progress = [&](size_t, size_t total) {
                       if (!progress)
                         progress.emplace(console, "inspect", "tensors", static_cast<int64_t>(total));
                       progress->advance(1);
                     }});
  progress.reset();
  console.print_json(to_json(report));
  console.print(console.bold(report.path) + " (" + report.format + ")\n");
  if (report.card) console.print(card_text(*report.card, 2));
  if (!report.card) console.print("  no model card: " + report.not_a_model + "\n");
  for (const auto& [key, value] : report.metadata)
    console.print("  metadata " + shown(key) + ": " + quoted(value) + "\n");
  if (!options.flag("summary")) console.print("\n" + tensor_table(report, options.flag("stats")));
  if (report.card)
    for (const std::string& line : report.card->warnings) console.say("warning: " + line);
  if (options.given("filter") && report.rows.empty())
    console.say(strf("warning: none of the %s has a name that matches %s",
                     format_count(static_cast<int64_t>(report.stored), "tensor").c_str(),
                     quoted(options.text("filter")).c_str()));
  if (report.not_finite > 0)
    console.say(strf("warning: of the numbers, %s NaN or infinite",
                     report.not_finite == 1 ? "1 is" : (format_integer(report.not_finite) + " are").c_str()));
}
}  // namespace

Command inspect_command() {
  return {
      {.name = "inspect",
       .summary = "what a weight file or model folder holds: card, tensors, totals",
       .examples = {{"inspect deit_tiny_patch16_224",
                     "the bundled model: architecture, numerics, every tensor"},
                    {"inspect model.safetensors --stats", "also min, max, mean, and a search for NaN"},
                    {"inspect weights.npz --filter '*attn*'", "only tensors whose name matches"},
                    {"inspect checkpoint.pth --json", "one JSON object; nothing in the file is executed"},
                    {"inspect --architectures", "every name that --arch and --model take"}},
       .options =
           {{.name = "stats", .help = "read every tensor: min, max, mean, NaN", .kind = ValueKind::kFlag},
            {.name = "summary", .help = "leave out the tensor table", .kind = ValueKind::kFlag},
            {.name = "filter", .help = "only tensors whose name matches (* and ?)", .metavar = "PATTERN"},
            {.name = "arch",
             .help = "timm's name of the architecture, when the file leaves a choice",
             .metavar = "NAME"},
            {.name = "architectures", .help = "list the known ones instead", .kind = ValueKind::kFlag}},
       .positionals = {{"FILE", "safetensors, npz, pth or bin file, model folder, or a bundled model's name",
                        0, 1}}},
      run_inspect};
}

}  // namespace vitrail::cli
