// From the outputs of a model to its likeliest classes, as values, text and JSON. Opens no files and prints
// nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
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

// Returns the k classes of the highest scores, highest first, ties by class number; none without an
// answer.
std::vector<int> likeliest(std::span<const float> scores, int64_t k);

// Returns the likeliest classes first, equal ones by index. A class without a label is called "class 17".
std::vector<TopClass> top_classes(std::span<const float> probabilities,
                                  const std::vector<std::string>& labels, int64_t count);

// Returns {"image": path}, the beginning of an image's JSON line. JSON holds no bytes that are not UTF-8, so
// the bytes of such a path are there in hexadecimal digits, too: "image_hex".
nlohmann::ordered_json image_json(const std::string& path);

// Returns a line with a bar for each class, and [{"class", "label", "prob"}].
std::string top_classes_text(const std::vector<TopClass>& top, size_t indent);
nlohmann::ordered_json top_classes_json(const std::vector<TopClass>& top);

// Returns logits or features in one line, seven digits each.
std::string numbers_text(std::span<const float> values);

// Returns the sigmoid of each logit, computed in double.
std::vector<float> sigmoids(std::span<const float> logits);

// Returns the probabilities of the engine's last run: its "probs", or the sigmoid of each logit.
std::vector<float> class_scores(const Engine& engine, ScoreKind scores);

// Throws Error(kNumerics) when a model's numbers hold NaN or infinity; `what` names them ("logits").
void require_finite(std::span<const float> values, const char* what);

}  // namespace vitrail
