// The JSON files of a Hugging Face folder, as transformers reads them.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "io/model_files.h"

namespace vitrail {

Json hf_config_json(const ModelCard& card, DType storage);
Json hf_preprocessor_json(const PreprocessConfig& preprocess);

// Returns {"0": "tench", ...}.
Json label_table(const std::vector<std::string>& labels);

}  // namespace vitrail
