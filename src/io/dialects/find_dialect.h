// Finds what a file of tensors is: whose names they have, or which family of models that is not supported.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "io/dialects/dialect_table.h"
#include "io/tensor_source.h"

namespace vitrail {

// Says whose names the tensors of a file have, and what a training program put before each of them. Knows the
// patch embedding's name in each dialect and no other tensor.
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

// Models that are not plain ViTs, recognised by their config or by tensor names and refused by the family's
// name rather than by a list of strange tensors.

// Throws Error(kData) naming the family when the tensors are of a known one that is not supported.
void refuse_other_families(const TensorSource& source);

// The same by what a config.json says the model is: Hugging Face's model_type and architectures, timm's
// architecture. To be asked first: a config's word is surer than a look at names that several families share.
void refuse_other_families(const Json& config);

}  // namespace vitrail
