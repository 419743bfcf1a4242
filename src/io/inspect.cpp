#include "io/inspect.h"

#include <fnmatch.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/free_memory.h"
#include "base/text.h"
#include "io/cards/card_text.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

// Reads in parts where the file has them: a tensor may be far larger than the file that announces it, or than
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

std::vector<InspectedTensor> read_rows(const TensorSource& source, const InspectRequest& request) {
  std::vector<InspectedTensor> rows;
  const size_t total = source.tensors().size();
  for (size_t i = 0; i < total; ++i) {
    const TensorInfo& info = source.tensors()[i];
    if (request.progress) request.progress(i + 1, total);
    if (!request.filter.empty() && ::fnmatch(request.filter.c_str(), info.name.c_str(), 0) != 0) continue;
    InspectedTensor row{info, std::nullopt};
    if (request.stats) row.stats = read_stats(source, i);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text.empty() ? "scalar" : text;
}
}  // namespace

ModelContents inspect_model(const InspectRequest& request) {
  ModelContents report;
  report.path = request.path;
  std::unique_ptr<TensorSource> source = open_tensors(report.path);
  try {
    report.card = open_model(report.path, {.arch = request.arch})->card();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData && error.kind() != ErrorKind::kConfig) throw;
    report.not_a_model = error.what();
  }
  report.format = source->format();
  report.stored = source->tensors().size();
  report.metadata = source->metadata();
  report.rows = read_rows(*source, request);
  for (const InspectedTensor& row : report.rows) {
    report.bytes += row.info.bytes;
    report.elems += static_cast<int64_t>(row.info.bytes / size_of(row.info.dtype));
    if (row.stats) report.not_finite += row.stats->nan + row.stats->inf;
  }
  return report;
}

ordered_json to_json(const ModelContents& report) {
  ordered_json json = {{"path", report.path}, {"format", report.format}, {"metadata", report.metadata}};
  json["model"] = report.card ? card_json(*report.card) : ordered_json(nullptr);
  if (!report.card) json["not_a_model"] = report.not_a_model;
  json["tensors"] = ordered_json::array();
  for (const InspectedTensor& row : report.rows) {
    ordered_json tensor = {{"name", row.info.name},
                           {"dtype", to_string(row.info.dtype)},
                           {"shape", row.info.shape},
                           {"bytes", row.info.bytes}};
    if (row.stats) {
      const TensorStats& s = *row.stats;
      tensor["min"] = s.min;
      tensor["max"] = s.max;
      tensor["mean"] = s.mean;
      tensor["nan"] = s.nan;
      tensor["inf"] = s.inf;
    }
    json["tensors"].push_back(std::move(tensor));
  }
  json["total"] = {{"tensors", report.rows.size()}, {"elems", report.elems}, {"bytes", report.bytes}};
  return json;
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

std::vector<std::string> warnings_of(const ModelContents& report, const std::string& filter) {
  std::vector<std::string> lines;
  if (report.card) lines = report.card->warnings;
  if (!filter.empty() && report.rows.empty())
    lines.push_back(strf("none of the %s has a name that matches %s",
                         format_count(static_cast<int64_t>(report.stored), "tensor").c_str(),
                         quoted(filter).c_str()));
  if (report.not_finite > 0)
    lines.push_back(
        strf("of the numbers, %s NaN or infinite",
             report.not_finite == 1 ? "1 is" : (format_integer(report.not_finite) + " are").c_str()));
  return lines;
}

}  // namespace vitrail
