// The collectives of a step by kind and axis of the mesh, with the bytes a rank sends; its pins as text.
#include <map>

#include "ops/collective.h"
#include "passes/pins.h"
#include "train/step_plan.h"

namespace vitrail {

namespace {

using Rows = std::map<std::pair<std::string, std::string>, CollectiveRow>;

void count(const Program& program, const Mesh& mesh, int64_t runs, Rows& rows) {
  for (const Node& node : program.nodes) {
    const CollectiveOp* op = as_collective(*node.op);
    if (!op) continue;
    const std::string kind(op->kind()), axes = to_string(op->form().axes);
    CollectiveRow& row = rows[{kind, axes}];
    row.kind = kind;
    row.axes = axes;
    row.is_send = op->form().kind == CollectiveKind::kSend;
    row.count += runs;
    row.bytes +=
        static_cast<double>(runs) * op->bytes_sent(program.descs(node.ins), mesh.size(op->form().axes));
  }
}

std::vector<CollectiveRow> listed(const Rows& rows) {
  std::vector<CollectiveRow> list;
  for (const auto& [key, row] : rows)
    if (row.count > 0) list.push_back(row);
  return list;
}

}  // namespace

std::vector<CollectiveRow> collective_rows(const Program& program, const Mesh& mesh) {
  Rows rows;
  count(program, mesh, 1, rows);
  return listed(rows);
}

std::string pins_text(const StepConfig& config) {
  return to_string(pins_of(config.distribution, config.zero));
}

std::vector<CollectiveRow> collective_rows(const StepPlan& plan, int64_t accumulation) {
  Rows rows;
  const Mesh& mesh = plan.config.distribution.mesh;
  count(plan.micro.program, mesh, plan.pipelined ? 1 : accumulation - (plan.last_micro ? 1 : 0), rows);
  if (plan.last_micro) count(plan.last_micro->program, mesh, 1, rows);
  count(plan.update.program, mesh, 1, rows);
  if (plan.offload && plan.offload->gather) count(plan.offload->gather->program, mesh, 1, rows);
  return listed(rows);
}

}  // namespace vitrail
