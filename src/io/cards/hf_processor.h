// transformers' image processors: what preprocessor_config.json says about the images of a model.
#pragma once

#include "io/cards/claims.h"

namespace vitrail {

struct HfSide {
  int64_t height = 0, width = 0;
};
// 224, [224, 160] or {"height": 224, "width": 160}.
HfSide read_side(const Json& value, const char* file, const char* key);

// `file` is null where there is none; `usual` names the processor that transformers takes for the model,
// which sees `image`.
PreprocessConfig read_preprocess(const Json* file, const char* usual, HfSide image, int64_t channels,
                                 Claims* claims);

}  // namespace vitrail
