// A profile for the terminal: its headline, its tables, the time of each rank by part.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "measure/profile_page.h"
#include "measure/profile_table.h"
#include "telemetry/format.h"

namespace vitrail {

std::string headline(const Profile& p) {
  const std::string most = p.peaks.gflops > 0
                               ? strf("at most %sFLOP/s, %sB/s", format_si(1e9 * p.peaks.gflops).c_str(),
                                      format_si(1e9 * p.peaks.gbps).c_str())
                               : std::string("peaks unknown: the GPU has no room to measure them");
  return strf("%s on %s: %s %s (median of %zu); %s\n", p.what.c_str(), p.device.c_str(),
              format_seconds(p.seconds.median).c_str(), p.training ? "an update" : "a run", p.seconds.count,
              most.c_str());
}

std::string tables_of(const Profile& p, bool by_node,
                      const std::function<std::string(const std::string&)>& bold) {
  return "\n" + bold("By part of the network") + "\n" +
         profile_table(p.parts, p.peaks, ProfileColumns::kParts) + "\n" +
         bold("By step of a layer; steps joined by + run as one kernel") + "\n" +
         profile_table(p.fine, p.peaks, ProfileColumns::kParts) + "\n" +
         bold(by_node ? "By node" : "By operation") + "\n" +
         profile_table(by_node ? p.nodes : p.operations, p.peaks, ProfileColumns::kKernels) +
         "bound: the least time by the measured peaks, c of compute or m of memory; above 100 % the data "
         "came from "
         "a cache\n";
}

std::string step_tables(SyntheticSteps& steps, const Peaks& peaks,
                        const std::function<std::string(const std::string&)>& bold) {
  std::string text;
  for (const auto& [program, title] : {std::pair{&steps.micro(), "A micro-batch: forward and backward"},
                                       std::pair{&steps.update(), "The update"}})
    text += "\n" + bold(title) + "\n" +
            profile_table(profile_rows(program->plan(), program->times(), ProfileBy::kOperation), peaks,
                          ProfileColumns::kKernels);
  return text;
}

std::string rank_column(const ProfileRow& row, bool training) {
  return row.name == "communication" || !training ? row.name : phase_name(row.phase);
}

namespace {
// The columns of a table by rank: parts, or of training phases; what ranks exchange is apart.
std::vector<std::string> columns_of(const Profile& p) {
  std::vector<std::string> names;
  for (const auto& rows : p.ranks)
    for (const ProfileRow& row : rows) {
      const std::string name = rank_column(row, p.training);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  return names;
}
}  // namespace

RankTimes rank_times_of(const Profile& p) {
  RankTimes times{columns_of(p), {}};
  for (const auto& rows : p.ranks) {
    std::vector<double> seconds(times.columns.size());
    for (const ProfileRow& row : rows) {
      const auto at = std::find(times.columns.begin(), times.columns.end(), rank_column(row, p.training));
      seconds[static_cast<size_t>(at - times.columns.begin())] += row.seconds;
    }
    times.seconds.push_back(std::move(seconds));
  }
  return times;
}

std::string rank_table(const Profile& p) {
  if (p.ranks.empty()) return "";
  const RankTimes times = rank_times_of(p);
  std::vector<Column> columns = {{"rank", Align::kRight}};
  for (const std::string& name : times.columns) columns.push_back({name, Align::kRight});
  columns.push_back({"total", Align::kRight});
  Table table(columns);
  for (size_t r = 0; r < times.seconds.size(); ++r) {
    std::vector<std::string> cells = {std::to_string(r)};
    double total = 0;
    for (const double seconds : times.seconds[r]) {
      cells.push_back(format_seconds(seconds));
      total += seconds;
    }
    cells.push_back(format_seconds(total));
    table.row(cells);
  }
  return table.text();
}

nlohmann::ordered_json to_json(const ProfileResult& r) {
  nlohmann::ordered_json json = {{"model", r.model}, {"dtype", r.dtype}};
  json.update(to_json(r.own));
  json[r.by_node ? "nodes" : "operations"] = to_json(r.by_node ? r.own.nodes : r.own.operations);
  if (r.beside) json["beside"] = to_json(*r.beside);
  if (r.seed) json["seed-000"] = to_json(*r.seed);
  if (!r.sweep.rows.empty()) json["sweep"] = to_json(r.sweep);
  return json;
}

std::string to_text(const ProfileResult& r, const std::function<std::string(const std::string&)>& bold) {
  std::string text = headline(r.own);
  const auto titled = [&](const char* title, const std::string& table) {
    if (!table.empty()) text += "\n" + bold(title) + "\n" + table;
  };
  if (r.beside) {
    text += headline(*r.beside);
    titled("Side by side", beside_table({r.own.backend, r.own.parts, r.own.peaks},
                                        {r.beside->backend, r.beside->parts, r.beside->peaks}));
  }
  if (r.seed)
    titled("Table I of the paper", seed_table(*r.seed, r.own.parts) + "\n" + seed_explanation(*r.seed));
  text += tables_of(r.own, r.by_node, bold);
  titled("By rank", rank_table(r.own));
  if (!r.sweep.rows.empty()) titled("Sweep", to_text(r.sweep));
  return text;
}

}  // namespace vitrail
