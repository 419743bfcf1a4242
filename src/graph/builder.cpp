#include "graph/builder.h"

namespace vitrail {

Builder::Scope::Scope(Builder& builder, const std::string& part)
    : builder_(builder), length_(builder.path_.size()) {
  builder_.path_ += part + ".";
}
Builder::Scope::~Scope() {
  builder_.path_.resize(length_);
}

ValueId Builder::new_value(std::string name, TensorDesc desc, ValueKind kind) {
  program_.values.push_back({std::move(name), std::move(desc), kind});
  return static_cast<ValueId>(program_.values.size()) - 1;
}

ValueId Builder::input(const std::string& name, TensorDesc desc) {
  return new_value(name, std::move(desc), ValueKind::kInput);
}

ValueId Builder::parameter(const std::string& name, TensorDesc desc) {
  if (const auto found = parameters_.find(name); found != parameters_.end()) {
    VT_CHECK(program_.values[found->second].desc == desc, "parameter %s is asked for as %s and as %s",
             name.c_str(), to_string(program_.values[found->second].desc).c_str(), to_string(desc).c_str());
    return found->second;
  }
  return parameters_[name] = new_value(name, std::move(desc), ValueKind::kParameter);
}

ValueId Builder::add(OpPtr op, std::vector<ValueId> ins, const std::string& name, SourceLine where) {
  Node node{.op = std::move(op), .ins = std::move(ins), .outs = {}, .name = path(name), .where = where};
  auto outs = with_context(node.name, [&] { return node.op->infer(program_.descs(node.ins)); });
  VT_CHECK(outs.size() == 1, "%s has %zu outputs", node.name.c_str(), outs.size());
  node.outs.push_back(new_value(node.name, std::move(outs[0]), ValueKind::kComputed));
  program_.nodes.push_back(std::move(node));
  return program_.nodes.back().outs[0];
}

void Builder::output(const std::string& name, ValueId value) {
  program_.outputs.push_back({name, value});
}

Program Builder::finish() {
  program_.validate();
  return std::move(program_);
}

}  // namespace vitrail
