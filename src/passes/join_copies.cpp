// Lets an optimizer's update write the low-precision copy of its parameter, too.
#include "ops/persistent.h"
#include "ops/update/copied.h"
#include "passes/passes.h"

namespace vitrail {

namespace {

// Returns whether a node reads or writes a persistent value, or the container it lies in.
bool touches(const Node& node, const Program& program, ValueId id) {
  const Value& value = program.values[id];
  for (const std::vector<ValueId>* ids : {&node.ins, &node.outs})
    for (const ValueId other : *ids)
      if (other == id || (!value.container.empty() && program.values[other].name == value.container))
        return true;
  return false;
}

bool changes(const Node& node, ValueId id) {
  for (const int input : node.op->updates())
    if (node.ins[static_cast<size_t>(input)] == id) return true;
  return false;
}

// The update of the parameter that node `copy` copies, when the copy can be written there already; else null.
Node* update_before(Program& program, size_t copy, const std::vector<bool>& gone) {
  const ValueId to = program.nodes[copy].ins[0], master = program.nodes[copy].ins[1];
  for (size_t i = copy; i-- > 0;) {
    Node& node = program.nodes[i];
    if (gone[i]) continue;
    if (changes(node, master)) return node.ins[0] == master && node.outs.empty() ? &node : nullptr;
    if (touches(node, program, to)) return nullptr;
  }
  return nullptr;
}

}  // namespace

Program join_copies(Program program, const KindRule& has_kernel) {
  std::vector<bool> gone(program.nodes.size(), false);
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& copy = program.nodes[i];
    // A master of fewer bits is rounded before it is copied.
    if (!is<CopyIntoOp>(*copy.op) || program.values[copy.ins[1]].desc.dtype != DType::kF32) continue;
    Node* update = update_before(program, i, gone);
    if (!update) continue;
    OpPtr both = std::make_shared<CopiedUpdateOp>(update->op);
    if (!has_kernel(both->kind())) continue;
    update->op = std::move(both);
    update->ins.push_back(copy.ins[0]);
    gone[i] = true;
  }
  size_t index = 0;
  std::erase_if(program.nodes, [&](const Node&) { return gone[index++]; });
  program.validate();
  return program;
}

}  // namespace vitrail
