// Chooses which kernel runs each node of a Program on a device; says why faster ones declined, and what
// scratch it needs. The choice depends on descriptions alone, so it works for a device this machine lacks.
#pragma once

#include <functional>
#include <vector>

#include "backend/kernel.h"
#include "graph/program.h"
#include "plan/memory_plan.h"

namespace vitrail {

// One kernel prepared for its node: a plain node has one, a fused node without its own kernel one per member.
struct Launch {
  Launch(const Kernel* chosen, const NodeView& node, const DeviceInfo& device)
      : kernel(chosen), prepared(chosen->prepare(node, device)) {}

  const Kernel* kernel;
  Prepared prepared;
};

struct NodeChoice {
  std::vector<Launch> launches;
  std::vector<std::string> declined;
  bool by_members = false;
  size_t members_bytes = 0;  // intermediate results between members, at the start of the node's scratch
  size_t scratch_bytes = 0;  // in all
};

// Returns whether the backend has a kernel for a node on the device, as a function of op and inputs.
std::function<bool(const Op& op, DescSpan ins)> kernel_rule(const Backend& backend, DeviceInfo device);

std::vector<NodeChoice> choose_kernels(const Program& program, const Backend& backend,
                                       const DeviceInfo& device);

// Gives parameters the storage order their kernels require. A parameter that several nodes read stays plain.
Program pack_parameters(Program program, const Backend& backend, const DeviceInfo& device);

// A Program ready for one device: packed, kernels chosen, memory laid out.
struct ExecutionPlan {
  Program program;
  const Backend* backend = nullptr;
  DeviceInfo device;
  std::vector<NodeChoice> choices;
  MemoryPlan memory;

  size_t node_count() const { return program.nodes.size(); }
};
// Returns which intermediate results the kernels of a node round; a node that runs member by member rounds
// every member's.
Rounding rounding_of(const ExecutionPlan& plan, size_t node);

struct PlanOptions {
  // Packs weights for their kernels; training updates them in place and leaves them plain.
  bool pack = true;
  // The layout shared with other programs; a new one when null.
  std::shared_ptr<PersistentLayout> layout = nullptr;
  bool host = false;  // its persistent values lie in the layout's host arenas
};
ExecutionPlan plan_execution(Program program, const Backend& backend, const DeviceInfo& device,
                             const PlanOptions& options = {});

}  // namespace vitrail
