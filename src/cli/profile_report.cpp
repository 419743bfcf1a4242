#include "cli/profile_report.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "base/error.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail::cli {

namespace {
struct PartRule {
  const char *operation, *part;  // the operation's name begins with it
};
// First match wins. The rows of the classic per-layer table: embeddings, norm, attention, residual, norm,
// MLP, residual, last norm.
constexpr PartRule kParts[] = {
    {"patch_embed", "embeddings"},
    {"tokens", "embeddings"},
    {"pos_embed", "embeddings"},
    {"positions", "embeddings"},
    {"blocks.*.norm1", "layer norm 1"},
    {"blocks.*.ls1", "residual 1"},
    {"blocks.*.attn.residual", "residual 1"},
    {"blocks.*.attn", "attention"},
    {"blocks.*.norm2", "layer norm 2"},
    {"blocks.*.ls2", "residual 2"},
    {"blocks.*.mlp.residual", "residual 2"},
    {"blocks.*.mlp", "MLP"},
    {"norm", "last layer norm"},
    {"fc_norm", "last layer norm"},
};

std::string kernel_name(const NodeChoice& choice) {
  std::string text;
  for (const Launch& launch : choice.launches)
    text += (text.empty() ? "" : "+") + std::string(launch.kernel->name);
  return text;
}

// "blocks.3" of "blocks.3.attn.qkv"; empty outside the blocks.
std::string block_of(const std::string& node_name) {
  return node_name.starts_with("blocks.") ? node_name.substr(0, node_name.find('.', 7)) : "";
}

void add_new(const std::vector<std::string>& lines, std::vector<std::string>& to) {
  for (const std::string& line : lines)
    if (std::find(to.begin(), to.end(), line) == to.end()) to.push_back(line);
}

std::string row_name(const std::string& node, ProfileBy by) {
  return by == ProfileBy::kPart ? part_of(node) : by == ProfileBy::kOperation ? operation_of(node) : node;
}
}  // namespace

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
  std::map<std::string, std::string> last_block;  // by row
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
    const std::string block = block_of(node.name);
    if (!block.empty() && block != std::exchange(last_block[name], block)) ++row->layers;
    add_new(plan.choices[i].declined, row->declined);
    row->flops += cost.flops;
    row->bytes += cost.bytes;
    if (times[i].runs > 0) row->seconds += times[i].seconds / static_cast<double>(times[i].runs);
  }
  return rows;
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

std::string profile_table(const std::vector<ProfileRow>& rows, double peak_gflops, ProfileColumns which) {
  const bool kernels = which == ProfileColumns::kKernels, layers = which == ProfileColumns::kParts;
  std::vector<Column> columns = {{"operation"},
                                 {"nodes", Align::kRight},
                                 {"time", Align::kRight},
                                 {"share", Align::kRight},
                                 {""},
                                 {"GFLOP", Align::kRight},
                                 {"GFLOP/s", Align::kRight},
                                 {"GB/s", Align::kRight},
                                 {"of peak", Align::kRight}};
  if (kernels) columns.push_back({"kernel"});
  if (layers) columns.insert(columns.begin() + 3, {"per layer", Align::kRight});
  Table table(columns);
  ProfileRow total{.name = "total", .kind = "", .kernel = ""};
  for (const ProfileRow& row : rows) {
    total.nodes += row.nodes;
    total.seconds += row.seconds;
    total.flops += row.flops;
    total.bytes += row.bytes;
  }
  const auto add = [&](const ProfileRow& row) {
    const double share = total.seconds > 0 ? row.seconds / total.seconds : 0;
    const double rate = row.seconds > 0 ? row.flops / row.seconds / 1e9 : 0;
    std::vector<std::string> cells = {row.name,
                                      format_integer(row.nodes),
                                      format_seconds(row.seconds),
                                      format_percent(share),
                                      format_bar(share, 10),
                                      strf("%.3f", row.flops / 1e9),
                                      strf("%.1f", rate),
                                      strf("%.1f", row.seconds > 0 ? row.bytes / row.seconds / 1e9 : 0),
                                      peak_gflops > 0 ? strf("%.0f %%", 100 * rate / peak_gflops) : "-"};
    if (kernels) cells.push_back(row.kernel);
    if (layers)
      cells.insert(cells.begin() + 3,
                   row.layers > 0 ? format_seconds(row.seconds / static_cast<double>(row.layers)) : "");
    table.row(cells);
  };
  for (const ProfileRow& row : rows) add(row);
  table.rule();
  add(total);
  return table.text();
}

}  // namespace vitrail::cli
