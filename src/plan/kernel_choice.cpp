#include "plan/kernel_choice.h"

#include <algorithm>

#include "base/checked.h"
#include "ops/empty_parts.h"
#include "ops/fused.h"

namespace vitrail {

namespace {

bool has_empty(DescSpan descs) {
  return std::any_of(descs.begin(), descs.end(), [](const TensorDesc& desc) { return desc.elems() == 0; });
}

// Stands for a kernel where there is nothing to compute.
const Kernel& no_kernel() {
  static const Kernel none{.name = "nothing",
                           .declines = [](const NodeView&, const DeviceInfo&) { return std::string(); },
                           .prepare =
                               [](const NodeView&, const DeviceInfo&) {
                                 return Prepared{0, [](const KernelArgs&) {}};
                               }};
  return none;
}

// Chooses one kernel for each member of a fused node, where the backend has no kernel for the whole.
NodeChoice choose_members(const FusedOp& fused, DescSpan ins, const Backend& backend,
                          const DeviceInfo& device) {
  NodeChoice choice;
  choice.by_members = true;
  const std::vector<TensorDesc> outs = fused.member_outputs(ins);
  const size_t count = fused.members().size();
  size_t widest = 0;
  for (size_t m = 0; m < count; ++m) {
    const std::vector<TensorDesc> member_ins = fused.member_inputs(m, ins, outs);
    const NodeView view{*fused.members()[m].op, member_ins, fused.outputs_of(m, outs)};
    const bool idle = computes_nothing(view.op, view.ins, view.outs);
    const Kernel* kernel = idle ? &no_kernel() : backend.choose(view, device).kernel;
    choice.launches.emplace_back(kernel, view, device);
    widest = std::max(widest, choice.launches.back().prepared.scratch_bytes);
    if (m + 1 < count && !fused.is_kept(m))
      choice.members_bytes += round_up(outs[m].bytes(), Buffer::kAlignment);
  }
  choice.scratch_bytes = choice.members_bytes + widest;
  return choice;
}

NodeChoice choose_node(const Node& node, const Program& program, const Backend& backend,
                       const DeviceInfo& device) {
  const std::vector<TensorDesc> ins = program.descs(node.ins), outs = program.descs(node.outs);
  const NodeView view{*node.op, ins, outs};
  if (!node.op->is_launched()) return {};
  Choice found;
  const auto* fused = dynamic_cast<const FusedOp*>(node.op.get());
  const bool sums_nothing = fused && has_empty(ins);  // what the last members add to it is there all the same
  if (computes_nothing(*node.op, ins, outs))
    found.kernel = &no_kernel();
  else if (!sums_nothing)
    found = backend.choose(view, device);
  NodeChoice choice;
  if (found.kernel) {
    choice.launches.emplace_back(found.kernel, view, device);
    choice.scratch_bytes = choice.launches[0].prepared.scratch_bytes;
  } else {
    choice = choose_members(dynamic_cast<const FusedOp&>(*node.op), ins, backend, device);
  }
  choice.declined = std::move(found.declined);
  return choice;
}

// Packs parameters as the fastest kernel of `node` requires, if that kernel then accepts the node.
void pack_for(const Node& node, Program& program, const Backend& backend, const DeviceInfo& device,
              const std::vector<int>& uses) {
  std::vector<TensorDesc> ins = program.descs(node.ins);
  const std::vector<TensorDesc> outs = program.descs(node.outs);
  if (has_empty(ins)) return;
  for (const Kernel* kernel : backend.candidates({*node.op, ins, outs}, device)) {
    if (kernel->declines({*node.op, ins, outs}, device).empty()) return;  // it accepts the unpacked form
    std::vector<TensorDesc> packed = ins;
    while (kernel->packing) {
      const Packing packing = kernel->packing({*node.op, packed, outs}, device);
      if (packing.input < 0 || !packed[packing.input].packing.empty()) break;
      const ValueId id = node.ins[packing.input];
      if (program.values[id].kind != ValueKind::kParameter || uses[id] != 1) break;
      TensorDesc& weight = packed[packing.input];
      weight.packing = packing.name;
      weight.packed_rows = packing.rows;
      weight.packed_bytes = packing.bytes;
    }
    if (!kernel->declines({*node.op, packed, outs}, device).empty()) continue;
    for (size_t i = 0; i < ins.size(); ++i)
      if (!packed[i].packing.empty()) program.values[node.ins[i]].desc = packed[i];
    return;
  }
}

}  // namespace

std::function<bool(const Op& op, DescSpan ins)> kernel_rule(const Backend& backend, DeviceInfo device) {
  return [&backend, device = std::move(device)](const Op& op, DescSpan ins) {
    const std::vector<TensorDesc> outs = op.infer(ins);
    const NodeView node{op, ins, outs};
    const std::vector<const Kernel*> candidates = backend.candidates(node, device);
    return std::any_of(candidates.begin(), candidates.end(),
                       [&](const Kernel* kernel) { return kernel->declines(node, device).empty(); });
  };
}

std::vector<NodeChoice> choose_kernels(const Program& program, const Backend& backend,
                                       const DeviceInfo& device) {
  std::vector<NodeChoice> choices;
  choices.reserve(program.nodes.size());
  for (const Node& node : program.nodes)
    choices.push_back(with_context(node.name, [&] { return choose_node(node, program, backend, device); }));
  return choices;
}

Program pack_parameters(Program program, const Backend& backend, const DeviceInfo& device) {
  const std::vector<int> uses = program.use_counts();
  for (const Node& node : program.nodes) pack_for(node, program, backend, device, uses);
  return program;
}

ExecutionPlan plan_execution(Program program, const Backend& backend, const DeviceInfo& device,
                             const PlanOptions& options) {
  if (options.pack) program = pack_parameters(std::move(program), backend, device);
  ExecutionPlan plan{
      .program = std::move(program), .backend = &backend, .device = device, .choices = {}, .memory = {}};
  plan.choices = choose_kernels(plan.program, backend, device);
  std::vector<size_t> scratch;
  for (const NodeChoice& choice : plan.choices) scratch.push_back(choice.scratch_bytes);
  plan.memory = plan_memory(plan.program, scratch, options.layout, !device.shares_host_memory, options.host);
  return plan;
}

namespace {
void add_rounding(const Kernel& kernel, const NodeView& node, Rounding& rounding) {
  if (!kernel.rounding) return;
  const Rounding own = kernel.rounding(node);
  rounding.gemm |= own.gemm;
  rounding.members |= own.members;
  rounding.weights |= own.weights;
  rounding.residual |= own.residual;
  rounding.bias |= own.bias;
  rounding.gelu |= own.gelu;
}
}  // namespace

Rounding rounding_of(const ExecutionPlan& plan, size_t node_index) {
  const Node& node = plan.program.nodes[node_index];
  const NodeChoice& choice = plan.choices[node_index];
  const std::vector<TensorDesc> ins = plan.program.descs(node.ins), outs = plan.program.descs(node.outs);
  Rounding rounding{.members = choice.by_members};
  if (choice.launches.empty()) return rounding;
  if (!choice.by_members) {
    add_rounding(*choice.launches[0].kernel, {*node.op, ins, outs}, rounding);
    return rounding;
  }
  const auto& fused = dynamic_cast<const FusedOp&>(*node.op);
  const std::vector<TensorDesc> made = fused.member_outputs(ins);
  for (size_t m = 0; m < fused.members().size(); ++m) {
    const std::vector<TensorDesc> member_ins = fused.member_inputs(m, ins, made);
    add_rounding(*choice.launches[m].kernel, {*fused.members()[m].op, member_ins, fused.outputs_of(m, made)},
                 rounding);
  }
  return rounding;
}

}  // namespace vitrail
