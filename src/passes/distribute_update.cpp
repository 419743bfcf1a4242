#include "passes/distribute_update.h"

#include "ops/collective.h"
#include "ops/update/control.h"

namespace vitrail {

namespace {

class UpdateDistributor {
 public:
  UpdateDistributor(const Program& recorded, const Distribution& how, const std::vector<Bucket>& buckets)
      : how_(how), result_{recorded.values, {}, recorded.outputs} {
    for (Value& value : result_.values) {
      layouts_.push_back(pinned_layout(value, how));
      value.desc.shape = local_shape(value.desc.shape, layouts_.back(), how);
    }
    place_in_buckets(result_, buckets);
    for (const Node& node : recorded.nodes) is<SquareSumOp>(*node.op) ? add_squares(node) : result_.nodes.push_back(node);
    result_.validate();
  }

  Program take() { return std::move(result_); }

 private:
  bool is_own(ValueId sum) const {
    return layouts_[static_cast<size_t>(sum)][Axis::kTensor].kind == Placed::kShard ||
           how_.mesh.coordinate(Axis::kTensor) == 0;
  }

  void add_squares(const Node& node) {
    Node own = node;
    std::erase_if(own.ins, [&](ValueId sum) { return !is_own(sum); });
    VT_CHECK(!own.ins.empty(), "rank %d holds no gradient of its own", how_.mesh.rank);
    if (how_.mesh.size(Axis::kTensor) == 1) return result_.nodes.push_back(std::move(own));
    const ValueId total = node.outs[0];
    own.outs[0] = static_cast<ValueId>(result_.values.size());
    result_.values.push_back({node.name + ".own", result_.values[total].desc, ValueKind::kComputed});
    layouts_.emplace_back();
    Node sum = node;
    sum.op = std::make_shared<CollectiveOp>(CollectiveOp::Form{CollectiveKind::kAllReduce, Axis::kTensor, {1}});
    sum.ins = {own.outs[0]};
    sum.name += ".all_reduce";
    result_.nodes.push_back(std::move(own));
    result_.nodes.push_back(std::move(sum));
  }

  const Distribution& how_;
  Program result_;
  std::vector<Layout> layouts_;  // by value
};

}  // namespace

Program distribute_update(const Program& recorded, const Distribution& how, const std::vector<Bucket>& buckets) {
  return UpdateDistributor(recorded, how, buckets).take();
}

}  // namespace vitrail
