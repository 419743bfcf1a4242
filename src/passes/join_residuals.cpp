// Adds the gradient that passed beside a layernorm where the layernorm's gradient is made.
#include "passes/passes.h"

#include <algorithm>

#include "ops/elementwise.h"
#include "ops/layernorm.h"

namespace vitrail {

namespace {

// Returns the node that makes `id`, when it is a layernorm's gradient that only one add reads; else null.
Node* only_norm_grad(Program& program, const std::vector<int>& producer, const std::vector<int>& uses,
                     ValueId id) {
  if (producer[id] < 0 || uses[id] != 1) return nullptr;
  Node& node = program.nodes[producer[id]];
  const auto* op = dynamic_cast<const LayernormGradOp*>(node.op.get());
  return op && !op->residual() && node.outs[0] == id ? &node : nullptr;
}

}  // namespace

Program join_residuals(Program program) {
  const std::vector<int> uses = program.use_counts();
  std::vector<int> producer(program.values.size(), -1);
  std::vector<bool> gone(program.nodes.size(), false);
  for (int i = 0; i < static_cast<int>(program.nodes.size()); ++i) {
    for (ValueId id : program.nodes[i].outs) producer[id] = i;
    Node& add = program.nodes[i];
    if (!is<AddOp>(*add.op) || add.phase != Phase::kBackward) continue;
    for (int side : {0, 1}) {
      Node* grad = only_norm_grad(program, producer, uses, add.ins[side]);
      const ValueId other = add.ins[1 - side];
      // The gradient of the residual branch must be computed before the norm's gradient.
      if (!grad || other == add.ins[side] || producer[other] > producer[add.ins[side]]) continue;
      const auto& op = static_cast<const LayernormGradOp&>(*grad->op);
      grad->op = std::make_shared<LayernormGradOp>(op.eps(), op.parameters(), true);
      grad->ins.push_back(other);
      grad->outs[0] = add.outs[0];
      producer[add.outs[0]] = static_cast<int>(grad - program.nodes.data());
      gone[i] = true;
      break;
    }
  }
  size_t index = 0;
  std::erase_if(program.nodes, [&](const Node&) { return gone[index++]; });
  program.validate();
  return program;
}

}  // namespace vitrail
