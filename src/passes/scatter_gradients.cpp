// Lets every micro-batch hand its gradients to the ranks that own them (ZeRO 2 and 3), bucket by bucket.
#include <map>

#include "graph/grad.h"
#include "ops/collective.h"
#include "ops/flat.h"
#include "ops/persistent.h"
#include "passes/flat_groups.h"

namespace vitrail {

namespace {

class Scatterer {
 public:
  Scatterer(const Program& program, const std::vector<Bucket>& buckets, const Mesh& mesh)
      : source_(program), mesh_(mesh), result_{program.values, {}, program.outputs} {
    for (const Bucket& bucket : buckets)
      for (size_t m = 0; m < bucket.members.size(); ++m)
        members_[gradient_name(bucket.members[m].parameter)] = {&bucket, m};
    for (const Node& node : program.nodes) {
      if (is<AccumulateOp>(*node.op))
        collect(node);
      else
        result_.nodes.push_back(node);
    }
    for (const Flight& flight : flights_) complete(flight);
    result_.validate();
  }

  Program take() { return std::move(result_); }

 private:
  using Collected = std::map<size_t, ValueId>;  // the gradients of a bucket so far, by member
  struct Flight {
    const Bucket* bucket;
    ValueId joined, piece;
    const Node* after;
  };

  void collect(const Node& node) {
    const auto found = members_.find(source_.values[node.ins[0]].name);
    VT_CHECK(found != members_.end(), "%s is in no bucket", node.name.c_str());
    const auto [bucket, member] = found->second;
    Collected& collected = collected_[bucket];
    VT_CHECK(collected.emplace(member, node.ins[1]).second,
             "%s is summed from several gradients, which ZeRO 2 and 3 do not support", node.name.c_str());
    if (collected.size() == bucket->members.size()) launch(*bucket, collected, node);
  }

  ValueId append(OpPtr op, std::vector<ValueId> ins, const std::string& name, const Node& after) {
    const std::vector<ValueId> outs = result_.append({.op = std::move(op),
                                                      .ins = std::move(ins),
                                                      .outs = {},
                                                      .name = name,
                                                      .phase = Phase::kBackward,
                                                      .block = after.block,
                                                      .part = after.part,
                                                      .where = after.where});
    return outs.empty() ? -1 : outs[0];
  }

  void launch(const Bucket& bucket, const Collected& collected, const Node& after) {
    std::vector<ValueId> ins;
    std::vector<int64_t> offsets;
    for (const auto& [member, gradient] : collected) {
      ins.push_back(gradient);
      offsets.push_back(bucket.members[member].offset);
    }
    ValueId joined = append(std::make_shared<JoinOp>(std::move(offsets), bucket.elems), std::move(ins),
                            bucket.name + ".join", after);
    const AxisSet rest = AxisSet::from_bits(bucket.axes.bits() & ~AxisSet(Axis::kData).bits());
    if (!rest.empty())
      joined = append(std::make_shared<CollectiveOp>(CollectiveOp::Form{
                          CollectiveKind::kAllReduce, rest, {static_cast<size_t>(bucket.elems)}}),
                      {joined}, bucket.name + ".all_reduce", after);
    const std::vector<int64_t> cuts = bucket.pieces(mesh_.size(Axis::kData));
    std::vector<size_t> counts;
    for (size_t r = 0; r + 1 < cuts.size(); ++r) counts.push_back(static_cast<size_t>(cuts[r + 1] - cuts[r]));
    const TensorDesc piece{bucket.dtype,
                           {part_of({kFlat, bucket.elems}, cuts, mesh_.coordinate(Axis::kData))}};
    const ValueId mine =
        append(std::make_shared<CollectiveOp>(CollectiveOp::Form{CollectiveKind::kReduceScatter, Axis::kData,
                                                                 std::move(counts), piece, false, true}),
               {joined}, bucket.name + ".reduce_scatter", after);
    if (!flights_.empty()) {
      complete(flights_.back());
      flights_.pop_back();
    }
    flights_.push_back({&bucket, joined, mine, &after});
  }

  // Waits for the sum and adds this rank's piece to what it keeps.
  void complete(const Flight& flight) {
    const Bucket& bucket = *flight.bucket;
    append(std::make_shared<WaitOp>(), {flight.joined, flight.piece}, bucket.name + ".wait", *flight.after);
    Value kept = bucket_value(bucket);
    kept.desc.shape = result_.values[flight.piece].desc.shape;
    result_.values.push_back(std::move(kept));
    append(std::make_shared<AccumulateOp>(), {static_cast<ValueId>(result_.values.size()) - 1, flight.piece},
           bucket.name, *flight.after);
  }

  const Program& source_;
  const Mesh& mesh_;
  Program result_;
  std::map<std::string, std::pair<const Bucket*, size_t>> members_;
  std::map<const Bucket*, Collected> collected_;
  std::vector<Flight> flights_;
};

}  // namespace

Program scatter_gradients(const Program& program, const std::vector<Bucket>& buckets, const Mesh& mesh) {
  return Scatterer(program, buckets, mesh).take();
}

}  // namespace vitrail
