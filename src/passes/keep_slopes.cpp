// Lets a GELU behind a GEMM keep its slope, so that its gradient only multiplies.
#include <map>

#include "ops/bias.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/gelu_slope.h"
#include "ops/linear.h"
#include "passes/passes.h"

namespace vitrail {

namespace {

class SlopeKeeper {
 public:
  SlopeKeeper(Program& program, const KernelRule& has_kernel)
      : program_(program),
        has_kernel_(has_kernel),
        uses_(program.use_counts()),
        producer_(program.values.size(), -1),
        gelu_of_(program.values.size(), -1) {
    for (int i = 0; i < static_cast<int>(program.nodes.size()); ++i) {
      const Node& node = program.nodes[i];
      for (ValueId id : node.outs) producer_[id] = i;
      if (!is<GeluOp>(*node.op)) continue;
      gelu_of_[node.ins[0]] = i;
      named_.emplace(node.name, i);
    }
  }

  void run() {
    for (Node& node : program_.nodes)
      if (is<GeluGradOp>(*node.op)) keep_for(node);
  }

 private:
  // Only the gelu and its gradient read what a GEMM makes, and the gelu follows the GEMM at once: a gelu that
  // is computed again alone needs what it is the gelu of.
  void keep_for(Node& grad) {
    const ValueId x = grad.ins[0];
    const int gelu = gelu_of_[x], maker = producer_[x], dx = producer_[grad.ins[1]];
    if (gelu < 0 || maker < 0 || dx < 0 || uses_[x] != 2 || program_.is_output(x)) return;
    if (program_.nodes[gelu].phase != program_.nodes[maker].phase || uses_[grad.ins[1]] != 1) return;
    if (!makes_both(program_.nodes[maker], program_.nodes[gelu]) || !multiplies(program_.nodes[dx], grad))
      return;
    // A node that is computed again, and its clone, are one op, or the two would round differently.
    for (auto [at, end] = named_.equal_range(program_.nodes[gelu].name); at != end; ++at)
      keep(program_.nodes[at->second]);
    grad.ins[0] = program_.nodes[gelu].outs[1];
    grad.op = with_slope(grad);
  }

  void keep(Node& gelu) {
    const auto slope = static_cast<ValueId>(program_.values.size());
    program_.values.push_back({.name = gelu.name + ".slope", .desc = program_.values[gelu.outs[0]].desc});
    gelu.op = slope_of(gelu);
    gelu.outs.push_back(slope);
  }

  static OpPtr slope_of(const Node& gelu) {
    return std::make_shared<GeluSlopeOp>(static_cast<const GeluOp&>(*gelu.op).tanh_form());
  }
  static OpPtr with_slope(const Node& grad) {
    return std::make_shared<GeluSlopeGradOp>(static_cast<const GeluGradOp&>(*grad.op).row_sums());
  }

  // Returns whether one kernel computes a linear with its bias, the gelu and the slope.
  bool makes_both(const Node& bias, const Node& gelu) const {
    const int maker = is<BiasOp>(*bias.op) ? producer_[bias.ins[0]] : -1;
    if (maker < 0 || !is<LinearOp>(*program_.nodes[maker].op)) return false;
    const Node& linear = program_.nodes[maker];
    const FusedOp fused({{linear.op, {0, 1}}, {bias.op, {made_by(0), 2}}, {slope_of(gelu), {made_by(1)}}});
    return has_kernel_(fused, program_.descs({linear.ins[0], linear.ins[1], bias.ins[1]}));
  }

  // Returns whether one kernel computes the GEMM's gradient and multiplies it by the slope.
  bool multiplies(const Node& dx, const Node& grad) const {
    if (!is<LinearDxOp>(*dx.op)) return false;
    const FusedOp fused({{dx.op, {0, 1}}, {with_slope(grad), {2, made_by(0)}}});
    return has_kernel_(fused, program_.descs({dx.ins[0], dx.ins[1], grad.ins[0]}));
  }

  Program& program_;
  const KernelRule& has_kernel_;
  std::vector<int> uses_, producer_;
  std::vector<int> gelu_of_;                            // the latest gelu of a value
  std::multimap<std::string, int, std::less<>> named_;  // gelus by name: a clone has its original's
};

}  // namespace

Program keep_slopes(Program program, const KernelRule& has_kernel) {
  if (!has_kernel) return program;
  SlopeKeeper(program, has_kernel).run();
  program.validate();
  return program;
}

}  // namespace vitrail
