#include "passes/passes.h"

#include <map>

#include "ops/grouped.h"
#include "ops/update/copied.h"

namespace vitrail {

Program group_updates(const Program& program, const KindRule& grouped, GroupAt place) {
  // The sums of a bucket are a group of their own, so that its exchange can start when they are made.
  using Key = std::pair<std::string_view, std::string_view>;
  std::map<Key, std::vector<const Node*>> groups;
  const auto key_of = [&](const Node& node) -> Key {
    const Value& written = program.values[node.ins[static_cast<size_t>(node.op->updates()[0])]];
    std::string_view kind = node.op->kind();  // with a copy or without, one kernel runs both
    if (kind.ends_with(CopiedUpdateOp::kSuffix)) kind.remove_suffix(CopiedUpdateOp::kSuffix.size());
    return {kind, written.container};
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
    Node many = node;
    many.ins.clear();
    std::vector<GroupedOp::Part> parts;
    for (const Node* part : group) {
      parts.push_back({part->op, many.ins.size(), part->ins.size()});
      many.ins.insert(many.ins.end(), part->ins.begin(), part->ins.end());
    }
    many.op = std::make_shared<GroupedOp>(std::move(parts));
    many.name = many.op->kind();
    many.step = ModelStep::kNone;
    if (const std::string_view bucket = key_of(node).second; !bucket.empty())
      many.name += " " + std::string(bucket);
    result.nodes.push_back(std::move(many));
  }
  result.validate();
  return result;
}

}  // namespace vitrail
