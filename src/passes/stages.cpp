#include "passes/stages.h"

#include <algorithm>
#include <map>
#include <set>

#include "ops/collective.h"
#include "ops/turn.h"

namespace vitrail {

namespace {

constexpr int kForwardChannel = 0, kBackChannel = 1;

class StageCutter {
 public:
  StageCutter(const Program& program, const StageOptions& options, const Mesh& mesh, StageOf what)
      : source_(program),
        shape_(options.shape(mesh)),
        begins_(options.begins),
        stage_(mesh.coordinate(Axis::kPipeline)),
        what_(what),
        maker_(program.values.size(), -1) {
    VT_CHECK(static_cast<int>(begins_.size()) == shape_.all_chunks() - 1, "the stages are not cut yet");
    find_chunks();
    find_crossings();
  }

  Program run() {
    for (int chunk = stage_; chunk < shape_.all_chunks(); chunk += shape_.stages) add_half(chunk, false);
    if (what_ == StageOf::kUpdate)
      for (int chunk = last_own(); chunk >= 0; chunk -= shape_.stages) add_half(chunk, true);
    add_outputs();
    for (const ValueId id : sent_) add_wait(id, Phase::kForward);
    result_.validate();
    return std::move(result_);
  }

 private:
  // A value that a chunk makes and its neighbour reads.
  struct Crossing {
    ValueId value;
    int from, to;
  };

  int last_own() const { return shape_.all_chunks() - shape_.stages + stage_; }
  bool is_own(int chunk) const { return shape_.stage_of(chunk) == stage_; }

  int chunk_with(int block) const {
    return static_cast<int>(std::upper_bound(begins_.begin(), begins_.end(), block) - begins_.begin());
  }

  // What stands outside the blocks belongs to the first chunk or the last, by its place beside them.
  void find_chunks() {
    Phase phase = Phase::kForward;
    bool seen = false;
    for (size_t i = 0; i < source_.nodes.size(); ++i) {
      const Node& node = source_.nodes[i];
      if (node.phase != phase) {
        phase = node.phase;
        seen = false;
      }
      seen |= node.block >= 0;
      const bool front = (phase == Phase::kForward) != seen;
      chunks_.push_back(node.block >= 0 ? chunk_with(node.block) : front ? 0 : shape_.all_chunks() - 1);
      for (const ValueId out : node.outs) maker_[out] = static_cast<int>(i);
    }
  }

  void find_crossings() {
    std::set<std::pair<ValueId, int>> known;
    for (size_t i = 0; i < source_.nodes.size(); ++i)
      for (const ValueId id : source_.nodes[i].ins) {
        if (maker_[id] < 0) continue;
        const int from = chunks_[static_cast<size_t>(maker_[id])], to = chunks_[i];
        if (from == to || !known.insert({id, to}).second) continue;
        const bool back = source_.nodes[static_cast<size_t>(maker_[id])].phase == Phase::kBackward;
        VT_CHECK(to == (back ? from - 1 : from + 1), "%s goes from chunk %d to chunk %d",
                 source_.values[id].name.c_str(), from, to);
        (back ? backward_ : forward_).push_back({id, from, to});
      }
    for (std::vector<Crossing>* list : {&forward_, &backward_})
      std::sort(list->begin(), list->end(),
                [](const Crossing& a, const Crossing& b) { return a.value < b.value; });
  }

  // The forward or backward half of a chunk: what it reads of its neighbour, its nodes, what it hands on.
  void add_half(int chunk, bool backward) {
    if (what_ == StageOf::kUpdate) begin_turn(chunk, backward);
    const std::vector<Crossing>& crossings = backward ? backward_ : forward_;
    const Phase phase = backward ? Phase::kBackward : Phase::kForward;
    if (backward) end_forward(chunk);
    for (const Crossing& one : crossings)
      if (one.to == chunk)
        now_[{one.value, chunk}] =
            receive(source_.values[one.value], shape_.stage_of(one.from), channel(backward), phase);
    for (size_t i = 0; i < source_.nodes.size(); ++i)
      if (chunks_[i] == chunk && (source_.nodes[i].phase == Phase::kBackward) == backward)
        add_node(source_.nodes[i], chunk);
    for (const Crossing& one : crossings)
      if (one.from == chunk) send(at(one.value, chunk), shape_.stage_of(one.to), channel(backward), phase);
    if (!backward) return;
    for (const Crossing& one : crossings)
      if (one.from == chunk) end_send(at(one.value, chunk), phase);
  }

  // By the time of the backward half the receiver has it all.
  void end_forward(int chunk) {
    for (const Crossing& one : forward_)
      if (one.from == chunk) end_send(at(one.value, chunk), Phase::kBackward);
  }

  static int channel(bool backward) { return backward ? kBackChannel : kForwardChannel; }

  void begin_turn(int chunk, bool backward) {
    TurnOp::Form form{.backward = backward, .chunk = chunk};
    Node node{.op = nullptr,
              .ins = {},
              .outs = {},
              .name = strf("turn.%s.%d", backward ? "backward" : "forward", chunk),
              .phase = backward ? Phase::kBackward : Phase::kForward};
    for (const ValueId id : backward ? std::set<ValueId>() : inputs_of(chunk)) {
      const Value& value = source_.values[id];
      form.names.push_back(value.name);
      form.inputs.push_back(value.desc);
      node.outs.push_back(add_value({value.name, value.desc, ValueKind::kComputed}));
      now_[{id, chunk}] = node.outs.back();
    }
    node.op = std::make_shared<TurnOp>(std::move(form));
    result_.nodes.push_back(std::move(node));
  }

  std::set<ValueId> inputs_of(int chunk) const {
    std::set<ValueId> inputs;
    for (size_t i = 0; i < source_.nodes.size(); ++i)
      for (const ValueId id : source_.nodes[i].ins)
        if (chunks_[i] == chunk && source_.values[id].kind == ValueKind::kInput) inputs.insert(id);
    return inputs;
  }

  // A value of the source as a chunk of this stage has it.
  ValueId at(ValueId source, int chunk) {
    const Value& value = source_.values[source];
    const bool shared = value.persistent() || (value.kind == ValueKind::kInput && what_ == StageOf::kBatch);
    const auto key = std::pair(source, shared ? -1 : chunk);
    const auto found = now_.find(key);
    if (found != now_.end()) return found->second;
    VT_CHECK(shared, "%s is not on chunk %d", value.name.c_str(), chunk);
    return now_[key] = add_value(value);
  }

  ValueId add_value(Value value) {
    result_.values.push_back(std::move(value));
    return static_cast<ValueId>(result_.values.size()) - 1;
  }

  void add_node(Node node, int chunk) {
    for (ValueId& in : node.ins) in = at(in, chunk);
    for (ValueId& out : node.outs) {
      const ValueId source = out;
      out = now_[{source, chunk}] = add_value(source_.values[source]);
    }
    result_.nodes.push_back(std::move(node));
  }

  ValueId receive(const Value& value, int peer, int channel, Phase phase) {
    return result_
        .append({.op = pair_op(CollectiveKind::kReceive, value.desc, peer, channel),
                 .ins = {},
                 .outs = {},
                 .name = value.name + ".receive",
                 .phase = phase})
        .front();
  }

  void send(ValueId id, int peer, int channel, Phase phase) {
    const Value& value = result_.values[id];
    result_.append({.op = pair_op(CollectiveKind::kSend, value.desc, peer, channel),
                    .ins = {id},
                    .outs = {},
                    .name = value.name + ".send",
                    .phase = phase});
    sent_.push_back(id);
  }

  static OpPtr pair_op(CollectiveKind kind, const TensorDesc& desc, int peer, int channel) {
    CollectiveOp::Form form{kind, Axis::kPipeline, {static_cast<size_t>(desc.elems())}, desc};
    form.started = kind == CollectiveKind::kSend;
    form.peer = peer;
    form.channel = channel;
    return std::make_shared<CollectiveOp>(std::move(form));
  }

  void end_send(ValueId id, Phase phase) {
    std::erase(sent_, id);
    add_wait(id, phase);
  }
  void add_wait(ValueId id, Phase phase) {
    result_.append({.op = std::make_shared<WaitOp>(),
                    .ins = {id},
                    .outs = {},
                    .name = result_.values[id].name + ".sent",
                    .phase = phase});
  }

  // The outputs of a batch are on the last stage and go back from stage to stage.
  void add_outputs() {
    if (what_ == StageOf::kUpdate) return;
    const int last = shape_.stages - 1;
    for (const Output& out : source_.outputs) {
      const ValueId id = stage_ == last
                             ? at(out.value, shape_.all_chunks() - 1)
                             : receive(source_.values[out.value], stage_ + 1, kBackChannel, Phase::kForward);
      if (stage_ > 0) send(id, stage_ - 1, kBackChannel, Phase::kForward);
      result_.outputs.push_back({out.name, id});
    }
  }

  const Program& source_;
  PipelineShape shape_;
  const std::vector<int>& begins_;
  int stage_;
  StageOf what_;
  std::vector<int> maker_;                          // by value: the node that makes it
  std::vector<int> chunks_;                         // by node
  std::vector<Crossing> forward_, backward_;        // by value
  std::map<std::pair<ValueId, int>, ValueId> now_;  // by value of the source and chunk; -1: of all chunks
  std::vector<ValueId> sent_;                       // and not waited for
  Program result_;
};

}  // namespace

Program stage_of(const Program& program, const StageOptions& options, const Mesh& mesh, StageOf what) {
  return StageCutter(program, options, mesh, what).run();
}

}  // namespace vitrail
