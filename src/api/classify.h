// From logits to the classes worth showing. Used by the library's Model and the predict command.
#pragma once

#include <span>
#include <vector>

namespace vitrail {

struct ClassProbability {
  int index = 0;
  float probability = 0;
};

// Softmax in double; the k most likely classes, most likely first, ties by class number.
std::vector<ClassProbability> top_classes(std::span<const float> logits, int k);

}  // namespace vitrail
