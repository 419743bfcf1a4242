// Computes values again in the backward half instead of keeping them: blocks, MLPs, or what is cheap.
#include "passes/passes.h"

#include <algorithm>
#include <map>
#include <set>

#include "ops/activate.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/rmsnorm.h"

namespace vitrail {

namespace {

// Returns the segment a forward node belongs to; -1: its results are kept.
int64_t segment_of(const Node& node, const RecomputeOptions& options) {
  if (node.phase != Phase::kForward || node.block < 0) return -1;
  if (options.level == Recompute::kMlp) return node.part == ModelPart::kMlp ? node.block : -1;
  return node.block / options.every;
}

class Recomputer {
 public:
  Recomputer(const Program& program, const RecomputeOptions& options)
      : source_(program), maker_(program.values.size(), -1), leaves_(program.values.size(), false) {
    for (size_t i = 0; i < program.nodes.size(); ++i) {
      const Node& node = program.nodes[i];
      segment_.push_back(segment_of(node, options));
      members_[segment_.back()].push_back(i);
      for (ValueId out : node.outs) maker_[out] = static_cast<int>(i);
    }
    find_leaving();
    result_.values = program.values;
    result_.outputs = program.outputs;
  }

  Program run() {
    for (const Node& node : source_.nodes) {
      Node copy = node;
      if (node.phase == Phase::kBackward)
        for (ValueId& in : copy.ins) in = again(in);
      result_.nodes.push_back(std::move(copy));
    }
    result_.validate();
    return std::move(result_);
  }

 private:
  bool recomputed(ValueId id) const { return maker_[id] >= 0 && segment_[maker_[id]] >= 0 && !leaves_[id]; }

  // Finds the values that the forward pass reads outside their own segment: they are kept.
  void find_leaving() {
    for (const Output& out : source_.outputs) leaves_[out.value] = true;
    for (size_t i = 0; i < source_.nodes.size(); ++i)
      if (source_.nodes[i].phase == Phase::kForward)
        for (ValueId in : source_.nodes[i].ins)
          if (maker_[in] >= 0 && segment_[maker_[in]] != segment_[i]) leaves_[in] = true;
  }

  // Returns the value as the backward pass sees it; its segment is cloned at the first request.
  ValueId again(ValueId id) {
    if (!recomputed(id)) return id;
    const int64_t segment = segment_[maker_[id]];
    if (done_.insert(segment).second) clone_segment(segment);
    return clone_.at(id);
  }

  void clone_segment(int64_t segment) {
    for (const size_t i : members_.at(segment)) {
      if (!is_needed(i)) continue;
      Node copy = source_.nodes[i];
      copy.phase = Phase::kBackward;
      for (ValueId& in : copy.ins)
        if (const auto found = clone_.find(in); found != clone_.end()) in = found->second;
      for (ValueId& out : copy.outs) {
        clone_[out] = static_cast<ValueId>(result_.values.size());
        result_.values.push_back(source_.values[out]);
        out = clone_[out];
      }
      result_.nodes.push_back(std::move(copy));
    }
  }

  // Returns whether the backward pass reads node i's result, directly or through later nodes of the segment.
  bool is_needed(size_t i) {
    if (needed_.empty()) find_needed();
    return needed_[i];
  }

  void find_needed() {
    std::vector<bool> wanted(source_.values.size(), false);
    for (const Node& node : source_.nodes)
      if (node.phase == Phase::kBackward)
        for (ValueId in : node.ins) wanted[in] = true;
    needed_.assign(source_.nodes.size(), false);
    for (size_t i = source_.nodes.size(); i-- > 0;) {
      if (segment_[i] < 0) continue;
      for (ValueId out : source_.nodes[i].outs) needed_[i] = needed_[i] || (wanted[out] && !leaves_[out]);
      if (!needed_[i]) continue;
      for (ValueId in : source_.nodes[i].ins)
        if (maker_[in] >= 0 && segment_[maker_[in]] == segment_[i] && !leaves_[in]) wanted[in] = true;
    }
  }

  const Program& source_;
  std::vector<int> maker_;
  std::vector<bool> leaves_;
  std::vector<int64_t> segment_;                    // by node
  std::map<int64_t, std::vector<size_t>> members_;  // nodes by segment
  std::vector<bool> needed_;
  std::set<int64_t> done_;
  std::map<ValueId, ValueId> clone_;
  Program result_;
};

bool is_cheap(const Node& node, Recompute level) {
  if (node.phase != Phase::kForward) return false;
  if (is<LayernormOp, RmsnormOp>(*node.op)) return true;
  return level == Recompute::kCheap && is<GeluOp, ActivateOp, DropoutOp>(*node.op);
}

// Computes the outputs of cheap nodes again right before the backward half first reads them.
class CheapRecomputer {
 public:
  CheapRecomputer(const Program& program, Recompute level)
      : source_(program), maker_(program.values.size(), -1) {
    std::vector<bool> read_back(program.values.size(), false);
    for (const Node& node : program.nodes)
      if (node.phase == Phase::kBackward)
        for (ValueId in : node.ins) read_back[in] = true;
    for (size_t i = 0; i < program.nodes.size(); ++i)
      if ((is_cheap(program.nodes[i], level) || casts_again(program.nodes[i])) &&
          keeps_inputs(program.nodes[i], read_back))
        for (ValueId out : program.nodes[i].outs)
          if (!program.is_output(out)) maker_[out] = static_cast<int>(i);
  }

  Program run() {
    Program result;
    result.values = source_.values;
    result.outputs = source_.outputs;
    for (const Node& node : source_.nodes) {
      Node copy = node;
      if (node.phase == Phase::kBackward)
        for (ValueId& in : copy.ins) in = again(in, result);
      result.nodes.push_back(std::move(copy));
    }
    result.validate();
    return result;
  }

 private:
  // Returns whether the node casts what is computed again: a norm of an f32 stream for a GEMM of 16 bits.
  bool casts_again(const Node& node) const {
    return node.phase == Phase::kForward && is<CastOp>(*node.op) && maker_[node.ins[0]] >= 0;
  }

  // Returns whether all that the node reads is there in the backward half: kept, or computed again too.
  bool keeps_inputs(const Node& node, const std::vector<bool>& read_back) const {
    return std::all_of(node.ins.begin(), node.ins.end(), [&](ValueId in) {
      return source_.values[in].kind != ValueKind::kComputed || read_back[in] || maker_[in] >= 0;
    });
  }

  ValueId again(ValueId id, Program& result) {
    if (maker_[id] < 0) return id;
    if (const auto found = clone_.find(id); found != clone_.end()) return found->second;
    Node copy = source_.nodes[maker_[id]];
    copy.phase = Phase::kBackward;
    for (ValueId& in : copy.ins) in = again(in, result);
    const ValueId clone = clone_[id] = static_cast<ValueId>(result.values.size());
    copy.outs = {clone};
    result.values.push_back(source_.values[id]);
    result.nodes.push_back(std::move(copy));
    return clone;
  }

  const Program& source_;
  std::vector<int> maker_;  // the node that is run again for a value; -1: none
  std::map<ValueId, ValueId> clone_;
};

}  // namespace

Program recompute(Program program, const RecomputeOptions& options) {
  VT_CHECK(options.every >= 1, "a segment has at least one block");
  if (options.level == Recompute::kNone) return program;
  if (options.level <= Recompute::kCheap) return CheapRecomputer(program, options.level).run();
  return Recomputer(program, options).run();
}

}  // namespace vitrail
