// Adds the backward half: each op records its gradient, from the loss back to every trained parameter.
#include "passes/passes.h"

#include <map>

#include "graph/grad.h"
#include "ops/elementwise.h"
#include "ops/persistent.h"

namespace vitrail {

namespace {

class Differentiator : public GradRecorder {
 public:
  Differentiator(Program program, const DifferentiateOptions& options)
      : program_(std::move(program)), needs_(program_.values.size(), false) {
    for (size_t id = 0; id < program_.values.size(); ++id) {
      const Value& value = program_.values[id];
      needs_[id] = value.kind == ValueKind::kParameter && (!options.trained || options.trained(value.name));
    }
    for (const Node& node : program_.nodes)
      for (ValueId in : node.ins)
        if (needs_[in])
          for (ValueId out : node.outs) needs_[out] = true;
    const ValueId loss = program_.output(options.loss);
    VT_CHECK(needs_[loss], "the loss depends on no trained parameter");
    gradient_[loss] = options.seed;
  }

  Program run() {
    for (size_t i = program_.nodes.size(); i-- > 0;) {
      const Node node = program_.nodes[i];  // by value: recording appends to the list
      if (node.outs.empty() || !needs_[node.outs[0]]) continue;
      VT_CHECK(node.outs.size() == 1, "%s has several outputs: no op like that has a gradient",
               node.name.c_str());
      const auto found = gradient_.find(node.outs[0]);
      if (found == gradient_.end()) continue;
      node_ = &node;
      dout_ = found->second;
      with_context(node.name, [&] { node.op->grad(*this); });
    }
    program_.validate();
    return std::move(program_);
  }

  ValueId in(size_t i) const override { return node_->ins[i]; }
  ValueId out() const override { return node_->outs[0]; }
  ValueId dout() const override { return dout_; }
  bool wants(size_t i) const override { return i < node_->ins.size() && needs_[node_->ins[i]]; }
  const TensorDesc& desc(ValueId id) const override { return program_.values[id].desc; }

  std::vector<ValueId> add_all(OpPtr op, std::vector<ValueId> ins, const char* suffix) override {
    return append(std::move(op), std::move(ins), node_->name + "." + suffix);
  }

  void give(size_t i, ValueId gradient) override {
    const ValueId id = node_->ins[i];
    if (program_.values[id].kind == ValueKind::kParameter) return sum_up(id, gradient);
    const auto [found, fresh] = gradient_.try_emplace(id, gradient);
    if (!fresh)
      found->second =
          append(std::make_shared<AddOp>(), {found->second, gradient}, node_->name + ".dsum").front();
  }

 private:
  std::vector<ValueId> append(OpPtr op, std::vector<ValueId> ins, std::string name) {
    return program_.append({.op = std::move(op),
                            .ins = std::move(ins),
                            .outs = {},
                            .name = std::move(name),
                            .phase = Phase::kBackward,
                            .block = node_->block,
                            .part = node_->part,
                            .step = node_->step,
                            .where = node_->where});
  }

  void sum_up(ValueId parameter, ValueId gradient) {
    const auto [sum, fresh] = sums_.try_emplace(parameter, static_cast<ValueId>(program_.values.size()));
    if (fresh) {
      const Value& value = program_.values[parameter];
      Value fresh_sum{gradient_name(value.name),
                      {accumulator_dtype(value.desc.dtype), value.desc.shape},
                      ValueKind::kState,
                      Category::kGradients};
      fresh_sum.owner = value.name;
      program_.values.push_back(std::move(fresh_sum));
    }
    append(std::make_shared<AccumulateOp>(), {sum->second, gradient}, program_.values[sum->second].name);
  }

  Program program_;
  std::vector<bool> needs_;  // of the forward values
  std::map<ValueId, ValueId> gradient_, sums_;
  const Node* node_ = nullptr;
  ValueId dout_ = -1;
};

}  // namespace

Program differentiate(Program program, const DifferentiateOptions& options) {
  return Differentiator(std::move(program), options).run();
}

}  // namespace vitrail
