#include "plan/node_times.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ops/grouped.h"

namespace vitrail {

std::string kernel_name(const NodeChoice& choice) {
  std::string text;
  for (const Launch& launch : choice.launches)
    text += (text.empty() ? "" : "+") + std::string(launch.kernel->name);
  return text;
}

CostCurve curve_of(const ExecutionPlan& plan, size_t node) {
  const Node& one = plan.program.nodes[node];
  return {.kind = std::string(one.op->kind()),
          .kernel = kernel_name(plan.choices[node]),
          .type = type_of(plan.program, one),
          .threads = plan.device.shares_host_memory ? plan.device.threads : 1,
          .points = {}};
}

NodeSize size_of(const ExecutionPlan& plan, size_t node) {
  const Node& one = plan.program.nodes[node];
  const std::vector<TensorDesc> ins = plan.program.descs(one.ins), outs = plan.program.descs(one.outs);
  const Cost cost = one.op->cost(ins, outs);
  if (dynamic_cast<const GroupedOp*>(one.op.get())) return {cost.flops, cost.bytes, cost.bytes, cost.bytes};
  const auto elems = [](const TensorDesc& desc) { return static_cast<double>(desc.elems()); };
  const double last = !outs.empty() ? elems(outs.front()) : ins.empty() ? 0 : elems(ins.back());
  return {cost.flops, cost.bytes, ins.empty() ? 0 : elems(ins.front()), last};
}

CostCurve curve_of_run(const ExecutionPlan& plan) {
  return {.kind = "run",
          .kernel = "beside nodes",
          .type = gemm_type(plan.program),
          .threads = plan.device.threads,
          .points = {}};
}

NodeSize size_of_run(const ExecutionPlan& plan) {
  NodeSize size;
  for (const Value& value : plan.program.values)
    if (value.kind == ValueKind::kInput && value.desc.shape.has('B')) {
      size.bytes += 2 * static_cast<double>(value.desc.bytes());  // read and written
      size.first += static_cast<double>(value.desc.elems());
    }
  for (const Node& node : plan.program.nodes) size.last += node.op->is_launched() ? 1 : 0;
  return size;
}

namespace {
bool has_curves(const DeviceFile& device, const std::string& type) {
  const std::vector<CostCurve>& all = device.curves.curves();
  return std::any_of(all.begin(), all.end(), [&](const CostCurve& one) { return one.type == type; });
}

// Tensor cores are as fast in f16 as in bf16, so that one of the two is enough.
CostCurve measured_as(CostCurve curve, const DeviceFile& device) {
  if (curve.type == "f16" && !has_curves(device, "f16")) curve.type = "bf16";
  return curve;
}

Roofline sheet_roofline(const DeviceFile& device) {
  Roofline roofline{.flops = {}, .bytes = device.sheet.gbps * 1e9};
  for (const auto& [type, rate] : device.sheet.tflops) roofline.flops[type] = rate * 1e12;
  return roofline;
}

// A device that is like another takes as long for a node as the other for one that is larger by the ratio of
// their data sheets: a launch costs the same, and a small device is filled by less.
std::optional<double> seconds_like(const ExecutionPlan& plan, size_t node, const DeviceFile& device) {
  const DeviceFile& other = *device.like;
  const Node& one = plan.program.nodes[node];
  const double scale = estimate_seconds(plan.program, one, sheet_roofline(device)) /
                       estimate_seconds(plan.program, one, sheet_roofline(other));
  const NodeSize size = size_of(plan, node);
  return other.curves.seconds(measured_as(curve_of(plan, node), other),
                              {size.flops * scale, size.bytes * scale, size.first * scale, size.last * scale},
                              [&](int threads) { return other.roofline(threads); });
}

std::optional<double> curve_seconds(const ExecutionPlan& plan, size_t node, const DeviceFile& device) {
  if (device.like) return seconds_like(plan, node, device);
  return device.curves.seconds(measured_as(curve_of(plan, node), device), size_of(plan, node),
                               [&](int threads) { return device.roofline(threads); });
}

// Returns what a run takes beside its nodes; 0 where nobody measured it.
double seconds_beside(const ExecutionPlan& plan, const DeviceFile& device) {
  const NodeSize size = size_of_run(plan);
  if (!plan.device.shares_host_memory || size.bytes == 0) return 0;
  return device.curves
      .seconds(curve_of_run(plan), size, [&](int threads) { return device.roofline(threads); })
      .value_or(0);
}
}  // namespace

std::vector<double> node_seconds(const ExecutionPlan& plan, const DeviceFile& device) {
  const Roofline roofline = device.roofline(plan.device.threads);
  // The blocks of a network are alike, so each of their nodes is looked up once.
  std::map<std::pair<CostCurve, std::array<double, 4>>, double> known;
  std::vector<double> seconds(plan.program.nodes.size(), 0);
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (!plan.program.nodes[i].op->is_launched()) continue;
    const auto [at, is_new] = known.try_emplace({curve_of(plan, i), size_of(plan, i).tied()}, 0);
    if (is_new)
      at->second = curve_seconds(plan, i, device)
                       .value_or(estimate_seconds(plan.program, plan.program.nodes[i], roofline));
    seconds[i] = at->second;
  }
  if (const auto first = std::find_if(seconds.begin(), seconds.end(), [](double s) { return s > 0; });
      first != seconds.end())
    *first += seconds_beside(plan, device);
  return seconds;
}

bool is_timed(const DeviceFile& device, const std::string& type) {
  const DeviceFile& measured = device.like ? *device.like : device;
  return has_curves(measured, type) || (type == "f16" && has_curves(measured, "bf16"));
}

std::string basis_text(const DeviceFile& device, const std::string& type) {
  const std::string roofline = is_timed(device, type) ? "" : "; " + type + " at best, by the roofline";
  if (device.like) return "by its data sheet and the efficiency measured on " + device.like->name + roofline;
  return device.curves.empty() ? "at best, by the roofline of " + device.name
                               : "by what nodes took on " + device.name + roofline;
}

double run_seconds(const ExecutionPlan& plan, const DeviceFile& device) {
  const std::vector<double> seconds = node_seconds(plan, device);
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

}  // namespace vitrail
