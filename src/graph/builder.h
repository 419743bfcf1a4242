// What model code holds while recording a Program: makes inputs, parameters and nodes, and keeps the name
// path of the part being recorded. Load-time programs are recorded through it too.
#pragma once

#include <map>
#include <string>

#include "graph/program.h"

namespace vitrail {

class Builder {
 public:
  ValueId input(const std::string& name, TensorDesc desc);
  // The same name gives the same value: shared parameters are one.
  ValueId parameter(const std::string& name, TensorDesc desc);
  // Something else that persists; the same name gives the same value.
  ValueId state(const std::string& name, TensorDesc desc, Category category);
  // Records `op` under the current path plus `name`; returns its only output.
  ValueId add(OpPtr op, std::vector<ValueId> ins, const std::string& name,
              SourceLine where = SourceLine::here());
  // For ops with any number of outputs.
  std::vector<ValueId> add_all(OpPtr op, std::vector<ValueId> ins, const std::string& name,
                               SourceLine where = SourceLine::here());
  const TensorDesc& desc(ValueId id) const { return program_.values[id].desc; }
  void set_phase(Phase phase) { phase_ = phase; }
  void output(const std::string& name, ValueId value);

  Program finish();  // validates

  // Prefixes names with `part.` while it lives.
  class Scope {
   public:
    Scope(Builder& builder, const std::string& part);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Builder& builder_;
    size_t length_;
  };
  std::string path(const std::string& name) const { return path_ + name; }

 private:
  ValueId new_value(std::string name, TensorDesc desc, ValueKind kind, Category category);
  ValueId persistent(const std::string& name, TensorDesc desc, ValueKind kind, Category category);

  Program program_;
  std::map<std::string, ValueId> persistent_;
  std::string path_;
  Phase phase_ = Phase::kForward;
};

}  // namespace vitrail
