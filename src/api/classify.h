// From logits to probabilities and the classes worth showing. Used by the library's Model and the commands
// that show classes.
#pragma once

#include <span>
#include <vector>

#include "api/engine.h"

namespace vitrail {

struct ClassProbability {
  int index = 0;
  float probability = 0;
};

// Probabilities in double; the k most likely classes, most likely first, ties by class number.
std::vector<ClassProbability> top_classes(std::span<const float> logits, int k,
                                          ScoreKind scores = ScoreKind::kSoftmax);

// Probabilities of the engine's last run: its "probs", or each logit's own sigmoid.
std::vector<float> class_scores(const Engine& engine, ScoreKind scores);

}  // namespace vitrail
