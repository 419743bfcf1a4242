// The names of MLP activations in timm and transformers: one table for reading and writing both kinds of
// config.
#pragma once

#include <string>

#include "io/cards/claims.h"

namespace vitrail {

// Sets the activation of this name in `dialect`, kTimm or kHf; throws Error(kData) naming `key` and the known
// names when there is none.
void claim_activation(const Json& value, const char* key, Dialect dialect, Claims* claims);
// Does the same for the activation after a base model's pooler.
void claim_pooler_activation(const Json& value, const char* key, Claims* claims);

// Returns the activation's name in the dialect; empty when the library has none.
std::string activation_name(ActKind act, GeluKind gelu, Dialect dialect);

}  // namespace vitrail
