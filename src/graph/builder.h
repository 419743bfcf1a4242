// The recorder of a Program, for model code: makes inputs, parameters and nodes, and keeps the name path of
// the part being recorded. Load-time programs are recorded through it too.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "graph/program.h"

namespace vitrail {

// A node's name below the current path, and the line of model code that gives it.
struct NodeName {
  NodeName(const char* text, SourceLine line = SourceLine::here()) : name(text), where(line) {}
  NodeName(std::string text, SourceLine line = SourceLine::here()) : name(std::move(text)), where(line) {}

  std::string name;
  SourceLine where;
};

class Builder {
 public:
  ValueId input(const std::string& name, TensorDesc desc);
  // Returns the same value for the same name: a shared parameter is one value.
  ValueId parameter(const std::string& name, TensorDesc desc);
  // Records another persistent value; the same name returns the same value.
  ValueId state(const std::string& name, TensorDesc desc, Category category);
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

  // While it lives, it prefixes names with `name.` and marks which block or part of the model is recorded.
  class Scope {
   public:
    Scope(Builder& builder, const std::string& name);
    Scope(Builder& builder, const std::string& name, int block);
    Scope(Builder& builder, const std::string& name, ModelPart part);
    Scope(Builder& builder, ModelPart part);  // leaves names unchanged
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Builder& builder_;
    size_t length_;
    int block_;
    ModelPart part_;
  };
  std::string path(const std::string& name) const { return path_ + name; }

 private:
  ValueId new_value(std::string name, TensorDesc desc, ValueKind kind, Category category);
  ValueId persistent(const std::string& name, TensorDesc desc, ValueKind kind, Category category);

  Program program_;
  std::map<std::string, ValueId> persistent_;
  std::string path_;
  Phase phase_ = Phase::kForward;
  int block_ = -1;
  ModelPart part_ = ModelPart::kNone;
};

}  // namespace vitrail
