#include <fnmatch.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/free_memory.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/model_card.h"
#include "cli/progress.h"
#include "io/find_model.h"
#include "io/model_files.h"
#include "io/tensor_stats.h"
#include "models/zoo.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

struct Row {
  TensorInfo info;
  std::optional<TensorStats> stats;
};

struct Report {
  std::optional<ModelCard> card;
  std::string not_a_model;  // why, when there is no card
  std::string path, format;
  std::map<std::string, std::string> metadata;
  std::vector<Row> rows;
  size_t stored = 0;  // tensors, before the filter
  int64_t elems = 0, not_finite = 0;
  uint64_t bytes = 0;
};

std::string input_text(const VitConfig& c) {
  return strf("%lld x %lld", static_cast<long long>(c.image_height), static_cast<long long>(c.image_width));
}

// The names --arch and --model take.
void list_architectures(Console& console) {
  ordered_json json = ordered_json::array();
  Table table({{"architecture"},
               {"parameters", Align::kRight},
               {"GMACs", Align::kRight},
               {"input"},
               {"pooled by"},
               {"GELU"},
               {"pictures"}});
  for (const auto& [config, preprocess] : zoo()) {
    const double gmacs = static_cast<double>(count_macs(config)) / 1e9;
    json.push_back({{"name", config.arch},
                    {"params", count_params(config)},
                    {"macs", count_macs(config)},
                    {"image_height", config.image_height},
                    {"image_width", config.image_width},
                    {"pool", enum_name(config.pool)},
                    {"gelu", enum_name(config.gelu)},
                    {"pictures", preprocess_text(preprocess)}});
    table.row({config.arch, format_integer(count_params(config)), strf("%.2f", gmacs), input_text(config),
               enum_name(config.pool), enum_name(config.gelu), preprocess_text(preprocess)});
  }
  console.print_json(json);
  console.print(table.text());
}

// In parts where the file has them: a tensor may be far larger than the file that announces it, or than
// memory.
TensorStats read_stats(const TensorSource& source, size_t index) {
  constexpr size_t kPart = size_t{16} << 20;
  const TensorInfo& info = source.tensors()[index];
  const size_t part = source.has_parts(index) ? std::min(kPart, info.bytes) : info.bytes;
  require_free_memory(part, "reading the tensor " + quoted(info.name));
  std::vector<std::byte> bytes(part);
  StatsScan scan(info.dtype);
  if (part == info.bytes) {
    source.read(index, bytes);
    scan.add(bytes);
    return scan.result();
  }
  for (size_t at = 0; at < info.bytes; at += part) {
    const auto piece = std::span(bytes).first(std::min(part, info.bytes - at));
    source.read_part(index, at, piece);
    scan.add(piece);
  }
  return scan.result();
}

std::vector<Row> read_rows(const TensorSource& source, const Options& options, Console& console) {
  const bool stats = options.flag("stats");
  const std::string& pattern = options.text("filter");
  std::vector<Row> rows;
  Progress progress(console, "inspect", "tensors", static_cast<int64_t>(source.tensors().size()));
  for (size_t i = 0; i < source.tensors().size(); ++i) {
    const TensorInfo& info = source.tensors()[i];
    progress.advance(1);
    if (!pattern.empty() && ::fnmatch(pattern.c_str(), info.name.c_str(), 0) != 0) continue;
    Row row{info, std::nullopt};
    if (stats) row.stats = read_stats(source, i);
    rows.push_back(std::move(row));
  }
  return rows;
}

// A file that is no ViT is still worth looking at: why it is none is said beside its tensors.
Report make_report(const Options& options, Console& console) {
  Report report;
  report.path = find_model(options.positional(0), model_places());
  std::unique_ptr<TensorSource> source = open_tensors(report.path);
  try {
    report.card = open_model(report.path, {.arch = options.text("arch")})->card();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData && error.kind() != ErrorKind::kConfig) throw;
    report.not_a_model = error.what();
  }
  report.format = source->format();
  report.stored = source->tensors().size();
  report.metadata = source->metadata();
  report.rows = read_rows(*source, options, console);
  for (const Row& row : report.rows) {
    report.bytes += row.info.bytes;
    report.elems += static_cast<int64_t>(row.info.bytes / size_of(row.info.dtype));
    if (row.stats) report.not_finite += row.stats->nan + row.stats->inf;
  }
  return report;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text.empty() ? "scalar" : text;
}

std::string tensor_table(const Report& report, bool stats) {
  std::vector<Column> columns = {{"tensor"}, {"type"}, {"shape"}, {"size", Align::kRight}};
  if (stats)
    for (const char* title : {"min", "max", "mean", "nan/inf"}) columns.push_back({title, Align::kRight});
  Table table(columns);
  for (const Row& row : report.rows) {
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

ordered_json as_json(const Report& report) {
  ordered_json json = {{"path", report.path}, {"format", report.format}, {"metadata", report.metadata}};
  json["model"] = report.card ? card_json(*report.card) : ordered_json(nullptr);
  if (!report.card) json["not_a_model"] = report.not_a_model;
  json["tensors"] = ordered_json::array();
  for (const Row& row : report.rows) {
    ordered_json tensor = {{"name", row.info.name},
                           {"dtype", to_string(row.info.dtype)},
                           {"shape", row.info.shape},
                           {"bytes", row.info.bytes}};
    if (row.stats) {
      const TensorStats& s = *row.stats;
      tensor["min"] = s.min, tensor["max"] = s.max, tensor["mean"] = s.mean;
      tensor["nan"] = s.nan, tensor["inf"] = s.inf;
    }
    json["tensors"].push_back(std::move(tensor));
  }
  json["total"] = {{"tensors", report.rows.size()}, {"elems", report.elems}, {"bytes", report.bytes}};
  return json;
}

void run_inspect(const Options& options, Console& console) {
  if (options.flag("architectures")) return list_architectures(console);
  if (options.positionals().empty())
    throw Error(ErrorKind::kUsage, "vitrail inspect needs FILE",
                "a weight file, a model folder or a bundled model's name");
  const Report report = make_report(options, console);
  console.print_json(as_json(report));
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
