// The ways to make a batch fit, as text, JSON and lines of a config.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "measure/fit_options.h"
#include "telemetry/format.h"
#include "telemetry/table.h"
#include "train/offload_time.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

constexpr size_t kShownRows = 24;

std::string micro_text(const TrainConfig& config) {
  return strf("%s x %s", format_integer(config.train.accumulation).c_str(),
              format_integer(config.train.micro_batch).c_str());
}

// Every way has the columns that differ between ways.
std::vector<std::string> cells_of(const FitOption& row, bool several) {
  const TrainConfig& config = row.config;
  std::vector<std::string> cells = {enum_name(config.train.dtype), enum_name(config.train.recompute),
                                    micro_text(config), enum_name(config.mesh.offload)};
  if (several) {
    cells.push_back(mesh_text(config.mesh));
    cells.push_back(std::to_string(config.mesh.zero));
  }
  return cells;
}

std::string row_table(const FitOptions& options) {
  const bool several = options.ranks > 1;
  std::vector<Column> columns = {{"dtype"}, {"recompute"}, {"micro-batches", Align::kRight}, {"offload"}};
  if (several) columns.insert(columns.end(), {{"mesh"}, {"ZeRO", Align::kRight}});
  columns.insert(columns.end(), {{"memory", Align::kRight},
                                 {"on the host", Align::kRight},
                                 {"update", Align::kRight},
                                 {"img/s", Align::kRight}});
  Table table(columns);
  for (size_t i = 0; i < std::min(kShownRows, options.rows.size()); ++i) {
    const FitOption& row = options.rows[i];
    std::vector<std::string> cells = cells_of(row, several);
    cells.insert(cells.end(),
                 {format_bytes(row.peak_bytes), row.host_bytes > 0 ? format_bytes(row.host_bytes) : "",
                  format_seconds(row.update_s), format_si(row.images_s())});
    table.row(cells);
  }
  std::string text = table.text();
  if (options.rows.size() > kShownRows)
    text += strf("and %zu slower ones (--json has them)\n", options.rows.size() - kShownRows);
  return text;
}

bool any_offload(const FitOptions& options) {
  for (const FitOption& row : options.rows)
    if (row.config.mesh.offload != Offload::kNone) return true;
  return false;
}

std::string notes_of(const FitOptions& options) {
  std::string text;
  if (any_offload(options))
    text += strf("Offload assumes %.0f GB/s between host and device and %.0f GB/s for the host's updates.\n",
                 kHostLinkBytes / 1e9, kHostUpdateBytes / 1e9);
  if (options.ranks > 1 && !options.network)
    text += "What ranks exchange is not in these times: --cluster NETWORK has it.\n";
  return text;
}

std::string nowhere(const FitOptions& options) {
  const FitOption& least = *options.least;
  std::string how;
  for (const std::string& cell : cells_of(least, options.ranks > 1)) how += (how.empty() ? "" : ", ") + cell;
  return strf("No way fits. Nearest: %s (dtype, recompute, micro-batches, offload%s) needs %s, %s more.\n",
              how.c_str(), options.ranks > 1 ? ", mesh, ZeRO" : "", format_bytes(least.peak_bytes).c_str(),
              format_bytes(least.peak_bytes - options.available_bytes).c_str());
}

ordered_json row_json(const FitOption& row, bool timed) {
  const TrainConfig& config = row.config;
  ordered_json json = {{"settings", settings_of(row)},
                       {"dtype", enum_name(config.train.dtype)},
                       {"recompute", enum_name(config.train.recompute)},
                       {"micro_batch", config.train.micro_batch},
                       {"accumulation", config.train.accumulation},
                       {"offload", enum_name(config.mesh.offload)},
                       {"mesh", mesh_text(config.mesh)},
                       {"zero", config.mesh.zero},
                       {"memory", row.peak_bytes},
                       {"host_memory", row.host_bytes}};
  if (timed) json.update({{"update_s", row.update_s}, {"images_s", row.images_s()}});
  return json;
}
}  // namespace

ordered_json settings_of(const FitOption& option) {
  const TrainConfig& config = option.config;
  const MeshConfig& mesh = config.mesh;
  ordered_json json = {{"train",
                        {{"batch", config.train.batch},
                         {"micro_batch", config.train.micro_batch},
                         {"dtype", enum_name(config.train.dtype)},
                         {"recompute", enum_name(config.train.recompute)}}}};
  if (mesh.dp * mesh.tp * mesh.sp > 1) json["mesh"] = {{"dp", mesh.dp}, {"tp", mesh.tp}, {"sp", mesh.sp}};
  if (mesh.zero > 0) json["mesh"]["zero"] = mesh.zero;
  if (mesh.offload != Offload::kNone) json["mesh"]["offload"] = enum_name(mesh.offload);
  return json;
}

ordered_json to_json(const FitOptions& options) {
  ordered_json json = {{"target", options.device},     {"batch", options.batch},
                       {"ranks", options.ranks},       {"memory_available", options.available_bytes},
                       {"basis", options.basis},       {"exchange_timed", options.network},
                       {"plans", options.plans},       {"fits", !options.rows.empty()},
                       {"ways", ordered_json::array()}};
  for (const FitOption& row : options.rows) json["ways"].push_back(row_json(row, true));
  if (options.least) json["nearest"] = row_json(*options.least, false);
  return json;
}

std::string to_text(const FitOptions& options) {
  std::vector<std::pair<std::string, std::string>> pairs = {
      {"wanted", format_integer(options.batch) + " images an update"},
      {"on", strf("%s%s, %s available%s",
                  options.ranks > 1 ? strf("%lld x ", static_cast<long long>(options.ranks)).c_str() : "",
                  options.device.c_str(), format_bytes(options.available_bytes).c_str(),
                  options.ranks > 1 ? " on each" : "")},
      {"planned",
       strf("%s, %s", format_count(options.plans, "step").c_str(),
            options.rows.empty() ? "none fits"
                                 : (format_count(static_cast<int64_t>(options.rows.size()), "way") +
                                    " to fit, the fastest first")
                                       .c_str())}};
  if (!options.rows.empty()) pairs.emplace_back("times", options.basis);
  std::string text = format_pairs(pairs) + "\n";
  if (options.rows.empty()) return text + nowhere(options);
  text += row_table(options) + notes_of(options);
  return text + "\nThe first as lines of a config (a training takes its own config and these):\n" +
         settings_of(options.rows[0]).dump(2) + "\n";
}

}  // namespace vitrail
