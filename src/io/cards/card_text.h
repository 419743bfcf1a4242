// A model's card as people and scripts read it: architecture, numerics, preprocessing and where each came
// from. Returns strings and JSON; prints nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "io/model_files.h"

namespace vitrail {

std::string card_text(const ModelCard& card, size_t indent);
nlohmann::ordered_json card_json(const ModelCard& card);

// "deit_tiny_patch16_224" or, when the architecture has no name, its dimensions.
std::string architecture_text(const VitConfig& config);
std::string numerics_text(const VitConfig& config);      // "layernorm epsilon 1e-06, GELU erf, ..."
std::string preprocess_text(const PreprocessConfig& p);  // "shorter side to 256, bicubic, ..."

// Every architecture that has a name: its size, its input and its preprocessing.
nlohmann::ordered_json zoo_json();
std::string zoo_text();

// Names of the fields in which two cards differ, "norm_eps: 1e-12 and 1e-06"; empty when they agree.
std::vector<std::string> card_differences(const ModelCard& a, const ModelCard& b);

}  // namespace vitrail
