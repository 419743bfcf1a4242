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
  // Records `op` under the current path plus `name`; returns its only output.
  ValueId add(OpPtr op, std::vector<ValueId> ins, const std::string& name,
              SourceLine where = SourceLine::here());
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
  ValueId new_value(std::string name, TensorDesc desc, ValueKind kind);

  Program program_;
  std::map<std::string, ValueId> parameters_;
  std::string path_;
};

}  // namespace vitrail
