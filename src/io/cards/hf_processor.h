// transformers' image processors: how preprocessor_config.json describes a model's preprocessing.
#pragma once

#include "io/cards/claims.h"

namespace vitrail {

struct HfSide {
  int64_t height = 0, width = 0;
};
// Reads 224, [224, 160] or {"height": 224, "width": 160}.
HfSide read_side(const Json& value, const char* file, const char* key);

// Reads `file`, null where there is none; `usual` names the processor that transformers uses for the model,
// whose input size is `image`.
PreprocessConfig read_preprocess(const Json* file, const char* usual, HfSide image, int64_t channels,
                                 Claims* claims);

}  // namespace vitrail
