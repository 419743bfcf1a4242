// From logits to probabilities and the classes worth showing.
#pragma once

#include <span>
#include <vector>

#include "api/engine.h"

namespace vitrail {

struct ClassProbability {
  int index = 0;
  float probability = 0;
};

// The k classes of the highest scores, highest first, ties by class number; what is not a number comes last.
std::vector<int> likeliest(std::span<const float> scores, int64_t k);

// Probabilities in double; the k most likely classes, most likely first, ties by class number.
std::vector<ClassProbability> top_classes(std::span<const float> logits, int k,
                                          ScoreKind scores = ScoreKind::kSoftmax);

// Probabilities of the engine's last run: its "probs", or each logit's own sigmoid.
std::vector<float> class_scores(const Engine& engine, ScoreKind scores);

}  // namespace vitrail
