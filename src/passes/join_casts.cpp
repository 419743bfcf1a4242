// Lets a layernorm or its gradient write the 16-bit type that its result is cast to.
#include <numeric>

#include "ops/elementwise.h"
#include "ops/layernorm.h"
#include "passes/passes.h"

namespace vitrail {

namespace {

class CastJoiner {
 public:
  explicit CastJoiner(Program program)
      : program_(std::move(program)),
        other_uses_(program_.use_counts()),
        producer_(program_.values.size(), -1),
        now_(program_.values.size()) {
    std::iota(now_.begin(), now_.end(), 0);
    for (const Node& node : program_.nodes)
      if (is<CastOp>(*node.op)) --other_uses_[node.ins[0]];
  }

  Program run() {
    std::vector<bool> gone(program_.nodes.size(), false);
    for (int i = 0; i < static_cast<int>(program_.nodes.size()); ++i) {
      Node& node = program_.nodes[i];
      for (ValueId& id : node.ins) id = now_[id];
      gone[i] = is<CastOp>(*node.op) && producer_[node.ins[0]] >= 0 && join(node);
      for (const ValueId id : node.outs)
        if (!gone[i]) producer_[id] = i;
    }
    for (Output& out : program_.outputs) out.value = now_[out.value];
    size_t index = 0;
    std::erase_if(program_.nodes, [&](const Node&) { return gone[index++]; });
    program_.validate();
    return std::move(program_);
  }

 private:
  DType type_of(ValueId id) const { return program_.values[id].desc.dtype; }

  // Lets the node that makes the value write it in the cast's type; returns whether it can, or does already.
  bool join(const Node& cast) {
    const ValueId from = cast.ins[0], to = cast.outs[0];
    if (type_of(from) == type_of(to)) {
      now_[to] = from;
      return true;
    }
    Node& maker = program_.nodes[producer_[from]];
    if (maker.outs[0] != from || size_of(type_of(to)) > size_of(type_of(from))) return false;
    if (const auto* norm = dynamic_cast<const LayernormOp*>(maker.op.get()); norm && only_cast(from)) {
      maker.op = std::make_shared<LayernormOp>(norm->eps(), type_of(to));
      maker.outs[0] = now_[from] = to;
    } else if (const auto* grad = dynamic_cast<const LayernormGradOp*>(maker.op.get());
               grad && !grad->copy()) {
      maker.op = std::make_shared<LayernormGradOp>(grad->eps(), grad->parameters(), grad->residual(),
                                                   grad->row_sums(), type_of(to));
      maker.outs.push_back(to);
    } else {
      return false;
    }
    producer_[to] = producer_[from];
    return true;
  }

  // Returns whether casts alone read a value. A program has one 16-bit type, so they all make the same; there
  // are several where recompute has cloned one.
  bool only_cast(ValueId id) const { return other_uses_[id] == 0; }

  Program program_;
  std::vector<int> other_uses_, producer_;
  std::vector<ValueId> now_;  // by value: what stands for it
};

}  // namespace

Program join_casts(Program program) {
  return CastJoiner(std::move(program)).run();
}

}  // namespace vitrail
