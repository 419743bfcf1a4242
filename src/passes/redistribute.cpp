#include "passes/redistribute.h"

#include "ops/flat.h"

namespace vitrail {

namespace {

// Returns whether the parts of a dim lie one after another: nothing but dims of one comes before it.
bool is_outermost(const Shape& shape, char dim) {
  for (const Dim& before : shape) {
    if (before.name == dim) return true;
    if (before.local != 1) return false;
  }
  return false;
}

TensorDesc flat_desc(DType dtype, const std::vector<size_t>& counts) {
  int64_t elems = 0;
  for (const size_t count : counts) elems += static_cast<int64_t>(count);
  return {dtype, {{kFlat, elems}}};
}

}  // namespace

ValueId DistributedValues::add_value(Value value, const Layout& layout, int block) {
  program_.values.push_back(std::move(value));
  layouts_.push_back(layout);
  blocks_.push_back(block);
  return static_cast<ValueId>(program_.values.size()) - 1;
}

ValueId DistributedValues::adopt(ValueId source) {
  Value value = source_.values[source];
  VT_CHECK(value.kind != ValueKind::kComputed, "%s is read before it is written", value.name.c_str());
  const Layout layout = pinned_layout(value, how_);
  whole_.push_back(value.desc.shape);
  value.desc.shape = local_shape(value.desc.shape, layout, how_);
  return add_value(std::move(value), layout, -1);
}

std::vector<ValueId> DistributedValues::record(const Node& node, const std::vector<ValueId>& ins,
                                               const std::vector<Layout>& outs) {
  Node mine = node;
  mine.ins = ins;
  mine.outs.clear();
  names_.insert(node.name);
  const std::vector<TensorDesc> inferred =
      with_context(node.name, [&] { return node.op->infer(program_.descs(ins)); });
  for (size_t o = 0; o < inferred.size(); ++o) {
    const Value& source = source_.values[node.outs[o]];
    const Shape expected = local_shape(source.desc.shape, outs[o], how_);
    VT_CHECK(inferred[o].shape == expected, "%s: a part of %s came out as %s, expected %s", node.name.c_str(),
             to_string(source.desc).c_str(), to_string(inferred[o]).c_str(), to_string(expected).c_str());
    whole_.push_back(source.desc.shape);
    Value value = source;
    value.desc = inferred[o];
    mine.outs.push_back(add_value(std::move(value), outs[o], node.block));
  }
  program_.nodes.push_back(std::move(mine));
  return program_.nodes.back().outs;
}

std::string DistributedValues::unique_name(const std::string& name) {
  std::string chosen = name;
  for (int n = 2; !names_.insert(chosen).second; ++n) chosen = name + "_" + std::to_string(n);
  return chosen;
}

ValueId DistributedValues::append(OpPtr op, ValueId in, const char* suffix, const Layout& layout,
                                  const Node& reader) {
  whole_.push_back(whole_[static_cast<size_t>(in)]);
  layouts_.push_back(layout);
  blocks_.push_back(reader.block);
  return program_
      .append({.op = std::move(op),
               .ins = {in},
               .outs = {},
               .name = unique_name(program_.values[in].name + "." + suffix),
               .phase = reader.phase,
               .block = reader.block,
               .part = reader.part,
               .step = step_between(program_.values[in], reader.step),
               .where = reader.where})
      .front();
}

ValueId DistributedValues::append_collective(CollectiveOp::Form form, ValueId in, const Layout& layout,
                                             const Node& reader) {
  auto op = std::make_shared<CollectiveOp>(std::move(form));
  const std::string suffix(op->kind());
  return append(std::move(op), in, suffix.c_str(), layout, reader);
}

ValueId DistributedValues::in_layout(ValueId id, const Layout& wanted, const Node& reader) {
  for (const Axis axis : kAxes) {
    const Placed from = layout(id)[axis], to = wanted[axis];
    if (from == to) continue;
    const bool gathers = from.kind == Placed::kShard && to.kind == Placed::kReplicated;
    const Phase phase = gathers ? reader.phase : Phase::kForward;
    const auto key = std::make_tuple(id, axis, to, phase);
    const auto found = copies_.find(key);
    id = found != copies_.end() ? found->second : copies_[key] = converted(id, axis, to, reader);
  }
  return id;
}

ValueId DistributedValues::converted(ValueId id, Axis axis, Placed wanted, const Node& reader) {
  Layout layout = this->layout(id);
  const Placed from = layout[axis];
  layout[axis] = wanted;
  if (from.kind == Placed::kPartial && wanted.kind == Placed::kReplicated)
    return append_collective({CollectiveKind::kAllReduce, axis, {static_cast<size_t>(shape(id).elems())}}, id,
                             layout, reader);
  if (from.kind == Placed::kPartial) return reduce_scatter(id, axis, wanted.dim, reader);
  if (from.kind == Placed::kShard && wanted.kind == Placed::kReplicated) return gather(id, axis, reader);
  if (from.kind == Placed::kShard && wanted.kind == Placed::kShard)
    return exchange(id, axis, wanted.dim, reader);
  VT_CHECK(wanted.kind == Placed::kShard, "%s cannot become a partial sum", program_.values[id].name.c_str());
  const Dim& dim = shape(id)[*shape(id).find(wanted.dim)];
  return append(std::make_shared<SliceOp>(part_of(dim, cuts_of(dim, axis, how_), how_.mesh.coordinate(axis))),
                id, "slice", layout, reader);
}

// The dim of a sharded value as it is when the axis holds it whole.
Dim DistributedValues::whole_dim(ValueId id, Axis axis) const {
  Layout layout = this->layout(id);
  const char dim = layout[axis].dim;
  for (const Axis other : kAxes)
    VT_CHECK(other <= axis || layout[other] != layout[axis], "%c is cut along two axes", dim);
  layout[axis] = {};
  const Shape shape = local_shape(whole_[static_cast<size_t>(id)], layout, how_);
  return shape[*shape.find(dim)];
}

// The elements of each part of a dim, the other dims as they are.
std::vector<size_t> DistributedValues::part_elems(const Shape& shape, char dim,
                                                  const std::vector<int64_t>& cuts) const {
  size_t others = 1;
  for (const Dim& other : shape)
    if (other.name != dim) others *= static_cast<size_t>(other.local);
  std::vector<size_t> counts;
  for (size_t r = 0; r + 1 < cuts.size(); ++r)
    counts.push_back(others * static_cast<size_t>(cuts[r + 1] - cuts[r]));
  return counts;
}

ValueId DistributedValues::gather(ValueId id, Axis axis, const Node& reader) {
  Layout layout = this->layout(id);
  const char dim = layout[axis].dim;
  const Dim whole = whole_dim(id, axis);
  const std::vector<int64_t> cuts = cuts_of(whole, axis, how_);
  const std::vector<size_t> counts = part_elems(shape(id), dim, cuts);
  const Shape out = shape(id).with(dim, whole);
  const DType dtype = program_.values[id].desc.dtype;
  layout[axis] = {};
  const bool in_order = is_outermost(out, dim);
  const TensorDesc gathered = in_order ? TensorDesc{dtype, out} : flat_desc(dtype, counts);
  id = append_collective({CollectiveKind::kAllGather, axis, counts, gathered}, id, layout, reader);
  return in_order ? id : append(std::make_shared<UnpackOp>(dim, cuts, out), id, "unpack", layout, reader);
}

ValueId DistributedValues::reduce_scatter(ValueId id, Axis axis, char dim, const Node& reader) {
  Layout layout = this->layout(id);
  const Shape whole = shape(id);
  const Dim& extent = whole[*whole.find(dim)];
  const std::vector<int64_t> cuts = cuts_of(extent, axis, how_);
  const std::vector<size_t> counts = part_elems(whole, dim, cuts);
  const TensorDesc out{program_.values[id].desc.dtype,
                       whole.with(dim, part_of(extent, cuts, how_.mesh.coordinate(axis)))};
  if (!is_outermost(whole, dim)) id = append(std::make_shared<PackOp>(dim, cuts), id, "pack", layout, reader);
  layout[axis] = Placed::shard(dim);
  return append_collective({CollectiveKind::kReduceScatter, axis, counts, out}, id, layout, reader);
}

// Makes parts of one dim into parts of another.
ValueId DistributedValues::exchange(ValueId id, Axis axis, char to, const Node& reader) {
  Layout layout = this->layout(id);
  const char from = layout[axis].dim;
  const Shape mine = shape(id);
  const Dim whole_from = whole_dim(id, axis);
  const Dim& whole_to = mine[*mine.find(to)];
  const std::vector<int64_t> from_cuts = cuts_of(whole_from, axis, how_),
                             to_cuts = cuts_of(whole_to, axis, how_);
  const Shape out =
      mine.with(from, whole_from).with(to, part_of(whole_to, to_cuts, how_.mesh.coordinate(axis)));
  std::vector<size_t> counts = part_elems(mine, to, to_cuts);
  const std::vector<size_t> coming = part_elems(out, from, from_cuts);
  counts.insert(counts.end(), coming.begin(), coming.end());
  if (!is_outermost(mine, to)) id = append(std::make_shared<PackOp>(to, to_cuts), id, "pack", layout, reader);
  layout[axis] = Placed::shard(to);
  const DType dtype = program_.values[id].desc.dtype;
  const bool in_order = is_outermost(out, from);
  const TensorDesc moved = in_order ? TensorDesc{dtype, out} : flat_desc(dtype, coming);
  id = append_collective({CollectiveKind::kAllToAll, axis, counts, moved}, id, layout, reader);
  return in_order ? id
                  : append(std::make_shared<UnpackOp>(from, from_cuts, out), id, "unpack", layout, reader);
}

}  // namespace vitrail
