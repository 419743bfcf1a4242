// Finds the dialect of a file's tensor names, and the prefix that a training program put before each of them.
// Knows the patch embedding's name in each dialect and no other tensor.
#pragma once

#include <span>
#include <string>

#include "io/dialects/dialect_table.h"
#include "io/tensor_source.h"

namespace vitrail {

struct FoundDialect {
  const DialectTable* table = nullptr;
  std::string wrapper;  // before every name of the model: "module.", "net.backbone.", or nothing
  std::string prefix;   // what '@' stands for
};

// Accepts any wrapper while the file holds one model. Throws Error(kData) when there is none, or when there
// are several and their names do not show which is meant.
FoundDialect find_dialect(const TensorSource& source);

// Returns the names that checkpoints hold beside the model, outside the wrapper, without effect on its
// outputs.
std::span<const IgnoredName> names_beside_the_model();

}  // namespace vitrail
