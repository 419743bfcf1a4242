// How many images of a dataset a model has learned from, as far as its run's training data or the marks that
// it keeps can tell. Prints nothing and knows neither commands nor runs.
#pragma once

#include <optional>
#include <string>

#include "data/overlap.h"
#include "train/learned_from.h"

namespace vitrail {

struct SeenImages {
  std::optional<Overlap> overlap;  // of the dataset; nothing: not known
  std::string share;               // "about 12.5 % (...)"; empty: none of them was found
  std::string unknown;             // what stays unknown, a sentence; empty: nothing
};

// Looks for at most 200 of the images among those of the training part, and for the marks of earlier ones.
SeenImages seen_images(const Dataset& data, const Dataset& train, const std::vector<EarlierImages>& earlier,
                       SearchLimits limits = {});

// Estimates the same without the training part, from marks alone.
SeenImages seen_by_marks(const Dataset& data, const LearnedFrom& learned);

// Returns a warning for a run whose validation images it learns from, or the model it began with had learned
// from; empty where none was found. It costs little: it looks at no more than some images.
std::string seen_validation(const Dataset& val, const Dataset& train,
                            const std::vector<EarlierImages>& earlier);

}  // namespace vitrail
