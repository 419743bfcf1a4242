#include "measure/trace.h"

#include <nlohmann/json.hpp>

#include "measure/profile.h"
#include "plan/node_times.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

ordered_json event(const ExecutionPlan& plan, size_t index, double start_us, double us, int process) {
  const Node& node = plan.program.nodes[index];
  const Cost cost = node.op->cost(plan.program.descs(node.ins), plan.program.descs(node.outs));
  std::string shapes;
  for (const TensorDesc& desc : plan.program.descs(node.outs))
    shapes += (shapes.empty() ? "" : ", ") + to_string(desc);
  return {{"name", node.name},
          {"cat", std::string(node.op->kind())},
          {"ph", "X"},
          {"ts", start_us},
          {"dur", us},
          {"pid", process},
          {"tid", 1},
          {"args",
           {{"shape", shapes},
            {"flops", cost.flops},
            {"bytes", cost.bytes},
            {"kernel", kernel_name(plan.choices[index])}}}};
}
}  // namespace

ordered_json trace_events(const ExecutionPlan& plan, const std::vector<NodeTime>& times,
                          const std::string& name, int number) {
  ordered_json events = ordered_json::array();
  events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", number}, {"args", {{"name", name}}}});
  double start_us = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i].runs == 0) continue;
    const double us = times[i].seconds / static_cast<double>(times[i].runs) * 1e6;
    events.push_back(event(plan, i, start_us, us, number));
    start_us += us;
  }
  return events;
}

}  // namespace vitrail
