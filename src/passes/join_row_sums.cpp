// Lets the node that makes a gradient sum its rows, where the sums are a bias' gradient.
#include "passes/passes.h"

#include "ops/attention_bias_grad.h"
#include "ops/bias.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"

namespace vitrail {

namespace {

// Returns the op that also computes the row sums of its first output; null when there is none.
OpPtr with_row_sums(const Node& node, DescSpan ins, const KernelRule& has_kernel) {
  const Op& op = *node.op;
  if (is_packed<AttentionGradOp>(op, ins.size()) && has_kernel && has_kernel(AttentionBiasGradOp(), ins))
    return std::make_shared<AttentionBiasGradOp>();
  if (const auto* gelu = dynamic_cast<const GeluGradOp*>(&op); gelu && !gelu->row_sums())
    return std::make_shared<GeluGradOp>(gelu->tanh_form(), true);
  const auto* norm = dynamic_cast<const LayernormGradOp*>(&op);
  if (!norm || norm->row_sums()) return nullptr;
  return std::make_shared<LayernormGradOp>(norm->eps(), norm->parameters(), norm->residual(), true);
}

}  // namespace

Program join_row_sums(Program program, const KernelRule& has_kernel) {
  std::vector<int> producer(program.values.size(), -1);
  std::vector<bool> gone(program.nodes.size(), false);
  for (int i = 0; i < static_cast<int>(program.nodes.size()); ++i) {
    Node& sum = program.nodes[i];
    for (ValueId id : sum.outs) producer[id] = i;
    if (!is<SumRowsOp>(*sum.op) || producer[sum.ins[0]] < 0) continue;
    Node& maker = program.nodes[producer[sum.ins[0]]];
    if (maker.outs[0] != sum.ins[0]) continue;
    const std::vector<TensorDesc> ins = program.descs(maker.ins);
    OpPtr op = with_row_sums(maker, ins, has_kernel);
    if (!op || op->infer(ins).back() != program.values[sum.outs[0]].desc) continue;
    maker.op = std::move(op);
    maker.outs.push_back(sum.outs[0]);
    gone[i] = true;
  }
  size_t index = 0;
  std::erase_if(program.nodes, [&](const Node&) { return gone[index++]; });
  program.validate();
  return program;
}

}  // namespace vitrail
