#include "passes/buckets.h"

#include <algorithm>

#include "base/checked.h"
#include "graph/grad.h"
#include "ops/collective.h"
#include "ops/flat.h"

namespace vitrail {

namespace {
// 64 bytes of f32; wider and narrower types keep the same element offsets.
constexpr int64_t kStep = 16;

int64_t stepped(int64_t elems) {
  return static_cast<int64_t>(round_up(static_cast<uint64_t>(elems), kStep));
}
}  // namespace

std::vector<int64_t> Bucket::pieces(int ranks) const {
  return cut_points(elems, ranks, kStep);
}

std::vector<Bucket> make_buckets(const Program& program, const std::map<std::string, Layout>& gradients,
                                 size_t bucket_bytes) {
  std::map<AxisSet, Bucket> open;
  std::vector<Bucket> buckets;
  const auto close = [&](Bucket& bucket) {
    std::reverse(bucket.members.begin(), bucket.members.end());
    for (Bucket::Member& member : bucket.members) {
      member.offset = bucket.elems;
      bucket.elems += stepped(member.desc.elems());
    }
    buckets.push_back(std::move(bucket));
  };
  // From the last parameter on, as their gradients come; parameters that are first read together stay together.
  for (auto value = program.values.rbegin(); value != program.values.rend(); ++value) {
    const auto sum = gradients.find(gradient_name(value->name));
    if (value->kind != ValueKind::kParameter || sum == gradients.end()) continue;
    const TensorDesc desc{accumulator_dtype(value->desc.dtype), value->desc.shape};
    Bucket& bucket = open[sum->second.partial()];
    bucket.axes = sum->second.partial();
    bucket.dtype = desc.dtype;
    bucket.members.push_back({value->name, desc, 0});
    size_t bytes = 0;
    for (const Bucket::Member& member : bucket.members) bytes += member.desc.bytes();
    if (bytes < bucket_bytes) continue;
    close(bucket);
    open.erase(sum->second.partial());
  }
  for (auto& [axes, bucket] : open) close(bucket);
  for (size_t i = 0; i < buckets.size(); ++i) buckets[i].name = "gradients/" + std::to_string(i);
  return buckets;
}

void place_in_buckets(Program& program, const std::vector<Bucket>& buckets) {
  std::map<std::string, std::pair<const Bucket*, int64_t>> places;
  for (const Bucket& bucket : buckets)
    for (const Bucket::Member& member : bucket.members)
      places[gradient_name(member.parameter)] = {&bucket, member.offset};
  for (Value& value : program.values) {
    const auto found = value.persistent() ? places.find(value.name) : places.end();
    if (found == places.end()) continue;
    value.container = found->second.first->name;
    value.container_offset = found->second.second;
  }
}

Value bucket_value(const Bucket& bucket) {
  return {bucket.name,
          {bucket.dtype, {{kFlat, bucket.elems}}},
          ValueKind::kState,
          Category::kGradients};
}

namespace {

class Reducer {
 public:
  Reducer(const Program& micro, const std::vector<Bucket>& buckets, const Mesh& mesh, bool scatter)
      : mesh_(mesh), scatter_(scatter), result_{micro.values, {}, micro.outputs} {
    for (const Bucket& bucket : buckets) {
      if (bucket.axes.empty()) continue;
      result_.values.push_back(bucket_value(bucket));
      const auto id = static_cast<ValueId>(result_.values.size()) - 1;
      size_t last = 0;
      for (size_t i = 0; i < micro.nodes.size(); ++i)
        if (writes_member(micro, micro.nodes[i], bucket)) last = i;
      complete_[last].emplace_back(&bucket, id);
    }
    for (size_t i = 0; i < micro.nodes.size(); ++i) {
      result_.nodes.push_back(micro.nodes[i]);
      for (const auto& [bucket, id] : complete_[i]) reduce(*bucket, id, micro.nodes[i]);
    }
    for (const ValueId id : started_) append(std::make_shared<WaitOp>(), id, ".wait", micro.nodes.back());
    result_.validate();
  }

  Program take() { return std::move(result_); }

 private:
  static bool writes_member(const Program& program, const Node& node, const Bucket& bucket) {
    for (const int input : node.op->updates()) {
      const Value& value = program.values[node.ins[static_cast<size_t>(input)]];
      if (value.container == bucket.name) return true;
    }
    return false;
  }

  // A rank's piece is of dp alone; along the other axes the sums become whole first.
  void reduce(const Bucket& bucket, ValueId id, const Node& after) {
    AxisSet rest = bucket.axes;
    const bool scatter = scatter_ && rest.has(Axis::kData);
    if (scatter) rest = AxisSet::from_bits(rest.bits() & ~AxisSet(Axis::kData).bits());
    if (!rest.empty()) collective(CollectiveKind::kAllReduce, rest, {static_cast<size_t>(bucket.elems)}, id, !scatter, after);
    if (!scatter) return;
    std::vector<size_t> counts;
    const std::vector<int64_t> cuts = bucket.pieces(mesh_.size(Axis::kData));
    for (size_t r = 0; r + 1 < cuts.size(); ++r) counts.push_back(static_cast<size_t>(cuts[r + 1] - cuts[r]));
    collective(CollectiveKind::kReduceScatter, Axis::kData, std::move(counts), id, true, after);
  }

  void collective(CollectiveKind kind, AxisSet axes, std::vector<size_t> counts, ValueId id, bool started,
                  const Node& after) {
    auto op = std::make_shared<CollectiveOp>(
        CollectiveOp::Form{kind, axes, std::move(counts), {}, true, started});
    const std::string suffix = "." + std::string(op->kind());
    append(std::move(op), id, suffix, after);
    if (started) started_.push_back(id);
  }

  void append(OpPtr op, ValueId id, const std::string& suffix, const Node& after) {
    result_.nodes.push_back({.op = std::move(op),
                             .ins = {id},
                             .outs = {},
                             .name = result_.values[id].name + suffix,
                             .phase = Phase::kBackward,
                             .block = -1,
                             .part = ModelPart::kNone,
                             .where = after.where});
  }

  const Mesh& mesh_;
  bool scatter_;
  Program result_;
  std::map<size_t, std::vector<std::pair<const Bucket*, ValueId>>> complete_;  // by node of the micro program
  std::vector<ValueId> started_;
};

}  // namespace

Program reduce_gradients(const Program& micro, const std::vector<Bucket>& buckets, const Mesh& mesh,
                         bool scatter) {
  return Reducer(micro, buckets, mesh, scatter).take();
}

}  // namespace vitrail
