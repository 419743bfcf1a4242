#include "passes/passes.h"

#include <map>

#include "ops/grouped.h"

namespace vitrail {

Program group_updates(const Program& program, const std::function<bool(std::string_view)>& grouped,
                      GroupAt place) {
  std::map<std::string_view, std::vector<const Node*>> groups;
  const auto belongs = [&](const Node& node) {
    return node.outs.empty() && !node.op->updates().empty() && grouped(node.op->kind());
  };
  for (const Node& node : program.nodes)
    if (belongs(node)) groups[node.op->kind()].push_back(&node);

  Program result{.values = program.values, .nodes = {}, .outputs = program.outputs};
  for (const Node& node : program.nodes) {
    const bool member = belongs(node);
    if (!member || groups[node.op->kind()].size() == 1) {
      result.nodes.push_back(node);
      continue;
    }
    const std::vector<const Node*>& group = groups[node.op->kind()];
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
    result.nodes.push_back(std::move(many));
  }
  result.validate();
  return result;
}

}  // namespace vitrail
