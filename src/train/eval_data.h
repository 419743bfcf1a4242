// The images that a model is measured on: those that are named, or a run's own validation part; and how many
// of them the run has learned from. Knows no option and prints nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/overlap.h"
#include "io/model_files.h"
#include "train/config_io.h"

namespace vitrail {

struct EvalData {
  std::unique_ptr<Dataset> set;
  std::string name, part;
  std::optional<Overlap> seen{};  // overlap with the training data, where that is available
};

struct EvalRequest {
  std::string model;                              // any model; the folder of a run records its own data
  std::string data, part;                         // FORMAT:PLACE and its part; may be empty
  FindModel find;                                 // resolves the name of a model
  std::function<void(const std::string&)> say{};  // findings on the way, one sentence each
};
// Opens the data. A run's own data without a part means its validation part; an overlap of other data with
// the training data is reported through `say`.
EvalData open_eval_data(const EvalRequest& request);

// Returns the same images with classes numbered as the model's; the treatment of names that differ is
// reported. Throws Error(kData) when the model has another number of classes.
std::unique_ptr<Dataset> fit_classes(std::unique_ptr<Dataset> data, const ModelCard& card,
                                     const std::function<void(const std::string&)>& say);

}  // namespace vitrail
