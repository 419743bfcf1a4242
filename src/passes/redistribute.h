// The values of a program under distribution: their layouts, and the nodes that bring one into another.
// Private to the distribute pass.
#pragma once

#include <map>
#include <set>
#include <tuple>

#include "ops/collective.h"
#include "passes/distribute.h"

namespace vitrail {

class DistributedValues {
 public:
  DistributedValues(const Program& source, const Distribution& how) : source_(source), how_(how) {}

  Program& program() { return program_; }
  const Layout& layout(ValueId id) const { return layouts_[static_cast<size_t>(id)]; }
  const Shape& shape(ValueId id) const { return program_.values[id].desc.shape; }
  bool is_persistent(ValueId id) const { return program_.values[id].persistent(); }
  // The block of the node that made a value; -1: none, or outside the blocks.
  int block_of(ValueId id) const { return blocks_[static_cast<size_t>(id)]; }

  // Takes over an input or persistent value of the source in its pinned layout.
  ValueId adopt(ValueId source);
  // Records a node of the source on this rank's parts.
  std::vector<ValueId> record(const Node& node, const std::vector<ValueId>& ins,
                              const std::vector<Layout>& outs);
  // Returns the value in another layout, for `reader`. What was brought there once is remembered; a value
  // that was gathered is so within a phase alone, since keeping it would keep the whole.
  ValueId in_layout(ValueId id, const Layout& wanted, const Node& reader);

 private:
  ValueId converted(ValueId id, Axis axis, Placed wanted, const Node& reader);
  ValueId gather(ValueId id, Axis axis, const Node& reader);
  ValueId reduce_scatter(ValueId id, Axis axis, char dim, const Node& reader);
  ValueId exchange(ValueId id, Axis axis, char to, const Node& reader);
  ValueId append(OpPtr op, ValueId in, const char* suffix, const Layout& layout, const Node& reader);
  ValueId append_collective(CollectiveOp::Form form, ValueId in, const Layout& layout, const Node& reader);
  ValueId add_value(Value value, const Layout& layout, int block);
  std::string unique_name(const std::string& name);
  Dim whole_dim(ValueId id, Axis axis) const;
  std::vector<size_t> part_elems(const Shape& shape, char dim, const std::vector<int64_t>& cuts) const;

  const Program& source_;
  const Distribution& how_;
  Program program_;
  std::vector<Layout> layouts_;
  std::vector<int> blocks_;
  std::vector<Shape> whole_;  // the shapes in the source, by value of the result
  std::set<std::string> names_;
  std::map<std::tuple<ValueId, Axis, Placed, Phase>, ValueId> copies_;
};

}  // namespace vitrail
