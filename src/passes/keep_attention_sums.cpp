// Lets attention keep its softmax's sums, so that its gradient need not compute them again.
#include <map>
#include <set>

#include "ops/attention.h"
#include "ops/attention_sums.h"
#include "passes/passes.h"

namespace vitrail {

namespace {

class SumKeeper {
 public:
  SumKeeper(Program& program, const KernelRule& has_kernel) : program_(program), has_kernel_(has_kernel) {
    for (const Node& node : program.nodes)
      if (node.phase == Phase::kBackward) read_back_.insert(node.ins.begin(), node.ins.end());
  }

  void run() {
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      const Node& node = program_.nodes[i];
      if (is_packed<AttentionOp>(*node.op, node.ins.size())) forward_[node.ins[0]] = i;
      if (!is_packed<AttentionGradOp>(*node.op, node.ins.size())) continue;
      if (const auto found = forward_.find(node.ins[0]); found != forward_.end())
        join(program_.nodes[found->second], program_.nodes[i]);
    }
  }

 private:
  // An output that nothing else reads going back is not kept, so keeping it would cost memory.
  void join(Node& forward, Node& backward) {
    const ValueId qkv = forward.ins[0], out = forward.outs[0], dout = backward.ins[1];
    if (!read_back_.contains(out)) return;
    const std::vector<TensorDesc> ins = program_.descs({qkv}), outs = AttentionSumsOp().infer(ins);
    const TensorDesc grad_ins[] = {ins[0], outs[0], outs[1], program_.values[dout].desc};
    if (!has_kernel_(AttentionSumsOp(), ins) || !has_kernel_(AttentionSumsGradOp(), grad_ins)) return;
    const auto sums = static_cast<ValueId>(program_.values.size());
    program_.values.push_back({.name = forward.name + ".sums", .desc = outs[1]});
    forward.op = std::make_shared<AttentionSumsOp>();
    forward.outs.push_back(sums);
    backward.op = std::make_shared<AttentionSumsGradOp>();
    backward.ins = {qkv, out, sums, dout};
  }

  Program& program_;
  const KernelRule& has_kernel_;
  std::set<ValueId> read_back_;
  std::map<ValueId, size_t> forward_;  // the latest attention node, by its qkv
};

}  // namespace

Program keep_attention_sums(Program program, const KernelRule& has_kernel) {
  if (!has_kernel) return program;
  SumKeeper(program, has_kernel).run();
  program.validate();
  return program;
}

}  // namespace vitrail
