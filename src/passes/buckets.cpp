#include "passes/buckets.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/checked.h"
#include "graph/grad.h"
#include "ops/collective.h"
#include "ops/flat.h"
#include "ops/persistent.h"

namespace vitrail {

namespace {

int64_t stepped(int64_t elems) {
  return static_cast<int64_t>(round_up(static_cast<uint64_t>(elems), kBucketStep));
}

// The elements of the usual part of a value where tp cuts it. It is the same on all ranks, whose own parts
// may differ: they must close their buckets alike.
int64_t usual_elems(const TensorDesc& sum, int tensor_ranks) {
  const int64_t whole = whole_of(sum.shape).elems();
  return whole == sum.elems() ? whole : ceil_div(whole, tensor_ranks);
}

// The bytes of the sums of a program's gradients.
size_t bytes_of_sums(const Program& program, int tensor_ranks) {
  std::set<ValueId> known;
  size_t bytes = 0;
  for (const Node& node : program.nodes)
    if (is<AccumulateOp>(*node.op) && known.insert(node.ins[0]).second)
      bytes += static_cast<size_t>(usual_elems(program.values[node.ins[0]].desc, tensor_ranks)) *
               size_of(program.values[node.ins[0]].desc.dtype);
  return bytes;
}

constexpr size_t kMostUsual = size_t{25} << 20;

}  // namespace

std::vector<int64_t> Bucket::pieces(int ranks) const {
  return cut_points(elems, ranks, kBucketStep);
}

std::vector<Bucket> make_buckets(const Program& program, const std::map<std::string, Layout>& gradients,
                                 size_t bucket_bytes, bool by_block, int tensor_ranks) {
  if (bucket_bytes == 0) bucket_bytes = std::min(kMostUsual, bytes_of_sums(program, tensor_ranks) / 4);
  constexpr int kHead = -2;  // what is read behind the blocks, and comes first in the backward half
  std::map<std::pair<AxisSet, int>, Bucket> open;
  std::map<AxisSet, size_t> filled;  // bytes of the open bucket, as all ranks count them
  std::vector<Bucket> buckets;
  std::set<ValueId> known;
  int last_block = kHead;
  for (const Node& node : program.nodes) {
    if (!is<AccumulateOp>(*node.op)) continue;
    last_block = node.block >= 0 || last_block != kHead ? node.block : kHead;
    if (!known.insert(node.ins[0]).second) continue;
    const Value& sum = program.values[node.ins[0]];
    const auto layout = gradients.find(sum.name);
    const AxisSet axes = layout == gradients.end() ? AxisSet() : layout->second.partial();
    Bucket& bucket = open[{axes, by_block ? last_block : 0}];
    bucket.axes = axes;
    bucket.dtype = sum.desc.dtype;
    VT_CHECK(!sum.owner.empty(), "%s is no gradient sum", sum.name.c_str());
    bucket.members.push_back({sum.owner, sum.desc, bucket.elems});
    bucket.elems += stepped(sum.desc.elems());
    filled[axes] += static_cast<size_t>(stepped(usual_elems(sum.desc, tensor_ranks))) * size_of(bucket.dtype);
    if (by_block || filled[axes] < bucket_bytes) continue;
    buckets.push_back(std::move(bucket));
    open.erase({axes, 0});
    filled.erase(axes);
  }
  for (auto& [key, bucket] : open) buckets.push_back(std::move(bucket));
  for (size_t i = 0; i < buckets.size(); ++i) buckets[i].name = "gradients/" + std::to_string(i);
  return buckets;
}

std::vector<Bucket> frozen_buckets(const Program& program, const std::vector<Bucket>& trained,
                                   const std::vector<LowCopy>& copies) {
  std::set<std::string> known;
  for (const Bucket& bucket : trained)
    for (const Bucket::Member& member : bucket.members) known.insert(member.parameter);
  std::map<std::string, std::string> masters;
  for (const LowCopy& copy : copies) masters[copy.name] = copy.master;
  constexpr int kBehind = 1 << 30;  // what is read behind the blocks
  std::map<int, Bucket> found;
  bool entered = false;
  for (const Node& node : program.nodes) {
    entered |= node.block >= 0;
    for (const ValueId id : node.ins) {
      const Value& value = program.values[id];
      const auto master = masters.find(value.name);
      const bool read =
          value.persistent() && (value.kind == ValueKind::kParameter || master != masters.end());
      const std::string& name = master != masters.end() ? master->second : value.name;
      if (!read || node.phase != Phase::kForward || !known.insert(name).second) continue;
      Bucket& bucket = found[node.block >= 0 ? node.block : entered ? kBehind : -1];
      if (!trained.empty()) bucket.dtype = trained[0].dtype;
      bucket.members.push_back({name, {bucket.dtype, value.desc.shape}, bucket.elems});
      bucket.elems += stepped(value.desc.elems());
    }
  }
  std::vector<Bucket> buckets;
  buckets.reserve(found.size());
  for (auto& [block, bucket] : found) buckets.push_back(std::move(bucket));
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
  return {bucket.name, {bucket.dtype, {{kFlat, bucket.elems}}}, ValueKind::kState, Category::kGradients};
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
    if (!rest.empty())
      collective(CollectiveKind::kAllReduce, rest, {static_cast<size_t>(bucket.elems)}, id, !scatter, after);
    if (!scatter) return;
    std::vector<size_t> counts;
    const std::vector<int64_t> cuts = bucket.pieces(mesh_.size(Axis::kData));
    for (size_t r = 0; r + 1 < cuts.size(); ++r) counts.push_back(static_cast<size_t>(cuts[r + 1] - cuts[r]));
    collective(CollectiveKind::kReduceScatter, Axis::kData, std::move(counts), id, true, after);
  }

  void collective(CollectiveKind kind, AxisSet axes, std::vector<size_t> counts, ValueId id, bool started,
                  const Node& after) {
    auto op =
        std::make_shared<CollectiveOp>(CollectiveOp::Form{kind, axes, std::move(counts), {}, true, started});
    const std::string suffix = "." + std::string(op->kind());
    append(std::move(op), id, suffix, after);
    if (started) started_.push_back(id);
  }

  void append(OpPtr op, ValueId id, const std::string& suffix, const Node& after) {
    result_.append({.op = std::move(op),
                    .ins = {id},
                    .outs = {},
                    .name = result_.values[id].name + suffix,
                    .phase = Phase::kBackward,
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
