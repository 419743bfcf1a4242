// What timm and transformers call the activations of an MLP: one table, read and written by both cards.
#pragma once

#include <string>

#include "io/cards/claims.h"

namespace vitrail {

// Claims the activation of this name in `dialect`, kTimm or kHf; Error(kData) naming `key` and the names that
// are known when it is none.
void claim_activation(const Json& value, const char* key, Dialect dialect, Claims* claims);
// The same of the one after a base model's pooler.
void claim_pooler_activation(const Json& value, const char* key, Claims* claims);

// Its name there; empty when the library has none.
std::string activation_name(ActKind act, GeluKind gelu, Dialect dialect);

}  // namespace vitrail
