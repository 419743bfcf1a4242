// The turns of a stage, one after another, as one program.
#include <map>
#include <set>

#include "ops/collective.h"
#include "ops/turn.h"
#include "passes/stages.h"

namespace vitrail {

namespace {

class Unroller {
 public:
  explicit Unroller(const Program& stage) : stage_(stage), shared_(stage.values.size(), -1) {
    for (size_t i = 0; i < stage.nodes.size(); ++i) {
      if (is<TurnOp>(*stage.nodes[i].op)) {
        const auto& form = dynamic_cast<const TurnOp&>(*stage.nodes[i].op).form();
        halves_[{form.chunk, form.backward}] = {i, i};
        open_ = &halves_[{form.chunk, form.backward}];
      }
      VT_CHECK(open_, "%s stands before the first turn", stage.nodes[i].name.c_str());
      open_->end = i + 1;
    }
  }

  Program run(const std::vector<PipelineTurn>& turns) {
    for (const PipelineTurn& turn : turns) add_turn(turn);
    for (auto& [chunk, waits] : late_) take_late(waits);
    result_.validate();
    return std::move(result_);
  }

 private:
  struct Half {
    size_t begin = 0, end = 0;
  };

  void add_turn(const PipelineTurn& turn) {
    const Half half = halves_.at({turn.chunk, turn.backward});
    std::set<ValueId> sent;
    for (size_t i = half.begin; i < half.end; ++i) {
      Node node = stage_.nodes[i];
      if (const CollectiveOp* op = as_collective(*node.op); op && op->form().kind == CollectiveKind::kSend) {
        sent.insert(node.ins[0]);
        if (turn.backward) take_late(late_[turn.chunk]);
      }
      const bool late = is<WaitOp>(*node.op) && sent.contains(node.ins[0]);
      for (ValueId& id : node.ins) id = at(id, turn.micro);
      for (ValueId& id : node.outs) id = at(id, turn.micro);
      if (is<TurnOp>(*node.op)) node.op = numbered(*node.op, turn.micro);
      if (late)
        waits_.push_back(std::move(node));
      else
        result_.nodes.push_back(std::move(node));
    }
    late_[turn.chunk].insert(late_[turn.chunk].end(), waits_.begin(), waits_.end());
    waits_.clear();
  }

  // What a turn sends is waited for before the next turn of the chunk sends: the other stage takes it in the
  // meantime.
  void take_late(std::vector<Node>& waits) {
    for (Node& node : waits) result_.nodes.push_back(std::move(node));
    waits.clear();
  }

  static OpPtr numbered(const Op& op, int64_t micro) {
    TurnOp::Form form = dynamic_cast<const TurnOp&>(op).form();
    form.micro = micro;
    return std::make_shared<TurnOp>(std::move(form));
  }

  // A value of the stage as a micro-batch has it; what persists is one for all.
  ValueId at(ValueId id, int64_t micro) {
    const Value& value = stage_.values[id];
    ValueId& known = value.kind == ValueKind::kComputed ? values_[micro].try_emplace(id, -1).first->second
                                                        : shared_[static_cast<size_t>(id)];
    if (known < 0) {
      known = static_cast<ValueId>(result_.values.size());
      result_.values.push_back(value);
    }
    return known;
  }

  const Program& stage_;
  std::map<std::pair<int, bool>, Half> halves_;  // by chunk and direction
  Half* open_ = nullptr;
  std::vector<ValueId> shared_;
  std::map<int64_t, std::map<ValueId, ValueId>> values_;  // by micro-batch
  std::map<int, std::vector<Node>> late_;                 // by chunk: waits for what its last turn sent
  std::vector<Node> waits_;
  Program result_;
};

}  // namespace

Program unrolled(const Program& stage, const std::vector<PipelineTurn>& turns) {
  return Unroller(stage).run(turns);
}

}  // namespace vitrail
