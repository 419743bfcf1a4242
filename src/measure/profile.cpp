#include "measure/profile.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/timing.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {
struct PartRule {
  const char *operation, *part;  // the operation's name begins with it
};
// The first match wins. The parts are the rows of the classic per-layer table: embeddings, norm, attention,
// residual, norm, MLP, residual, last norm.
constexpr PartRule kParts[] = {
    {"patch_embed", "embeddings"},  {"tokens", "embeddings"},
    {"pos_embed", "embeddings"},    {"positions", "embeddings"},
    {"norm_pre", "embeddings"},     {"blocks.*.norm1", "layer norm 1"},
    {"blocks.*.ls1", "residual 1"}, {"blocks.*.attn.residual", "residual 1"},
    {"blocks.*.attn", "attention"}, {"blocks.*.norm2", "layer norm 2"},
    {"blocks.*.ls2", "residual 2"}, {"blocks.*.mlp.residual", "residual 2"},
    {"blocks.*.mlp", "MLP"},        {"norm", "last layer norm"},
    {"fc_norm", "last layer norm"},
};

void add_new(const std::vector<std::string>& lines, std::vector<std::string>& to) {
  for (const std::string& line : lines)
    if (std::find(to.begin(), to.end(), line) == to.end()) to.push_back(line);
}

std::string row_name(const std::string& node, ProfileBy by) {
  return by == ProfileBy::kPart ? part_of(node) : by == ProfileBy::kOperation ? operation_of(node) : node;
}
}  // namespace

std::string kernel_name(const NodeChoice& choice) {
  std::string text;
  for (const Launch& launch : choice.launches)
    text += (text.empty() ? "" : "+") + std::string(launch.kernel->name);
  return text;
}

std::string operation_of(const std::string& node_name) {
  std::string text;
  for (size_t i = 0; i < node_name.size(); ++i) {
    const bool number =
        std::isdigit(static_cast<unsigned char>(node_name[i])) && i > 0 && node_name[i - 1] == '.';
    if (!number) {
      text += node_name[i];
      continue;
    }
    text += '*';
    while (i + 1 < node_name.size() && std::isdigit(static_cast<unsigned char>(node_name[i + 1]))) ++i;
  }
  return text;
}

std::string part_of(const std::string& node_name) {
  const std::string operation = operation_of(node_name);
  for (const PartRule& rule : kParts)
    if (operation.starts_with(rule.operation)) return rule.part;
  return "pooling and head";
}

std::vector<ProfileRow> profile_rows(const ExecutionPlan& plan, const std::vector<NodeTime>& times,
                                     ProfileBy by) {
  std::vector<ProfileRow> rows;
  std::map<std::string, int> last_block;  // by row
  for (size_t i = 0; i < plan.program.nodes.size(); ++i) {
    const Node& node = plan.program.nodes[i];
    const std::string name = row_name(node.name, by);
    auto row = std::find_if(rows.begin(), rows.end(), [&](const ProfileRow& r) { return r.name == name; });
    if (row == rows.end() || by == ProfileBy::kNode)
      row = rows.insert(
          rows.end(),
          {.name = name, .kind = std::string(node.op->kind()), .kernel = kernel_name(plan.choices[i])});
    const Cost cost = node.op->cost(plan.program.descs(node.ins), plan.program.descs(node.outs));
    ++row->nodes;
    const bool in_block = node.block >= 0;
    const bool another = node.block != std::exchange(last_block[name], node.block);
    if (in_block && (another || row->layer_seconds.empty())) row->layer_seconds.push_back(0);
    add_new(plan.choices[i].declined, row->declined);
    row->flops += cost.flops;
    row->bytes += cost.bytes;
    const double seconds = times[i].runs > 0 ? times[i].seconds / static_cast<double>(times[i].runs) : 0;
    row->seconds += seconds;
    if (in_block) row->layer_seconds.back() += seconds;
  }
  return rows;
}

double ProfileRow::seconds_per_layer() const {
  return spread_of(layer_seconds).median;
}

std::vector<std::string> declined_lines(const ExecutionPlan& plan) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < plan.program.nodes.size(); ++i)
    for (const std::string& reason : plan.choices[i].declined) {
      const size_t colon = reason.find(": ");
      add_new({operation_of(plan.program.nodes[i].name) + ": kernel " + reason.substr(0, colon) +
               " declined" + reason.substr(colon)},
              lines);
    }
  return lines;
}

std::vector<std::string> kernel_lines(const ExecutionPlan& plan) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < plan.program.nodes.size(); ++i)
    for (const Launch& launch : plan.choices[i].launches)
      add_new({operation_of(plan.program.nodes[i].name) + ": " + launch.kernel->name}, lines);
  return lines;
}

namespace {

ProfileRow total_of(const std::vector<ProfileRow>& rows) {
  ProfileRow total{.name = "total", .kind = "", .kernel = ""};
  for (const ProfileRow& row : rows) {
    total.nodes += row.nodes;
    total.seconds += row.seconds;
    total.flops += row.flops;
    total.bytes += row.bytes;
  }
  return total;
}

double per_second(double amount, double seconds) {
  return seconds > 0 ? amount / seconds : 0;
}

std::string share_text(double part, double whole) {
  return whole > 0 ? strf("%.0f %%", 100 * part / whole) : "-";
}

std::string layer_text(const ProfileRow& row) {
  return row.layers() > 0 ? format_seconds(row.seconds_per_layer()) : "";
}

// Figures from this one on, such as those of a GPU, are shown in thousands.
constexpr double kLargeGflops = 1e4;

}  // namespace

std::string profile_table(const std::vector<ProfileRow>& rows, const Peaks& peaks, ProfileColumns which) {
  const bool kernels = which == ProfileColumns::kKernels, layers = which == ProfileColumns::kParts;
  const bool large = peaks.gflops >= kLargeGflops;
  std::vector<Column> columns = {{"operation"},
                                 {"nodes", Align::kRight},
                                 {"time", Align::kRight},
                                 {"share", Align::kRight},
                                 {""},
                                 {"GFLOP", Align::kRight},
                                 {large ? "TFLOP/s" : "GFLOP/s", Align::kRight},
                                 {"of peak", Align::kRight},
                                 {"GB/s", Align::kRight},
                                 {"of copy", Align::kRight}};
  if (kernels) columns.push_back({"kernel"});
  if (layers) columns.insert(columns.begin() + 3, {"per layer", Align::kRight});
  Table table(columns);
  const ProfileRow total = total_of(rows);
  const auto add = [&](const ProfileRow& row) {
    const double share = per_second(row.seconds, total.seconds);
    const double rate = per_second(row.flops, row.seconds) / 1e9;
    const double traffic = per_second(row.bytes, row.seconds) / 1e9;
    std::vector<std::string> cells = {row.name,
                                      format_integer(row.nodes),
                                      format_seconds(row.seconds),
                                      format_percent(share),
                                      format_bar(share, 10),
                                      strf("%.3f", row.flops / 1e9),
                                      strf("%.1f", large ? rate / 1e3 : rate),
                                      share_text(rate, peaks.gflops),
                                      strf("%.1f", traffic),
                                      share_text(traffic, peaks.gbps)};
    if (kernels) cells.push_back(row.kernel);
    if (layers) cells.insert(cells.begin() + 3, layer_text(row));
    table.row(cells);
  };
  for (const ProfileRow& row : rows) add(row);
  table.rule();
  add(total);
  return table.text();
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
