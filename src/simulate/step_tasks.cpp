#include "simulate/step_tasks.h"

#include <numeric>
#include <set>

#include "base/error.h"

namespace vitrail {

namespace {

double whole_bytes(const CollectiveOp& op, const Program& program, const Node& node) {
  const CollectiveOp::Form& form = op.form();
  const TensorDesc& held = program.values[node.ins.empty() ? node.outs[0] : node.ins[0]].desc;
  if (form.is_pair()) return static_cast<double>(held.bytes());
  const size_t count = form.kind == CollectiveKind::kAllToAll ? form.counts.size() / 2 : form.counts.size();
  const auto elems = std::accumulate(form.counts.begin(),
                                     form.counts.begin() + static_cast<std::ptrdiff_t>(count), size_t{0});
  return static_cast<double>(elems * size_of(held.dtype));
}

StepTask collective_task(const CollectiveOp& op, const Program& program, const Node& node) {
  const CollectiveOp::Form& form = op.form();
  return {.kind = StepTask::Kind::kCollective,
          .name = node.name,
          .exchange = form.kind,
          .axes = form.axes,
          .bytes = whole_bytes(op, program, node),
          .started = form.started,
          .peer = form.peer,
          .channel = form.channel,
          .slot = node.ins.empty() ? node.outs[0] : node.ins[0]};
}

}  // namespace

TaskList tasks_of(const Program& program, const std::vector<double>& seconds, double factor) {
  VT_CHECK(seconds.size() == program.nodes.size(), "%zu times for %zu nodes", seconds.size(),
           program.nodes.size());
  TaskList tasks;
  std::set<ValueId> uploads;  // take no time of their own here
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    if (is<UploadOp>(*node.op)) uploads.insert(node.ins[0]);
    if (const CollectiveOp* op = as_collective(*node.op))
      tasks.push_back(collective_task(*op, program, node));
    else if (is<WaitOp>(*node.op) && uploads.contains(node.ins[0]))
      continue;
    else if (is<WaitOp>(*node.op))
      tasks.push_back({.kind = StepTask::Kind::kWait, .name = node.name, .slot = node.ins[0]});
    else if (seconds[i] > 0)
      tasks.push_back({.seconds = seconds[i] * factor, .name = node.name});
  }
  return tasks;
}

double StepTasks::compute_s() const {
  double sum = 0;
  for (const Run& run : runs)
    for (const StepTask& task : run.tasks) sum += task.seconds * static_cast<double>(run.times);
  return sum;
}

}  // namespace vitrail
