// Names for classes that a model only numbers. The names are for display, never for matching a model with
// data.
#pragma once

#include "io/model_files.h"

namespace vitrail {

// Returns the card's own labels; ImageNet's for a timm or torchvision model of 1,000 classes without labels.
std::vector<std::string> display_labels(const ModelCard& card);

}  // namespace vitrail
