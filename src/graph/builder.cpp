#include "graph/builder.h"

namespace vitrail {

Builder::Scope::Scope(Builder& builder, ModelStep step)
    : builder_(builder),
      length_(builder.path_.size()),
      block_(builder.block_),
      part_(builder.part_),
      step_(builder.step_) {
  builder_.step_ = step;
}
Builder::Scope::Scope(Builder& builder, ModelPart part) : Scope(builder, builder.step_) {
  builder_.part_ = part;
}
Builder::Scope::Scope(Builder& builder, const std::string& name, ModelPart part) : Scope(builder, part) {
  builder_.path_ += name + ".";
}
Builder::Scope::Scope(Builder& builder, const std::string& name) : Scope(builder, name, builder.part_) {}
Builder::Scope::Scope(Builder& builder, const std::string& name, int block) : Scope(builder, name) {
  builder_.block_ = block;
}
Builder::Scope::~Scope() {
  builder_.path_.resize(length_);
  builder_.block_ = block_;
  builder_.part_ = part_;
  builder_.step_ = step_;
}

ValueId Builder::new_value(Value value) {
  program_.values.push_back(std::move(value));
  return static_cast<ValueId>(program_.values.size()) - 1;
}

ValueId Builder::input(const std::string& name, TensorDesc desc) {
  return new_value({name, std::move(desc), ValueKind::kInput, Category::kStaging});
}

ValueId Builder::persistent(Value value) {
  if (const auto found = persistent_.find(value.name); found != persistent_.end()) {
    const Value& known = program_.values[found->second];
    VT_CHECK(known.desc == value.desc && known.kind == value.kind, "%s is asked for as %s and as %s",
             value.name.c_str(), to_string(known.desc).c_str(), to_string(value.desc).c_str());
    return found->second;
  }
  const std::string name = value.name;
  return persistent_[name] = new_value(std::move(value));
}

ValueId Builder::parameter(const std::string& name, TensorDesc desc) {
  Value value{name, std::move(desc), ValueKind::kParameter, Category::kParameters};
  value.owner = name;
  return persistent(std::move(value));
}

ValueId Builder::state(const std::string& name, TensorDesc desc, Category category,
                       const std::string& owner) {
  Value value{name, std::move(desc), ValueKind::kState, category};
  value.owner = owner;
  return persistent(std::move(value));
}

std::vector<ValueId> Builder::add_all(OpPtr op, std::vector<ValueId> ins, const NodeName& name) {
  Node node{.op = std::move(op),
            .ins = std::move(ins),
            .outs = {},
            .name = path(name.name),
            .phase = phase_,
            .block = block_,
            .part = part_,
            .step = name.step.value_or(step_),
            .where = name.where};
  const std::string place = node.name;
  return with_context(place, [&] { return program_.append(std::move(node)); });
}

ValueId Builder::add(OpPtr op, std::vector<ValueId> ins, const NodeName& name) {
  const std::vector<ValueId> outs = add_all(std::move(op), std::move(ins), name);
  VT_CHECK(outs.size() == 1, "%s has %zu outputs", path(name.name).c_str(), outs.size());
  return outs[0];
}

void Builder::output(const std::string& name, ValueId value) {
  program_.outputs.push_back({name, value});
}

Program Builder::finish() {
  program_.validate();
  return std::move(program_);
}

}  // namespace vitrail
