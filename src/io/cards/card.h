// Assembles a model's card from what the tensors determine, what the config files state and the dialect's
// defaults: a later source overrides earlier guesses, and none may contradict the tensors.
#pragma once

#include <string>

#include "io/cards/stated_config.h"
#include "io/dialects/infer.h"

namespace vitrail {

struct CardFiles {
  std::optional<Json> config, preprocessor;
  std::string config_name;  // as shown in messages
  std::string adapters;     // path of separate adapters, or empty
};

// Finds config.json, preprocessor_config.json and adapters of a folder, or what lies beside a single file.
CardFiles find_card_files(const std::string& path);

// Reads the config beside the weights; nothing when there is none of a known kind. Throws what is wrong in
// it.
std::optional<StatedConfig> read_card_config(const CardFiles& files);

// Returns the card of the model as the files have it, except its path; validated and complete. `run_image` is
// set when the config runs the model at another size than that of its positions.
ModelCard make_card(const CardFiles& files, const TensorSource& source, const Binding& binding,
                    const OpenOptions& options, std::optional<ImageSize>* run_image);

}  // namespace vitrail
