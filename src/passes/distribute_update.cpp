// Rewrites a program of updates for one rank: its part of every value, its range of elements with ZeRO.
#include "passes/flat_groups.h"

#include <algorithm>
#include <set>

#include "graph/grad.h"
#include "ops/collective.h"
#include "ops/flat.h"
#include "ops/update/control.h"
#include "ops/update/lamb_parts.h"

namespace vitrail {

namespace {

class UpdateDistributor {
 public:
  UpdateDistributor(const Program& recorded, const Distribution& how, const std::vector<Bucket>& buckets,
                    const ZeroPlan& zero)
      : how_(how), buckets_(buckets), zero_(zero), result_{recorded.values, {}, recorded.outputs} {
    for (Value& value : result_.values) {
      layouts_.push_back(pinned_layout(value, how));
      value.desc.shape = local_shape(value.desc.shape, layouts_.back(), how);
    }
    place_in_buckets(result_, buckets);
    if (zero_.active())
      for (Value& value : result_.values) take_window(value);
    for (const Node& node : recorded.nodes) add(node);
    sum_norms();
    if (zero_.active()) gather_groups();
    result_.validate();
  }

  Program take() { return std::move(result_); }

 private:
  void add(const Node& node) {
    if (is<SquareSumOp>(*node.op)) return add_squares(node);
    if (is<LambUpdateOp>(*node.op) && !axes_of(node.ins[0]).empty()) return split_lamb(node);
    (moves_.empty() ? result_.nodes : moves_).push_back(node);
  }

  // Returns whether each of the ranks along dp owns elements of its own.
  bool in_pieces() const { return zero_.active() && zero_.shared(); }

  // The axes along which ranks hold parts of a parameter.
  AxisSet axes_of(ValueId parameter) const {
    AxisSet axes;
    if (layouts_[static_cast<size_t>(parameter)][Axis::kTensor].kind == Placed::kShard) axes = Axis::kTensor;
    return in_pieces() ? axes.with(Axis::kData) : axes;
  }

  // The norms of a parameter are over all ranks: its step is taken, and all that comes behind it happens,
  // when the squares of every parameter are summed.
  void split_lamb(const Node& node) {
    const auto& op = static_cast<const LambUpdateOp&>(*node.op);
    Node moments = node, move = node;
    moments.op = std::make_shared<LambMomentsOp>(op);
    moments.name += ".moments";
    moments.outs = {add_value(moments.name, lamb_squares_desc())};
    const ValueId summed = add_value(node.name + ".squares", lamb_squares_desc());
    move.op = std::make_shared<LambMoveOp>(op);
    move.ins = {node.ins[0], node.ins[2], node.ins[3], summed, node.ins[4]};
    squares_[axes_of(node.ins[0])].emplace_back(moments.outs[0], summed);
    result_.nodes.push_back(std::move(moments));
    moves_.push_back(std::move(move));
  }

  // Sums the squares of all parameters in one exchange for each set of axes, then takes the steps.
  void sum_norms() {
    for (const auto& [axes, pairs] : squares_) {
      std::vector<int64_t> offsets;
      Node join{.op = nullptr,
                .ins = {},
                .outs = {},
                .name = "update.norms." + to_string(axes),
                .phase = Phase::kUpdate};
      for (const auto& [own, summed] : pairs) {
        offsets.push_back(2 * static_cast<int64_t>(join.ins.size()));
        join.ins.push_back(own);
      }
      const auto elems = static_cast<int64_t>(2 * pairs.size());
      const TensorDesc flat{DType::kF64, {{kFlat, elems}}};
      join.op = std::make_shared<JoinOp>(offsets, elems);
      join.outs = {add_value(join.name, flat)};
      Node sum = join;
      sum.op = std::make_shared<CollectiveOp>(
          CollectiveOp::Form{CollectiveKind::kAllReduce, axes, {static_cast<size_t>(elems)}});
      sum.name += ".all_reduce";
      sum.ins = join.outs;
      sum.outs = {add_value(sum.name, flat)};
      result_.nodes.push_back(join);
      result_.nodes.push_back(sum);
      for (size_t i = 0; i < pairs.size(); ++i) {
        Node view = sum;
        view.op = std::make_shared<ViewOp>(offsets[i], lamb_squares_desc().shape);
        view.name = result_.values[pairs[i].second].name;
        view.ins = sum.outs;
        view.outs = {pairs[i].second};
        result_.nodes.push_back(std::move(view));
      }
    }
    result_.nodes.insert(result_.nodes.end(), moves_.begin(), moves_.end());
  }

  ValueId add_value(const std::string& name, const TensorDesc& desc) {
    result_.values.push_back({name, desc, ValueKind::kComputed});
    layouts_.emplace_back();
    return static_cast<ValueId>(result_.values.size()) - 1;
  }

  // Replaces a value by the range of its elements that this rank owns.
  void take_window(Value& value) {
    if (!value.persistent()) return;
    if (!value.container.empty()) return take_gradient(value);
    const auto place = zero_.find(value.name);
    if (!place) {  // the state of an optimizer, or a master beside its copy
      if (const auto window = zero_.window(value.owner)) flatten(value, *window);
      return;
    }
    const OwnRange window = place->member->window;
    value.container = place->group->name;
    value.container_offset = place->member->offset + window.begin;
    if (!place->group->whole) value.container_offset -= place->group->cuts[static_cast<size_t>(rank())];
    if (place->group->whole) become_range(value);
    flatten(value, window);
  }

  void take_gradient(Value& value) {
    const Bucket& bucket = bucket_of(value.container);
    const OwnRange window = *zero_.window(value.owner);
    value.container_offset += window.begin;
    if (zero_.shares_gradients())
      value.container_offset -= bucket.pieces(how_.mesh.size(Axis::kData))[static_cast<size_t>(rank())];
    else
      become_range(value);
    flatten(value, window);
  }

  // A range of a value that this rank has whole is another value in the same memory.
  static void become_range(Value& value) {
    value.name += "#own";
    value.kind = ValueKind::kState;
  }

  static void flatten(Value& value, const OwnRange& window) {
    Dim dim(kFlat, value.desc.elems());
    dim.local = window.size();
    dim.offset = window.begin;
    if (window.size() == 0) dim.offset = value.container_offset = 0;
    value.logical = value.desc.shape;
    value.desc.shape = {dim};
  }

  int rank() const { return how_.mesh.coordinate(Axis::kData); }
  const Bucket& bucket_of(const std::string& name) const {
    for (const Bucket& bucket : buckets_)
      if (bucket.name == name) return bucket;
    throw Error(ErrorKind::kInternal, "no bucket " + name);
  }

  bool is_cut(ValueId sum) const {
    return layouts_[static_cast<size_t>(sum)][Axis::kTensor].kind == Placed::kShard;
  }

  // The axes along which squares are summed. Where tp cuts no parameter of any stage, each of its ranks has
  // them all.
  AxisSet axes_of_squares(const Node& node) const {
    AxisSet axes;
    const bool stages = how_.mesh.size(Axis::kPipeline) > 1;  // a stage has its own
    const bool cut =
        stages || std::any_of(node.ins.begin(), node.ins.end(), [&](auto sum) { return is_cut(sum); });
    if (how_.mesh.size(Axis::kTensor) > 1 && cut) axes = axes.with(Axis::kTensor);
    if (in_pieces()) axes = axes.with(Axis::kData);
    return stages ? axes.with(Axis::kPipeline) : axes;
  }

  // Returns what this rank adds to the squares; the first of tp adds those of parameters that all of tp have.
  std::vector<ValueId> own_squares(const Node& node, AxisSet axes) const {
    const bool counts_all = !axes.has(Axis::kTensor) || how_.mesh.coordinate(Axis::kTensor) == 0;
    const auto is_empty = [&](ValueId sum) { return result_.values[sum].desc.elems() == 0; };
    std::vector<ValueId> own;
    for (const ValueId sum : node.ins)
      if ((counts_all || is_cut(sum)) && !is_empty(sum)) own.push_back(sum);
    if (!own.empty()) return own;
    // Some ranks hold only what others count: nothing, which an empty piece stands for.
    const auto empty = std::find_if(node.ins.begin(), node.ins.end(), is_empty);
    if (empty == node.ins.end())
      throw Error(
          ErrorKind::kConfig,
          strf("stage %d of the pipeline trains no parameter that mesh.tp cuts, so a rank of it has no "
               "part of the gradient's norm",
               how_.mesh.coordinate(Axis::kPipeline)),
          "mesh.tp=1 or mesh.pp=1, or train a block of every stage");
    return {*empty};
  }

  void add_squares(const Node& node) {
    const AxisSet axes = axes_of_squares(node);
    Node own = node;
    own.ins = own_squares(node, axes);
    if (axes.empty()) return result_.nodes.push_back(std::move(own));
    const ValueId total = node.outs[0];
    own.outs[0] = add_value(node.name + ".own", TensorDesc(result_.values[total].desc));
    Node sum = node;
    sum.op = std::make_shared<CollectiveOp>(CollectiveOp::Form{CollectiveKind::kAllReduce, axes, {1}});
    sum.ins = {own.outs[0]};
    sum.name += ".all_reduce";
    result_.nodes.push_back(std::move(own));
    result_.nodes.push_back(std::move(sum));
  }

  // Every rank gets the pieces that the others have updated.
  void gather_groups() {
    std::set<std::string> written;
    for (const Node& node : result_.nodes)
      for (const int input : node.op->updates())
        written.insert(result_.values[node.ins[static_cast<size_t>(input)]].container);
    std::vector<ValueId> started;
    for (const FlatGroup& group : zero_.groups()) {
      if (!group.whole || !written.contains(group.name)) continue;
      result_.values.push_back(group_value(group, rank()));
      started.push_back(static_cast<ValueId>(result_.values.size()) - 1);
      append(std::make_shared<CollectiveOp>(CollectiveOp::Form{
                 CollectiveKind::kAllGather, Axis::kData, group.piece_counts(), {}, true, true}),
             started.back(), ".all_gather");
    }
    for (const ValueId id : started) append(std::make_shared<WaitOp>(), id, ".wait");
  }

  void append(OpPtr op, ValueId id, const char* suffix) {
    result_.append({.op = std::move(op),
                    .ins = {id},
                    .outs = {},
                    .name = result_.values[id].name + suffix,
                    .phase = Phase::kUpdate});
  }

  const Distribution& how_;
  const std::vector<Bucket>& buckets_;
  const ZeroPlan& zero_;
  Program result_;
  std::vector<Layout> layouts_;                                          // by value
  std::map<AxisSet, std::vector<std::pair<ValueId, ValueId>>> squares_;  // of a parameter: own, summed
  std::vector<Node> moves_;
};

}  // namespace

Program distribute_update(const Program& recorded, const Distribution& how,
                          const std::vector<Bucket>& buckets, const ZeroPlan& zero) {
  return UpdateDistributor(recorded, how, buckets, zero).take();
}

}  // namespace vitrail
