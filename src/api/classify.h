// From the outputs of a model to the classes worth showing. It must know no files and no screens.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/engine.h"

namespace vitrail {

struct TopClass {
  int64_t index = 0;
  std::string label;
  double probability = 0;
};

// The k classes of the highest scores, highest first, ties by class number; what is not a number comes last.
std::vector<int> likeliest(std::span<const float> scores, int64_t k);

// The likeliest classes first; equal ones by index. A class without a label is called "class 17".
std::vector<TopClass> top_classes(std::span<const float> probabilities,
                                  const std::vector<std::string>& labels, int64_t count);

// Each logit's own sigmoid, in double.
std::vector<float> sigmoids(std::span<const float> logits);

// Probabilities of the engine's last run: its "probs", or each logit's own sigmoid.
std::vector<float> class_scores(const Engine& engine, ScoreKind scores);

// Error(kNumerics) when a model's numbers hold NaN or infinity; `what` names them ("logits").
void require_finite(std::span<const float> values, const char* what);

}  // namespace vitrail
