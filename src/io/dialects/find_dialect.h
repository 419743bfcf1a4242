// Whose names the tensors of a file have, and what a training program put before each of them. Knows the
// patch embedding's name in each dialect and no other tensor.
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

// Any wrapper will do while the file holds one model. Throws Error(kData) when there is none, or when there
// are several and their names do not tell which is meant.
FoundDialect find_dialect(const TensorSource& source);

// What checkpoints hold beside the model, outside the wrapper, and its answers do not depend on.
std::span<const IgnoredName> names_beside_the_model();

}  // namespace vitrail
