// The recorder of a Program, for model code: makes inputs, parameters and nodes, and keeps the name path of
// the part being recorded. Load-time programs are recorded through it too.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "graph/program.h"

namespace vitrail {

// A node's name below the current path, the line of model code that gives it, and where it is not the current
// one, the step of the model that the node is.
struct NodeName {
  NodeName(const char* text, SourceLine line = SourceLine::here()) : name(text), where(line) {}
  NodeName(std::string text, SourceLine line = SourceLine::here()) : name(std::move(text)), where(line) {}
  NodeName(std::string text, ModelStep own, SourceLine line = SourceLine::here())
      : name(std::move(text)), where(line), step(own) {}

  std::string name;
  SourceLine where;
  std::optional<ModelStep> step = {};
};

class Builder {
 public:
  ValueId input(const std::string& name, TensorDesc desc);
  // Returns the same value for the same name: a shared parameter is one value.
  ValueId parameter(const std::string& name, TensorDesc desc);
  // Records another persistent value; the same name returns the same value. `owner` is the parameter beside
  // which training keeps it.
  ValueId state(const std::string& name, TensorDesc desc, Category category, const std::string& owner = {});
  // Records an op under the current path plus `name`; returns its only output. add<LinearOp>({x, w}, "fc1").
  ValueId add(OpPtr op, std::vector<ValueId> ins, const NodeName& name);
  template <typename T, typename... Args>
  ValueId add(std::vector<ValueId> ins, const NodeName& name, Args&&... args) {
    return add(std::make_shared<T>(std::forward<Args>(args)...), std::move(ins), name);
  }
  // Records an op with any number of outputs.
  std::vector<ValueId> add_all(OpPtr op, std::vector<ValueId> ins, const NodeName& name);
  template <typename T, typename... Args>
  std::vector<ValueId> add_all(std::vector<ValueId> ins, const NodeName& name, Args&&... args) {
    return add_all(std::make_shared<T>(std::forward<Args>(args)...), std::move(ins), name);
  }
  const TensorDesc& desc(ValueId id) const { return program_.values[id].desc; }
  void set_phase(Phase phase) { phase_ = phase; }
  void output(const std::string& name, ValueId value);

  Program finish();  // validates

  // While it lives, it prefixes names with `name.` and marks which block, part or step of the model is
  // recorded.
  class Scope {
   public:
    Scope(Builder& builder, const std::string& name);
    Scope(Builder& builder, const std::string& name, int block);
    Scope(Builder& builder, const std::string& name, ModelPart part);
    Scope(Builder& builder, ModelPart part);  // leaves names unchanged, as the next one does
    Scope(Builder& builder, ModelStep step);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Builder& builder_;
    size_t length_;
    int block_;
    ModelPart part_;
    ModelStep step_;
  };
  bool in_block() const { return block_ >= 0; }
  std::string path(const std::string& name) const { return path_ + name; }

 private:
  ValueId new_value(Value value);
  ValueId persistent(Value value);

  Program program_;
  std::map<std::string, ValueId> persistent_;
  std::string path_;
  Phase phase_ = Phase::kForward;
  int block_ = -1;
  ModelPart part_ = ModelPart::kNone;
  ModelStep step_ = ModelStep::kNone;
};

}  // namespace vitrail
