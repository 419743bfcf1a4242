// Which images a model is measured on: those that are named, or a run's own validation part; and how many of
// them the run has learned from. Knows no option and prints nothing.
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
  std::optional<Overlap> seen{};  // in training, where the model is a run's and its data is at hand
};

struct EvalRequest {
  std::string model;                              // a run's folder knows its own data
  std::string data, part;                         // FORMAT:PLACE and its part; may be empty
  FindModel find;                                 // where a model of that name lies
  std::function<void(const std::string&)> say{};  // what was found out on the way, one sentence at a time
};
// A run's own data without a part is its validation part; what of other data was learned from is said.
EvalData open_eval_data(const EvalRequest& request);

// The same images with classes numbered as the model's; what was done about names that differ is said.
// Error(kData) when the model has another number of classes.
std::unique_ptr<Dataset> fit_classes(std::unique_ptr<Dataset> data, const ModelCard& card,
                                     const std::function<void(const std::string&)>& say);

}  // namespace vitrail
