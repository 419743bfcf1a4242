// The JSON files beside the weights of a model folder, as libraries read them.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "io/model_files.h"

namespace vitrail {

// The JSON files of a Hugging Face folder, as transformers reads them.
Json hf_config_json(const ModelCard& card, DType storage);
Json hf_preprocessor_json(const PreprocessConfig& preprocess);

// Returns {"0": "tench", ...}.
Json label_table(const std::vector<std::string>& labels);

// config.json of a folder as timm publishes models: an architecture, the arguments that make it this model,
// and how its images are treated.
Json timm_config_json(const ModelCard& card);

}  // namespace vitrail
