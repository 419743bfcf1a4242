// Models that are not plain ViTs, recognised by their config or by tensor names and refused by the family's
// name rather than by a list of strange tensors.
#pragma once

#include "base/json.h"
#include "io/tensor_source.h"

namespace vitrail {

// Throws Error(kData) naming the family when the tensors are of a known one that is not supported.
void refuse_other_families(const TensorSource& source);

// Does the same by what a config.json states: Hugging Face's model_type and architectures, timm's
// architecture. It must be called first: a config is more certain than tensor names that several families
// share.
void refuse_other_families(const Json& config);

}  // namespace vitrail
