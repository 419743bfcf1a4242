// The result of an evaluation as text, JSON and an HTML page. Computes nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/overlap.h"
#include "io/model_files.h"
#include "train/evaluate.h"

namespace vitrail {

struct EvalSubject {
  std::string model, data, part;  // as they were named
  std::string device;
  std::string dtype, against;  // the types of the two models; against is empty without a second one
  const ModelCard& card;
  const Dataset& dataset;  // classes numbered as the model's
  const EvalResult& result;
  std::optional<Overlap> seen{};  // overlap with the training data; nothing: not known
};

nlohmann::ordered_json eval_json(const EvalSubject& subject);
// Returns the result as text; the table of classes has at most `rows` rows.
std::string eval_text(const EvalSubject& subject, size_t rows);
// Returns an HTML page like that of a training run; `generator` names the program and its version.
std::string eval_page(const EvalSubject& subject, const std::string& generator);

}  // namespace vitrail
