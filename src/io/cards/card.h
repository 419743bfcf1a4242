// Puts a model's card together: what the tensors say, what the config files claim, what the dialect always
// does, each later word overruling the guesses before it and none contradicting the tensors.
#pragma once

#include <string>

#include "io/cards/claims.h"
#include "io/dialects/infer.h"

namespace vitrail {

struct CardFiles {
  std::optional<Json> config, preprocessor;
  std::string config_name;  // as shown in messages
  std::string adapters;     // path of the adapters kept apart, or empty
};

// config.json, preprocessor_config.json and adapters of a folder, or what lies beside a single file.
CardFiles find_card_files(const std::string& path);

// What the config beside the weights says, or nothing when there is none of a known kind. Throws what is
// wrong in it.
std::optional<Claims> file_claims(const CardFiles& files);

// The card of the model as the files have it, all but its path; validated and complete. `run_image` is set
// when the config runs the model at another size than that of its positions.
ModelCard make_card(const CardFiles& files, const TensorSource& source, const Binding& binding,
                    const OpenOptions& options, std::optional<ImageSize>* run_image);

}  // namespace vitrail
