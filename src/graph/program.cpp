#include "graph/program.h"

#include <algorithm>
#include <utility>

namespace vitrail {

std::vector<ValueId> Program::append(Node node) {
  VT_CHECK(node.outs.empty(), "%s has outputs before it is appended", node.name.c_str());
  for (TensorDesc& desc : node.op->infer(descs(node.ins))) {
    node.outs.push_back(static_cast<ValueId>(values.size()));
    values.push_back({.name = node.name, .desc = std::move(desc), .step = node.step});
  }
  nodes.push_back(std::move(node));
  return nodes.back().outs;
}

std::vector<TensorDesc> Program::descs(const std::vector<ValueId>& ids) const {
  std::vector<TensorDesc> result;
  result.reserve(ids.size());
  for (ValueId id : ids) result.push_back(values[id].desc);
  return result;
}

ValueId Program::output(std::string_view name) const {
  for (const Output& out : outputs)
    if (out.name == name) return out.value;
  throw Error(ErrorKind::kInternal,
              strf("the program has no output '%.*s'", static_cast<int>(name.size()), name.data()));
}

bool Program::is_output(ValueId id) const {
  return std::any_of(outputs.begin(), outputs.end(), [&](const Output& out) { return out.value == id; });
}

std::vector<int> Program::use_counts() const {
  std::vector<int> uses(values.size(), 0);
  for (const Node& node : nodes)
    for (ValueId id : node.ins) ++uses[id];
  for (const Output& out : outputs) ++uses[out.value];
  return uses;
}

Cost Program::cost() const {
  Cost total;
  for (const Node& node : nodes) {
    const Cost cost = node.op->cost(descs(node.ins), descs(node.outs));
    total.flops += cost.flops;
    total.bytes += cost.bytes;
  }
  return total;
}

void Program::validate() const {
  std::vector<bool> defined(values.size(), false);
  for (size_t i = 0; i < values.size(); ++i) defined[i] = values[i].kind != ValueKind::kComputed;
  for (const Node& node : nodes) {
    for (ValueId id : node.ins)
      VT_CHECK(defined[id], "%s reads %s before it is written", node.name.c_str(), values[id].name.c_str());
    for (int input : node.op->updates())
      VT_CHECK(values[node.ins[input]].persistent(), "%s updates %s, which does not persist",
               node.name.c_str(), values[node.ins[input]].name.c_str());
    const auto inferred = node.op->infer(descs(node.ins));
    VT_CHECK(inferred.size() == node.outs.size(), "%s has another number of outputs", node.name.c_str());
    for (size_t i = 0; i < inferred.size(); ++i) {
      const ValueId id = node.outs[i];
      VT_CHECK(!defined[id], "%s is written twice", values[id].name.c_str());
      VT_CHECK(inferred[i] == values[id].desc, "%s: inferred %s, recorded %s", node.name.c_str(),
               to_string(inferred[i]).c_str(), to_string(values[id].desc).c_str());
      defined[id] = true;
    }
  }
  for (const Output& out : outputs)
    VT_CHECK(defined[out.value], "output %s is never written", out.name.c_str());
}

std::string to_string(const Node& node, const Program& program) {
  std::string text;
  for (ValueId id : node.outs) text += strf("%%%d %s ", id, to_string(program.values[id].desc).c_str());
  if (!node.outs.empty()) text += "= ";
  text += std::string(node.op->kind());
  if (const std::string attributes = node.op->attributes(); !attributes.empty())
    text += "{" + attributes + "}";
  text += "(";
  for (size_t i = 0; i < node.ins.size(); ++i) {
    const Value& value = program.values[node.ins[i]];
    if (i) text += ", ";
    text += value.kind == ValueKind::kComputed ? strf("%%%d", node.ins[i]) : value.name;
  }
  text += ")  # " + node.name;
  return text;
}

std::string to_string(const Program& program) {
  std::string text;
  for (const Value& value : program.values)
    if (value.kind == ValueKind::kInput) text += "input " + value.name + " " + to_string(value.desc) + "\n";
  for (const Node& node : program.nodes) text += to_string(node, program) + "\n";
  for (const Output& out : program.outputs) text += strf("output %s = %%%d\n", out.name.c_str(), out.value);
  return text;
}

}  // namespace vitrail
