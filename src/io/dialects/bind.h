// Binds the tensors of a file to parameters: finds the dialect and its prefix, matches every name against the
// table, and refuses files with tensors that match nothing.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "io/dialects/dialect_table.h"
#include "io/tensor_source.h"

namespace vitrail {

// One tensor's part of a parameter.
struct Piece {
  size_t tensor = 0;  // index in the source
  const NameRow* row = nullptr;
  int64_t slice = -1;  // of a tensor that stacks all blocks; -1 for a tensor of its own
};

struct Binding {
  const DialectTable* table = nullptr;
  std::string prefix;                                // what '@' stands for in this file
  int64_t depth = 0;                                 // blocks seen
  std::map<std::string, std::vector<Piece>> pieces;  // by canonical name
  std::set<std::string> zeros;                       // biases the model was made without
  std::vector<std::string> notes;

  bool has(const std::string& param) const { return pieces.contains(param); }
};

Binding bind_tensors(const TensorSource& source);

// Returns `pattern` with {i} replaced.
std::string with_block(const char* pattern, int64_t block);

}  // namespace vitrail
