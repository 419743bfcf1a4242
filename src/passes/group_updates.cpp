// Makes one node of all updates or gradient sums of a kind, so that they are one launch.
#include "passes/passes.h"

#include <map>

#include "ops/grouped.h"
#include "ops/update/copied.h"

namespace vitrail {

namespace {
// Returns the nodes of a group as one, in the place of `node`.
Node joined_node(const Node& node, const std::vector<const Node*>& group, std::string_view bucket) {
  Node together = node;
  together.ins.clear();
  std::vector<GroupedOp::Part> parts;
  for (const Node* part : group) {
    parts.push_back({part->op, together.ins.size(), part->ins.size()});
    together.ins.insert(together.ins.end(), part->ins.begin(), part->ins.end());
  }
  together.op = std::make_shared<GroupedOp>(std::move(parts));
  together.name = together.op->kind();
  together.step = ModelStep::kNone;
  if (!bucket.empty()) together.name += " " + std::string(bucket);
  return together;
}
}  // namespace

Program group_updates(const Program& program, const KindRule& grouped, GroupAt place) {
  // The sums of a bucket are a group of their own, so that its exchange can start when they are made.
  using Key = std::pair<std::string_view, std::string_view>;
  std::map<Key, std::vector<const Node*>> groups;
  const auto key_of = [&](const Node& node) -> Key {
    const Value& written = program.values[node.ins[static_cast<size_t>(node.op->updates()[0])]];
    // With a copy or without, one kernel runs both.
    const auto* copied = dynamic_cast<const CopiedUpdateOp*>(node.op.get());
    return {(copied ? copied->update() : node.op)->kind(), written.container};
  };
  const auto belongs = [&](const Node& node) {
    return node.outs.empty() && !node.op->updates().empty() && grouped(node.op->kind());
  };
  for (const Node& node : program.nodes)
    if (belongs(node)) groups[key_of(node)].push_back(&node);

  Program result{.values = program.values, .nodes = {}, .outputs = program.outputs};
  for (const Node& node : program.nodes) {
    const bool member = belongs(node);
    if (!member || groups[key_of(node)].size() == 1) {
      result.nodes.push_back(node);
      continue;
    }
    const std::vector<const Node*>& group = groups[key_of(node)];
    if ((place == GroupAt::kFirst ? group.front() : group.back()) != &node) continue;
    result.nodes.push_back(joined_node(node, group, key_of(node).second));
  }
  result.validate();
  return result;
}

}  // namespace vitrail
