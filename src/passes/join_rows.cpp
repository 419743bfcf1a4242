// Makes one pass over rows of the bias, dropout, scale, residual and layernorm behind a collective.
#include <algorithm>
#include <optional>

#include "ops/bias.h"
#include "ops/collective.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/flat.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/residual_rows.h"
#include "ops/scale.h"
#include "passes/passes.h"

namespace vitrail {

namespace {

class RowJoiner {
 public:
  RowJoiner(const Program& program, GemmRule norms)
      : program_(program), norms_(norms), uses_(program.use_counts()), gone_(program.nodes.size(), false) {
    producer_.assign(program.values.size(), -1);
    reader_.assign(program.values.size(), -1);
    for (int i = 0; i < node_count(); ++i) {
      for (const ValueId id : program.nodes[i].outs) producer_[id] = i;
      for (const ValueId id : program.nodes[i].ins) reader_[id] = i;
    }
  }

  Program run() {
    Program result{.values = program_.values, .nodes = {}, .outputs = program_.outputs};
    std::vector<Node> joined(program_.nodes.size());
    for (int i = 0; i < node_count(); ++i)
      if (!gone_[i]) join_from(i, joined);
    for (int i = 0; i < node_count(); ++i) {
      if (joined[i].op)
        result.nodes.push_back(std::move(joined[i]));
      else if (!gone_[i])
        result.nodes.push_back(program_.nodes[i]);
    }
    result.validate();
    return result;
  }

 private:
  int node_count() const { return static_cast<int>(program_.nodes.size()); }
  const Node& node(int i) const { return program_.nodes[i]; }
  bool is_f32(ValueId id) const { return program_.values[id].desc.dtype == DType::kF32; }

  bool is_exchanged(ValueId id) const {
    int maker = producer_[id];
    if (maker >= 0 && is<UnpackOp>(*node(maker).op)) maker = producer_[node(maker).ins[0]];
    return maker >= 0 && as_collective(*node(maker).op) && is_f32(id);
  }

  // Returns whether a node adds or multiplies a vector [D] with the rows of `flowing`.
  bool takes_vector(int i, ValueId flowing) const {
    const Shape& rows = program_.values[flowing].desc.shape;
    const Node& n = node(i);
    return n.ins[0] == flowing && is_f32(n.ins[1]) && rows.rank() > 1 && rows[rows.rank() - 1].name == 'D' &&
           program_.values[n.ins[1]].desc.elems() == rows.local('D');
  }

  int only_reader(ValueId id) const { return uses_[id] == 1 && !program_.is_output(id) ? reader_[id] : -1; }

  // The norm that follows the sum at once; -1: none, or one that a GEMM takes on its way.
  int norm_behind(int add) const {
    const ValueId sum = node(add).outs[0];
    const int i = add + 1;
    if (i >= node_count() || !is<LayernormOp>(*node(i).op) || node(i).ins[0] != sum) return -1;
    const int gemm = only_reader(node(i).outs[0]);
    const bool taken = gemm >= 0 && norms_ && is<LinearOp>(*node(gemm).op) && norms_(*node(gemm).op);
    return taken || !is_f32(node(i).ins[1]) || !is_f32(node(i).outs[0]) ? -1 : i;
  }

  // What follows an exchange so far, each read by the next alone.
  struct Chain {
    ValueId flowing;
    int at;  // who reads it; -1: several, or none
    ResidualRowsOp::Form form = {};
    std::vector<int> members = {};
    std::vector<ValueId> ins = {flowing};
    ValueId counters = -1;

    ValueId after(const Node& member) {
      members.push_back(at);
      return flowing = member.outs[0];
    }
  };

  // Each takes the next node along if it is one of these.
  template <typename Taken>
  void take_vector(Chain& chain, bool& has) const {
    if (chain.at < 0 || !is<Taken>(*node(chain.at).op) || !takes_vector(chain.at, chain.flowing)) return;
    has = true;
    chain.ins.push_back(node(chain.at).ins[1]);
    chain.at = only_reader(chain.after(node(chain.at)));
  }
  void take_drop(Chain& chain, DropUnit unit, std::optional<DropoutOp>& drop) const {
    const auto* op = chain.at < 0 ? nullptr : dynamic_cast<const DropoutOp*>(node(chain.at).op.get());
    if (!op || op->unit() != unit) return;
    const ValueId counters = node(chain.at).ins[1];
    if (chain.counters >= 0 && chain.counters != counters) return;
    drop.emplace(*op);
    chain.counters = counters;
    chain.at = only_reader(chain.after(node(chain.at)));
  }

  void join_from(int first, std::vector<Node>& joined) {
    const Node& start = node(first);
    if (!is<BiasOp, DropoutOp, ScaleOp, AddOp>(*start.op)) return;
    Chain chain{.flowing = is_exchanged(start.ins[0]) ? start.ins[0] : start.ins[1], .at = first};
    if (!is_exchanged(chain.flowing) || only_reader(chain.flowing) != first) return;
    ResidualRowsOp::Form& form = chain.form;
    take_vector<BiasOp>(chain, form.bias);
    take_drop(chain, DropUnit::kElement, form.elements);
    take_vector<ScaleOp>(chain, form.scale);
    take_drop(chain, DropUnit::kSample, form.images);
    const int at = chain.at;
    if (at < 0 || !is<AddOp>(*node(at).op)) return;
    const ValueId residual = node(at).ins[0] == chain.flowing ? node(at).ins[1] : node(at).ins[0];
    if (residual == chain.flowing || !is_f32(residual)) return;
    chain.ins.push_back(residual);
    chain.after(node(at));
    Node rows = node(at);
    if (const int norm = norm_behind(at); norm >= 0) {
      form.norm = true;
      form.eps = static_cast<const LayernormOp&>(*node(norm).op).eps();
      chain.members.push_back(norm);
      chain.ins.insert(chain.ins.end(), node(norm).ins.begin() + 1, node(norm).ins.end());
      rows.outs.push_back(node(norm).outs[0]);
    }
    if (chain.members.size() < 2) return;
    if (chain.counters >= 0) chain.ins.push_back(chain.counters);
    rows.op = std::make_shared<ResidualRowsOp>(form);
    rows.ins = std::move(chain.ins);
    for (const int member : chain.members) gone_[member] = true;
    joined[chain.members.back()] = std::move(rows);
  }

  const Program& program_;
  GemmRule norms_;
  std::vector<int> uses_, producer_, reader_;
  std::vector<bool> gone_;
};

}  // namespace

Program join_rows(const Program& program, GemmRule norms) {
  return RowJoiner(program, norms).run();
}

}  // namespace vitrail
