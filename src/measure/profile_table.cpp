#include "measure/profile_table.h"

#include <algorithm>

#include "base/error.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {

double per_second(double amount, double seconds) {
  return seconds > 0 ? amount / seconds : 0;
}

std::string share_text(double part, double whole) {
  return whole > 0 ? strf("%.0f %%", 100 * part / whole) : "-";
}

std::string layer_text(const ProfileRow& row) {
  return row.layers() > 0 ? format_seconds(row.seconds_per_layer()) : "";
}

std::string bound_text(const ProfileRow& row, const Peaks& peaks) {
  const double seconds = row.bound_seconds(peaks);
  return seconds > 0 ? format_seconds(seconds) + (row.bound_by_memory(peaks) ? " m" : " c") : "-";
}

// Figures from this one on, such as those of a GPU, are shown in thousands.
constexpr double kLargeGflops = 1e4;

// A table before it is text or HTML. The last row is the total.
struct Grid {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

bool has_phases(const std::vector<ProfileRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const ProfileRow& r) { return r.phase != rows[0].phase; });
}

std::vector<Column> columns_of(ProfileColumns which, bool phases, bool large) {
  std::vector<Column> columns = {{"operation"}, {"nodes", Align::kRight}, {"time", Align::kRight}};
  if (phases) columns.insert(columns.begin(), {"phase"});
  if (which == ProfileColumns::kParts) columns.push_back({"per layer", Align::kRight});
  for (const char* title :
       {"share", "", "GFLOP", large ? "TFLOP/s" : "GFLOP/s", "MB", "GB/s", "FLOP/B", "bound", "of bound"})
    columns.push_back({title, *title ? Align::kRight : Align::kLeft});
  if (which == ProfileColumns::kKernels) columns.push_back({"kernel"});
  return columns;
}

Grid grid_of(const std::vector<ProfileRow>& rows, const Peaks& peaks, ProfileColumns which) {
  const bool phases = !rows.empty() && has_phases(rows), large = peaks.gflops >= kLargeGflops;
  Grid grid{columns_of(which, phases, large), {}};
  const ProfileRow total = total_of(rows);
  const auto add = [&](const ProfileRow& row, const char* phase) {
    const double share = per_second(row.seconds, total.seconds);
    const double rate = per_second(row.flops, row.seconds) / 1e9;
    std::vector<std::string> cells;
    if (phases) cells.emplace_back(phase);
    for (const std::string& cell : {row.name, format_integer(row.nodes), format_seconds(row.seconds)})
      cells.push_back(cell);
    if (which == ProfileColumns::kParts) cells.push_back(layer_text(row));
    for (const std::string& cell :
         {format_percent(share), format_bar(share, 10), strf("%.3f", row.flops / 1e9),
          strf("%.1f", large ? rate / 1e3 : rate), strf("%.1f", row.bytes / 1e6),
          strf("%.1f", per_second(row.bytes, row.seconds) / 1e9),
          row.bytes > 0 ? strf("%.3g", row.flops / row.bytes) : "-", bound_text(row, peaks),
          row.seconds > 0 ? share_text(row.bound_seconds(peaks), row.seconds) : "-"})
      cells.push_back(cell);
    if (which == ProfileColumns::kKernels) cells.push_back(row.kernel);
    grid.rows.push_back(std::move(cells));
  };
  for (const ProfileRow& row : rows) add(row, phase_name(row.phase));
  add(total, "");
  return grid;
}

}  // namespace

std::string profile_table(const std::vector<ProfileRow>& rows, const Peaks& peaks, ProfileColumns which) {
  const Grid grid = grid_of(rows, peaks, which);
  Table table(grid.columns);
  for (size_t r = 0; r < grid.rows.size(); ++r) {
    if (r + 1 == grid.rows.size()) table.rule();
    table.row(grid.rows[r]);
  }
  return table.text();
}

HtmlTable profile_html(const std::vector<ProfileRow>& rows, const Peaks& peaks, ProfileColumns which) {
  const Grid grid = grid_of(rows, peaks, which);
  // The column without a title is a bar of letters, for terminals.
  HtmlTable table;
  for (const Column& column : grid.columns)
    if (!column.title.empty()) table.columns.push_back(column);
  for (const auto& cells : grid.rows) {
    std::vector<HtmlCell> row;
    for (size_t c = 0; c < cells.size(); ++c)
      if (!grid.columns[c].title.empty()) row.push_back({cells[c], ""});
    table.rows.push_back(std::move(row));
  }
  return table;
}

namespace {

const ProfileRow* find_row(const std::vector<ProfileRow>& rows, const std::string& name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

void add_cells(const ProfileSide& side, const ProfileRow* row, double total,
               std::vector<std::string>& cells) {
  if (!row) {
    cells.insert(cells.end(), 5, "");
    return;
  }
  for (const std::string& cell :
       {format_seconds(row->seconds), layer_text(*row), format_percent(per_second(row->seconds, total)),
        share_text(per_second(row->flops, row->seconds) / 1e9, side.peaks.gflops),
        share_text(per_second(row->bytes, row->seconds) / 1e9, side.peaks.gbps)})
    cells.push_back(cell);
}

}  // namespace

std::string beside_table(const ProfileSide& first, const ProfileSide& second) {
  std::vector<Column> columns = {{"operation"}};
  for (const ProfileSide* side : {&first, &second})
    for (const std::string& title : {side->name, std::string("per layer"), std::string("share"),
                                     std::string("of peak"), std::string("of copy")})
      columns.push_back({title, Align::kRight});
  columns.push_back({second.name + " / " + first.name, Align::kRight});
  Table table(columns);
  const ProfileRow totals[] = {total_of(first.rows), total_of(second.rows)};
  const auto add = [&](const std::string& name, const ProfileRow* a, const ProfileRow* b) {
    std::vector<std::string> cells = {name};
    add_cells(first, a, totals[0].seconds, cells);
    add_cells(second, b, totals[1].seconds, cells);
    cells.push_back(a && b && a->seconds > 0 ? strf("%.1f x", b->seconds / a->seconds) : "");
    table.row(cells);
  };
  for (const ProfileRow& row : first.rows) add(row.name, &row, find_row(second.rows, row.name));
  for (const ProfileRow& row : second.rows)
    if (!find_row(first.rows, row.name)) add(row.name, nullptr, &row);
  table.rule();
  add("total", &totals[0], &totals[1]);
  return table.text();
}

}  // namespace vitrail
