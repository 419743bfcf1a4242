// config.json of a folder as timm publishes models: an architecture, the arguments that make it this model,
// and its preprocessing.
#pragma once

#include "base/json.h"
#include "io/model_files.h"

namespace vitrail {

Json timm_config_json(const ModelCard& card);

}  // namespace vitrail
