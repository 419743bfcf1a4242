// Parts of library configs that have rules of their own: names of activations, arguments of timm's
// constructor, transformers' image processors. Each adds what a file says to a StatedConfig; none knows the
// rest of the card.
#pragma once

#include <string>

#include "io/cards/stated_config.h"

namespace vitrail {

// One table, read and written by both cards, says what timm and transformers call the activations of an MLP.

// Sets the activation of this name in `dialect`, kTimm or kHf; Error(kData) naming `key` and the names that
// are known when it is none.
void set_activation(const Json& value, const char* key, Dialect dialect, StatedConfig* stated);
// Sets the activation after a base model's pooler.
void set_pooler_activation(const Json& value, const char* key, StatedConfig* stated);

// Its name there; empty when the library has none.
std::string activation_name(ActKind act, GeluKind gelu, Dialect dialect);

// Reads a truth value of timm's as Python does: some configs hold 1 for true.
bool timm_truth(const Json& value, const std::string& key);
// Sets the pooling that timm calls so; Error(kData) with the names that are known when it is none.
void set_timm_pool(const Json& value, StatedConfig* stated);
// Reads timm's model_args: variations of the architecture that `stated` holds.
void read_timm_args(const Json& args, StatedConfig* stated);

// transformers' image processors: what preprocessor_config.json says about the images of a model.
struct HfSide {
  int64_t height = 0, width = 0;
};
// Reads 224, [224, 160] or {"height": 224, "width": 160}.
HfSide read_side(const Json& value, const char* file, const char* key);

// Reads `file`, null where there is none; `usual` names the processor that transformers uses for the model,
// whose input size is `image`.
PreprocessConfig read_preprocess(const Json* file, const char* usual, HfSide image, int64_t channels,
                                 StatedConfig* stated);

}  // namespace vitrail
