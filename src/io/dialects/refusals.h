// Weight files that are not plain ViTs, recognised by tensor names and refused by the family's name rather
// than by a list of strange tensors.
#pragma once

#include <string>

#include "io/tensor_source.h"

namespace vitrail {

// Throws Error(kData) naming the family when the tensors are of a known one that is not supported.
void refuse_other_families(const TensorSource& source);

// The same by a model's published name or type ("vit_base_patch14_dinov2", "clip").
void refuse_other_families(const std::string& model_name);

}  // namespace vitrail
